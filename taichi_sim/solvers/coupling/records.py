"""Which particles are near which body, and how they lie to it; and the adjoint of the latter.

A particle has one contact with each body it is near, at the nearest of the body's colliders. Where it touches several
bodies its mass is split among them (mass splitting, Tonge et al. 2012, "Mass splitting for jitter-free parallel rigid
body simulation"): each contact gets the share ``m ωᵢ/Σω``, with a weight ``ω`` that falls from 1 at touch to 0 at the
end of the band, so that a body that comes near takes over continuously. That conserves momentum and never adds energy;
a particle squeezed between two bodies gives way a little more than one between a body and other particles.

The order of contacts is that of particles in memory: it depends on neither threads nor workers.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.coupling.arrays import (
    ALPHA,
    ARM,
    BAR,
    BIAS,
    COLLIDERS,
    DISTANCE,
    FRICTION,
    LAWS,
    MASS,
    NORMAL,
    PARTITIONS,
    POOL,
    ROOM,
    ROWS,
    SPEED,
    STICTION,
    WEIGHT,
    WELDS,
)
from taichi_sim.solvers.coupling.balance import particle_impulse, surface_motion
from taichi_sim.solvers.coupling.law import meet_adjoint
from taichi_sim.solvers.coupling.thin import behind, on_own_side, own_axis, unit
from taichi_sim.solvers.mpm.layers import MEMORY
from taichi_sim.solvers.rigid.geometry import column3
from taichi_sim.solvers.rigid.geometry import place as centre_of
from taichi_sim.solvers.rigid.rotation import flat, lift
from taichi_sim.solvers.rigid.twist import DELTA, NOW, VELOCITY_BAR, ZED_BAR, add_wrench, body_motion
from taichi_sim.solvers.shapes.distance import (
    BOX,
    CAPSULE,
    CYLINDER,
    GRID,
    SPHERE,
    shape_distance,
    shape_distance_adjoint,
)
from taichi_sim.solvers.shapes.samples import BEYOND, sampled_distance

#: What went wrong, in ``coupling_flag``: more contacts in a substep than rows, or than is left of the pool.
CROWDED, FULL = 1, 2


@ti.func
def around(kind, size, sampling, lattice):
    """What holds a collider, in its axes: centre and radius of a ball, half widths of a box about the origin."""
    middle, radius = ti.Vector([0.0, 0.0, 0.0]), size[0] * 0.0 + BEYOND
    half = ti.Vector([BEYOND, BEYOND, BEYOND])
    if kind == SPHERE:
        radius = size[0]
    elif kind == CAPSULE:
        radius = size[0] + size[1]
        half = ti.Vector([radius, size[0], size[0]])
    elif kind == CYLINDER:
        radius = ti.sqrt(size[0] * size[0] + size[1] * size[1])
        half = ti.Vector([size[1], size[0], size[0]])
    elif kind == BOX:
        third = ti.select(size[2] < BEYOND, size[2], 0.0)  # in 2-D boxes are endless along z
        radius = ti.sqrt(size[0] * size[0] + size[1] * size[1] + third * third)
        half = ti.Vector([size[0], size[1], size[2]])
    elif kind == GRID:
        reach = 0.5 * lattice[3] * size[0] * ti.Vector([sampling[1] - 1.0, sampling[2] - 1.0, sampling[3] - 1.0])
        middle = size[0] * ti.Vector([lattice[0], lattice[1], lattice[2]]) + reach
        radius = ti.sqrt(reach.norm_sqr())
    return middle, radius, half


@ti.func
def set_frames(dim: ti.template(), e, k, bodies, position: ti.template(), turned: ti.template(),
               centre: ti.template(), place: ti.template(), size: ti.template(), skin_offset: ti.template(),
               axes: ti.template(), collider: ti.template(), sampling: ti.template(), lattice_of: ti.template(),
               band: ti.template(), counts: ti.template(), frame: ti.template(), origin: ti.template(),
               ball: ti.template(), hull: ti.template(), sides: ti.template()):
    """Axes, origins and balls of all colliders of an environment at the poses of slot ``k``."""
    for c in range(counts[COLLIDERS]):
        at, b = e * counts[COLLIDERS] + c, collider[c][1]
        R = ti.Matrix.identity(float, 3)
        o = lift(dim, place[at])
        if b >= 0:
            R = turned[e * bodies + b]
            o = lift(dim, position[k, e * bodies + b]) + R @ (o - lift(dim, centre[e * bodies + b]))
        F = R @ axes[c]
        middle, radius, half = around(collider[c][0], size[at], sampling[c], lattice_of[c])
        m = o + F @ middle
        offset = skin_offset[at * counts[ROWS]]
        for r in range(1, counts[ROWS]):
            offset = ti.max(offset, skin_offset[at * counts[ROWS] + r])
        frame[at], origin[at] = F, o
        ball[at] = ti.Vector([m[0], m[1], m[2], radius + offset + band[0]])
        hull[at] = half + offset + band[0]
        if ti.static(sides.plates > 0):
            j = sides.thin_of[c]
            if j >= 0:  # whoever has a side is looked for: the band is half a cell
                far = 2.0 * MEMORY * band[0]
                ball[at][3] = ball[at][3] + far
                hull[at] = hull[at] + unit(sides.thin[j][1], far)


@ti.func
def set_frames_adjoint(dim: ti.template(), e, c, bodies, F_bar, o_bar, turned: ti.template(), centre: ti.template(),
                       place: ti.template(), axes: ti.template(), collider: ti.template(), counts: ti.template(),
                       turned_bar: ti.template(), d_position: ti.template(), d_centre: ti.template(),
                       d_place: ti.template()):
    """Adjoint of :func:`set_frames` for one collider (balls have none)."""
    at, b = e * counts[COLLIDERS] + c, collider[c][1]
    local = o_bar
    if b >= 0:
        body = e * bodies + b
        away = lift(dim, place[at]) - lift(dim, centre[body])
        local = turned[body].transpose() @ o_bar
        turned_bar[body] = turned_bar[body] + o_bar.outer_product(away) + F_bar @ axes[c].transpose()
        d_position[body] = d_position[body] + flat(dim, o_bar)
        d_centre[body] = d_centre[body] - ti.cast(flat(dim, local), ti.f64)
    d_place[at] = d_place[at] + ti.cast(flat(dim, local), ti.f64)


@ti.func
def distance(dim: ti.template(), sampled: ti.template(), sides: ti.template(), c, k, p, kind, size, y,
             sampling: ti.template(), lattice_of: ti.template(), sample: ti.template()):
    """``φ``, ``dφ/dy``, ``n`` and ``dn/dy`` of collider ``c`` at ``y`` in its axes, for particle ``p`` of slot ``k``.

    What is sampled is ``size[0]`` times as large as its lattice. Samples are splines, of which these are the very
    derivatives: where a mesh is creased, ``dn/dy`` is that of the crease as round as the lattice shows it."""
    phi, n, bend = shape_distance(kind, size, y)
    if ti.static(sides.plates > 0):
        e = own_axis(sides, c, k, p)
        depth, is_behind = behind(e, size, y)
        if is_behind == 1:
            phi, n, bend = depth, e, bend * 0.0
    g = n
    if ti.static(sampled):
        if kind == GRID:
            first = ti.Vector([lattice_of[c][0], lattice_of[c][1], lattice_of[c][2]])
            sizes = ti.Vector([sampling[c][1], sampling[c][2], sampling[c][3]])
            phi, g, n, bend = sampled_distance(
                dim, sampling[c][0], sizes, lattice_of[c][3], y / size[0] - first, sample)
            phi = size[0] * phi
            bend = bend / size[0]
    return phi, g, n, bend


@ti.func
def search(dim: ti.template(), sampled: ti.template(), sides: ti.template(), w, k, epoch, workers, mpm_x: ti.template(),
           mpm_id: ti.template(), mpm_tag: ti.template(), mpm_work: ti.template(), size: ti.template(),
           skin_offset: ti.template(), collider: ti.template(), sampling: ti.template(), lattice_of: ti.template(),
           sample: ti.template(), frame: ti.template(), origin: ti.template(), ball: ti.template(),
           hull: ti.template(), band: ti.template(), counts: ti.template(), weld_of: ti.template(),
           found: ti.template(), found_count: ti.template()):
    """List the near particles of one worker, law by law: balls and boxes first, shapes only within. What is welded to
    a body touches none."""
    e = w // counts[PARTITIONS]
    colliders, rows = counts[COLLIDERS], counts[ROWS]
    for l in range(counts[LAWS]):
        begin, end = mpm_work[2 * (l * workers + w)], mpm_work[2 * (l * workers + w) + 1]
        count = 0
        for p in range(begin, end):
            x = lift(dim, mpm_x[k, p])
            mine, last, least = count, -2, 0.0
            for c in range(ti.select(weld_of[mpm_id[epoch, p]] < 0, colliders, 0)):
                at = e * colliders + c
                B = ball[at]
                away = x - ti.Vector([B[0], B[1], B[2]])
                y = frame[at].transpose() @ (x - origin[at])
                if away.norm_sqr() < B[3] * B[3] and (ti.abs(y) < hull[at]).all():
                    phi, _g, _n, _b = distance(dim, sampled, sides, c, k, p, collider[c][0], size[at], y, sampling,
                                               lattice_of, sample)
                    gap = phi - skin_offset[at * rows + mpm_tag[mpm_id[epoch, p]][0]]
                    if gap < band[0]:
                        body = collider[c][1]
                        if body >= 0 and body == last:
                            if gap < least:
                                found[2 * begin + count - 1] = ti.Vector([p, c, 1, 0])
                                least = gap
                        elif count < 2 * (end - begin):
                            found[2 * begin + count] = ti.Vector([p, c, 1, 0])
                            count = count + 1
                            last, least = body, gap
            if count > mine + 1:
                for j in range(mine, count):
                    found[2 * begin + j][2] = count - mine
                    found[2 * begin + j][3] = j - mine
        found_count[l * workers + w] = count


@ti.func
def keep(e, k, workers, mpm_work: ti.template(), counts: ti.template(), found: ti.template(),
         found_count: ti.template(), record: ti.template(), span: ti.template(), coupling_flag: ti.template()):
    """Move what all workers of an environment found into the pool, behind the substep before."""
    first = e * counts[POOL]
    if k > 0:
        first = span[k - 1, e][0] + span[k - 1, e][1]
    total = 0
    for l in range(counts[LAWS]):
        for w in range(e * counts[PARTITIONS], (e + 1) * counts[PARTITIONS]):
            total = total + found_count[l * workers + w]
    if total + counts[WELDS] > counts[ROOM] or first + total > (e + 1) * counts[POOL]:
        if coupling_flag[e][0] == 0:
            coupling_flag[e] = ti.Vector([ti.select(total + counts[WELDS] > counts[ROOM], CROWDED, FULL), k, total])
        total = 0
    span[k, e] = ti.Vector([first, total])
    if total > 0:
        at = first
        for l in range(counts[LAWS]):
            for w in range(e * counts[PARTITIONS], (e + 1) * counts[PARTITIONS]):
                begin = 2 * mpm_work[2 * (l * workers + w)]
                for j in range(found_count[l * workers + w]):
                    record[at] = found[begin + j]
                    at = at + 1


@ti.func
def ask(gap, rate, cap, h):
    """``b``, the speed of separation asked for: before touch what closes the gap in a step, then ``rate`` times the
    penetration up to ``cap``; and its derivatives by the gap and by rate, cap and ``h``."""
    b, by_gap, by_rate, by_cap, by_h = -gap / h, -1.0 / h, 0.0 * h, 0.0 * h, gap / (h * h)
    if gap <= 0.0:
        b, by_gap, by_rate, by_h = -rate * gap, -rate, -gap, 0.0 * h
        if b > cap:
            b, by_gap, by_rate, by_cap = cap, 0.0 * h, 0.0 * h, 0.0 * h + 1.0
    return b, by_gap, by_rate, by_cap, by_h


@ti.func
def set_rows(dim: ti.template(), sampled: ti.template(), sides: ti.template(), e, k, epoch, bodies, held: ti.template(),
             position: ti.template(), dt: ti.template(), mpm_x: ti.template(), mpm_v: ti.template(),
             mpm_id: ti.template(), mpm_tag: ti.template(), mpm_material: ti.template(), mpm_gravity: ti.template(),
             size: ti.template(), skin_friction: ti.template(), skin_stiction: ti.template(),
             skin_offset: ti.template(), skin_rate: ti.template(), skin_cap: ti.template(),
             skin_compliance: ti.template(), collider: ti.template(), sampling: ti.template(),
             lattice_of: ti.template(), sample: ti.template(), frame: ti.template(), origin: ti.template(),
             band: ti.template(), counts: ti.template(), record: ti.template(), span: ti.template(), row: ti.template(),
             row_body: ti.template(), row_count: ti.template()):
    """Geometry and law of the contacts on the tape of slot ``k``. A body that is held is to a particle what the world
    is, but for where it is."""
    colliders, rows, h = counts[COLLIDERS], counts[ROWS], dt[e]
    row_count[e] = span[k, e][1]
    for j in range(span[k, e][1]):
        i, r = e * counts[ROOM] + j, record[span[k, e][0] + j]
        p, c, sharing, rank = r[0], r[1], r[2], r[3]
        at, body = e * colliders + c, collider[c][1]
        if body >= 0:
            body = ti.select(held[body] == 1, -1, body)
        tag = mpm_tag[mpm_id[epoch, p]][0]
        s = at * rows + tag
        x = lift(dim, mpm_x[k, p])
        phi, _g, n_local, _bend = distance(dim, sampled, sides, c, k, p, collider[c][0], size[at],
                                           frame[at].transpose() @ (x - origin[at]), sampling, lattice_of, sample)
        n = frame[at] @ n_local
        gap = phi - skin_offset[s]
        b, _bg, _br, _bc, _bh = ask(gap, skin_rate[s], skin_cap[s], h)
        arm = x - centre_of(dim, position, k, e, body, bodies)
        u = lift(dim, mpm_v[k, p] + h * mpm_gravity[e])
        weight = ti.min(1.0, 1.0 - gap / band[0])
        mass = mpm_material[e * rows + tag][1]
        row_body[i] = ti.Vector([body, e * rows + tag, p])
        row[i] = ti.Vector([n[0], n[1], n[2], arm[0], arm[1], arm[2], u[0], u[1], u[2], mass, 0.0, b,
                            skin_friction[s], skin_stiction[s], weight, phi, 0.0, 0.0, 0.0])
        if rank == sharing - 1:
            total = 0.0
            for q in range(i - rank, i + 1):
                total = total + row[q][WEIGHT]
            for q in range(i - rank, i + 1):
                share = mass * row[q][WEIGHT] / total
                if sharing == 1:
                    share = mass
                soft = skin_compliance[(e * colliders + record[span[k, e][0] + j + q - i][1]) * rows + tag]
                row[q][MASS] = share
                row[q][ALPHA] = h * h / (h * h + soft * share)


@ti.func
def particle_bars(dim: ti.template(), e, i, bodies, dof: ti.template(), mpm_material: ti.template(),
                  row: ti.template(), row_body: ti.template()):
    """Adjoint of the impulse of contact ``i``, given ``z`` in DELTA: what the law makes of ``y = v_bar/m - J z``."""
    moving = surface_motion(dim, dof, NOW, e, bodies, i, row, row_body)
    z = surface_motion(dim, dof, DELTA, e, bodies, i, row, row_body)
    y = column3(row, i, BAR) / mpm_material[row_body[i][1]][1] - z
    return meet_adjoint(column3(row, i, SPEED) - moving, column3(row, i, NORMAL), row[i][MASS], row[i][ALPHA],
                        row[i][BIAS], row[i][FRICTION], row[i][STICTION], y)


@ti.func
def set_rows_adjoint(dim: ti.template(), sampled: ti.template(), sides: ti.template(), trees: ti.template(), e, k,
                     bodies,
                     dof: ti.template(), dt: ti.template(), mpm_x: ti.template(), mpm_material: ti.template(),
                     mpm_gravity: ti.template(), size: ti.template(), skin_offset: ti.template(),
                     skin_rate: ti.template(), skin_cap: ti.template(), skin_compliance: ti.template(),
                     axes: ti.template(), collider: ti.template(), sampling: ti.template(),
                     lattice_of: ti.template(), sample: ti.template(), frame: ti.template(), origin: ti.template(),
                     band: ti.template(), counts: ti.template(), record: ti.template(), span: ti.template(),
                     row: ti.template(), row_body: ti.template(), turned: ti.template(), centre: ti.template(),
                     place: ti.template(), turned_bar: ti.template(), d_position: ti.template(),
                     d_centre: ti.template(), d_place: ti.template(), d_size: ti.template(),
                     d_skin_friction: ti.template(), d_skin_stiction: ti.template(), d_skin_offset: ti.template(),
                     d_skin_rate: ti.template(), d_skin_cap: ti.template(), d_skin_compliance: ti.template(),
                     d_dt: ti.template(), d_mpm_x: ti.template(), d_mpm_v: ti.template(),
                     d_mpm_material: ti.template(), d_mpm_gravity: ti.template()):
    """Adjoint of all contacts of slot ``k``: of rows, impulses and the velocities of particles after contact.

    From ``r = 0`` at the solution, with ``Hᵀ z = V_bar + Σ Jᵀ Gᵀ v_bar/m`` in DELTA: no derivative of the matrix or of
    iterations is needed. ``d_mpm_v`` comes in as the adjoint after contact and becomes that before.
    """
    colliders, rows, h = counts[COLLIDERS], counts[ROWS], dt[e]
    h_bar = 0.0
    for j in range(span[k, e][1]):
        i, r = e * counts[ROOM] + j, record[span[k, e][0] + j]
        p, c, sharing, rank = r[0], r[1], r[2], r[3]
        body, place_of_row = row_body[i][0], row_body[i][1]
        at = e * colliders + c
        s = at * rows + place_of_row - e * rows
        mass = mpm_material[place_of_row][1]
        share, alpha = row[i][MASS], row[i][ALPHA]
        u_bar, n_bar, share_bar, alpha_bar, b_bar, mu_bar, vs_bar = particle_bars(
            dim, e, i, bodies, dof, mpm_material, row, row_body)
        impulse = particle_impulse(row, i, surface_motion(dim, dof, NOW, e, bodies, i, row, row_body), 1.0)
        soft = skin_compliance[s]
        d_skin_friction[s] = d_skin_friction[s] + ti.cast(mu_bar, ti.f64)
        d_skin_stiction[s] = d_skin_stiction[s] + ti.cast(vs_bar, ti.f64)
        d_skin_compliance[s] = d_skin_compliance[s] - ti.cast(alpha_bar * alpha * alpha * share / (h * h), ti.f64)
        h_bar = h_bar + 2.0 * alpha_bar * alpha * alpha * soft * share / (h * h * h)
        share_bar = share_bar - alpha_bar * alpha * alpha * soft / (h * h)
        # mass of the particle, shared by weight
        part = share / mass
        mass_bar = share_bar * part - column3(row, i, BAR).dot(impulse) / (mass * mass)
        phi_bar, offset_bar = 0.0, 0.0
        if sharing > 1:
            mean, total = 0.0, 0.0
            for q in range(i - rank, i - rank + sharing):
                _u, _n, q_bar, q_alpha, _b, _m, _v = particle_bars(dim, e, q, bodies, dof, mpm_material, row, row_body)
                other = skin_compliance[
                    (e * colliders + record[span[k, e][0] + j + q - i][1]) * rows + place_of_row - e * rows]
                q_bar = q_bar - q_alpha * row[q][ALPHA] * row[q][ALPHA] * other / (h * h)
                mean = mean + q_bar * row[q][MASS] / mass
                total = total + row[q][WEIGHT]
            if row[i][WEIGHT] < 1.0:
                offset_bar = mass / total * (share_bar - mean) / band[0]
                phi_bar = -offset_bar
        row_bar = ti.cast(mass_bar, ti.f64)
        d_mpm_material[0, place_of_row][1] = d_mpm_material[0, place_of_row][1] + row_bar
        # what is asked for
        gap = row[i][DISTANCE] - skin_offset[s]
        _value, by_gap, by_rate, by_cap, by_h = ask(gap, skin_rate[s], skin_cap[s], h)
        phi_bar = phi_bar + b_bar * by_gap
        offset_bar = offset_bar - b_bar * by_gap
        d_skin_offset[s] = d_skin_offset[s] + ti.cast(offset_bar, ti.f64)
        d_skin_rate[s] = d_skin_rate[s] + ti.cast(b_bar * by_rate, ti.f64)
        d_skin_cap[s] = d_skin_cap[s] + ti.cast(b_bar * by_cap, ti.f64)
        # velocity before contact
        u_flat = flat(dim, u_bar)
        h_bar = h_bar + b_bar * by_h + u_flat.dot(mpm_gravity[e])
        d_mpm_v[p] = d_mpm_v[p] + u_flat
        d_mpm_gravity[0, e] = d_mpm_gravity[0, e] + ti.cast(h * u_flat, ti.f64)
        # geometry
        x = lift(dim, mpm_x[k, p])
        away = x - origin[at]
        F = frame[at]
        y = F.transpose() @ away
        phi, g, n_local, bend = distance(dim, sampled, sides, c, k, p, collider[c][0], size[at], y, sampling,
                                         lattice_of, sample)
        y_bar = phi_bar * g + bend.transpose() @ (F.transpose() @ n_bar)
        seen = y
        if ti.static(sides.plates > 0):
            seen = on_own_side(own_axis(sides, c, k, p), size[at], y)
        size_bar = shape_distance_adjoint(collider[c][0], size[at], seen, y_bar, phi_bar)
        if ti.static(sampled):
            if collider[c][0] == GRID:
                size_bar[0] = (phi_bar * phi - y_bar.dot(y)) / size[at][0]
        d_size[at] = d_size[at] + ti.cast(size_bar, ti.f64)
        x_bar = F @ y_bar
        set_frames_adjoint(dim, e, c, bodies, n_bar.outer_product(n_local) + away.outer_product(y_bar), -x_bar, turned,
                           centre, place, axes, collider, counts, turned_bar, d_position, d_centre, d_place)
        if body >= 0:
            b = e * bodies + body
            freedoms = ti.static(3 if dim == 2 else 6)
            _v, w = body_motion(dim, dof, NOW, b * freedoms)
            _z, zw = body_motion(dim, dof, DELTA, b * freedoms)
            arm_bar = w.cross(u_bar) + zw.cross(impulse)
            x_bar = x_bar + arm_bar
            d_position[b] = d_position[b] - flat(dim, arm_bar)
            if ti.static(trees):  # velocities of links follow from coordinates
                arm = column3(row, i, ARM)
                add_wrench(dim, dof, VELOCITY_BAR, b * freedoms, -u_bar, u_bar.cross(arm))
                add_wrench(dim, dof, ZED_BAR, b * freedoms, -impulse, impulse.cross(arm))
        d_mpm_x[p] = d_mpm_x[p] + flat(dim, x_bar)
    d_dt[e] = d_dt[e] + ti.cast(h_bar, ti.f64)


@ti.func
def push_particles(dim: ti.template(), e, k, bodies, dof: ti.template(), mpm_v: ti.template(),
                   mpm_material: ti.template(), touching: ti.template(), record: ti.template(), after: ti.template(),
                   span: ti.template(), counts: ti.template(), row: ti.template(), row_body: ti.template()):
    """Give particles their velocity after contact and keep the one before; mark the bodies they touch."""
    total = ti.Vector([0.0, 0.0, 0.0])
    for j in range(span[k, e][1]):
        i, at = e * counts[ROOM] + j, span[k, e][0] + j
        sharing, rank = record[at][2], record[at][3]
        impulse = particle_impulse(row, i, surface_motion(dim, dof, NOW, e, bodies, i, row, row_body), 1.0)
        if row_body[i][0] >= 0 and impulse.norm_sqr() > 0.0:
            touching[k + 1, e * bodies + row_body[i][0]] = 1.0
        if rank == 0:
            total = impulse
        else:
            total = total + impulse
        if rank == sharing - 1:
            p = row_body[i][2]
            before = mpm_v[k, p]
            after[at - rank] = before
            mpm_v[k, p] = before + flat(dim, total) / mpm_material[row_body[i][1]][1]
