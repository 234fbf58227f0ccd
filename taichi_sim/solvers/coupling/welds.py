"""Particles that are welded to rigid bodies: how they lie to their place, their push, and the adjoints.

A welded particle has a place in its body, ``p = c + R r₀``, and moves with the body's surface where it is. In a substep
it is a contact that holds in both ways, with the particle eliminated as in ``law``:

    g = x - p,  b = -rate g, at most ``cap`` long,  u = v + h g₀ - J V,   λ = m (b - u),   G = -dλ/du = m

so that it leaves with the velocity of the body there and ``b``, which takes back what it has drifted. The impulse acts
on both at ``x``: momentum and angular momentum are kept, and a body lighter than what it carries is as stable as a
heavy one. It is linear: the velocity problem of the bodies meets no new kink. Welded particles touch nothing else.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.coupling.arrays import BAR, PARTICLES, ROOM, ROWS, WELDS
from taichi_sim.solvers.coupling.balance import WELDED, answer_bar, particle_impulse, surface_motion
from taichi_sim.solvers.rigid.geometry import column3
from taichi_sim.solvers.rigid.rotation import flat, lift
from taichi_sim.solvers.rigid.twist import DELTA, NOW, VELOCITY_BAR, ZED_BAR, add_wrench, body_motion


@ti.func
def first_weld(e, k, span: ti.template(), counts: ti.template()):
    """Row of the first weld of an environment: they stand behind the contacts."""
    return e * counts[ROOM] + span[k, e][1]


@ti.func
def find(e, epoch, mpm_id: ti.template(), weld_of: ti.template(), weld_particle: ti.template(), counts: ti.template()):
    """Where welded particles are in memory in the order of ``epoch``."""
    for p in range(e * counts[PARTICLES], (e + 1) * counts[PARTICLES]):
        w = weld_of[mpm_id[epoch, p]]
        if w >= 0:
            weld_particle[e * counts[WELDS] + w] = p


@ti.func
def drift_back(g, rate, cap):
    """``b``: what takes back the drift ``g``."""
    b = -rate * g
    long = ti.sqrt(b.norm_sqr())
    if long > cap:
        b = (cap / long) * b
    return b


@ti.func
def drift_back_adjoint(g, rate, cap, bar):
    """Adjoint of :func:`drift_back`: by ``g``, ``rate`` and ``cap``."""
    g_bar, rate_bar, cap_bar = -rate * bar, -g.dot(bar), 0.0 * rate
    far = ti.sqrt(g.norm_sqr())
    if rate * far > cap:
        along = g / far
        rate_bar, cap_bar = 0.0 * rate, -along.dot(bar)
        g_bar = -(cap / far) * (bar - along.dot(bar) * along)
    return g_bar, rate_bar, cap_bar


@ti.func
def set_welds(dim: ti.template(), e, k, epoch, look, bodies, held: ti.template(), position: ti.template(),
              turned: ti.template(), dt: ti.template(), mpm_x: ti.template(), mpm_v: ti.template(),
              mpm_id: ti.template(), mpm_tag: ti.template(), mpm_material: ti.template(), mpm_gravity: ti.template(),
              weld: ti.template(), weld_particle: ti.template(), weld_at: ti.template(), weld_place: ti.template(),
              weld_rate: ti.template(), weld_cap: ti.template(), attachments, span: ti.template(),
              counts: ti.template(), row: ti.template(), row_body: ti.template(), row_count: ti.template()):
    """Rows of all welds, behind those of contacts; with ``look`` particles are where :func:`find` says, and that is
    kept with the slot."""
    first = first_weld(e, k, span, counts)
    row_count[e] = span[k, e][1] + counts[WELDS]
    for w in range(counts[WELDS]):
        i, at = first + w, e * counts[WELDS] + w
        if look == 1:
            weld_at[k, at] = weld_particle[at]
        b, p = e * bodies + weld[w][0], weld_at[k, at]
        a = e * attachments + weld[w][1]
        arm = lift(dim, mpm_x[k, p]) - lift(dim, position[k, b])
        back = drift_back(arm - turned[b] @ lift(dim, weld_place[at]), weld_rate[a], weld_cap[a])
        u = lift(dim, mpm_v[k, p] + dt[e] * mpm_gravity[e])
        material = e * counts[ROWS] + mpm_tag[mpm_id[epoch, p]][0]
        row_body[i] = ti.Vector([ti.select(held[weld[w][0]] == 1, -1, weld[w][0]), material, p])
        row[i] = ti.Vector([back[0], back[1], back[2], arm[0], arm[1], arm[2], u[0], u[1], u[2],
                            mpm_material[material][1], 1.0, 0.0, WELDED, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0])


@ti.func
def set_welds_adjoint(dim: ti.template(), trees: ti.template(), e, k, bodies, dof: ti.template(),
                      lent_bar: ti.template(), position: ti.template(), turned: ti.template(),
                      turned_bar: ti.template(), dt: ti.template(),
                      mpm_x: ti.template(), mpm_material: ti.template(), mpm_gravity: ti.template(),
                      weld: ti.template(), weld_place: ti.template(), weld_rate: ti.template(),
                      weld_cap: ti.template(), attachments, span: ti.template(), counts: ti.template(),
                      row: ti.template(), row_body: ti.template(), d_position: ti.template(), d_dt: ti.template(),
                      d_weld_place: ti.template(), d_weld_rate: ti.template(), d_weld_cap: ti.template(),
                      d_mpm_x: ti.template(), d_mpm_v: ti.template(), d_mpm_material: ti.template(),
                      d_mpm_gravity: ti.template()):
    """Adjoint of all welds of slot ``k``, as ``records.set_rows_adjoint`` is that of contacts."""
    first, h_bar = first_weld(e, k, span, counts), 0.0
    for w in range(counts[WELDS]):
        i, at, a = first + w, e * counts[WELDS] + w, e * attachments + weld[w][1]
        b, p, material = e * bodies + weld[w][0], row_body[i][2], row_body[i][1]
        m, bar = mpm_material[material][1], column3(row, i, BAR)
        moving = surface_motion(dim, dof, NOW, e, bodies, i, row, row_body)
        impulse = particle_impulse(row, i, moving, 1.0)
        y = bar / m - answer_bar(dim, dof, e, bodies, i, lent_bar, row, row_body)
        u_bar = -m * y
        mass_bar = (y.dot(impulse) - bar.dot(impulse) / m) / m
        d_mpm_material[0, material][1] = d_mpm_material[0, material][1] + ti.cast(mass_bar, ti.f64)
        # velocity before
        u_flat = flat(dim, u_bar)
        h_bar = h_bar + u_flat.dot(mpm_gravity[e])
        d_mpm_v[p] = d_mpm_v[p] + u_flat
        d_mpm_gravity[0, e] = d_mpm_gravity[0, e] + ti.cast(dt[e] * u_flat, ti.f64)
        # drift
        arm, local = lift(dim, mpm_x[k, p]) - lift(dim, position[k, b]), lift(dim, weld_place[at])
        g_bar, rate_bar, cap_bar = drift_back_adjoint(arm - turned[b] @ local, weld_rate[a], weld_cap[a], m * y)
        d_weld_rate[a] = d_weld_rate[a] + ti.cast(rate_bar, ti.f64)
        d_weld_cap[a] = d_weld_cap[a] + ti.cast(cap_bar, ti.f64)
        d_weld_place[at] = d_weld_place[at] - ti.cast(flat(dim, turned[b].transpose() @ g_bar), ti.f64)
        turned_bar[b] = turned_bar[b] - g_bar.outer_product(local)
        # the arm at which the body is pushed and moves
        arm_bar = g_bar
        if row_body[i][0] >= 0:
            freedoms = ti.static(3 if dim == 2 else 6)
            _v, spin = body_motion(dim, dof, NOW, b * freedoms)
            _z, zed = body_motion(dim, dof, DELTA, b * freedoms)
            arm_bar = arm_bar + spin.cross(u_bar) + zed.cross(impulse)
            if ti.static(trees):  # velocities of links follow from coordinates
                add_wrench(dim, dof, VELOCITY_BAR, b * freedoms, -u_bar, u_bar.cross(arm))
                add_wrench(dim, dof, ZED_BAR, b * freedoms, -impulse, impulse.cross(arm))
        d_mpm_x[p] = d_mpm_x[p] + flat(dim, arm_bar)
        d_position[b] = d_position[b] - flat(dim, arm_bar)
    d_dt[e] = d_dt[e] + ti.cast(h_bar, ti.f64)


@ti.func
def push_welds(dim: ti.template(), e, k, bodies, dof: ti.template(), mpm_v: ti.template(),
               mpm_material: ti.template(), touching: ti.template(), lent: ti.template(), weld_after: ti.template(),
               span: ti.template(), counts: ti.template(), row: ti.template(), row_body: ti.template()):
    """Give welded particles their velocity after the step and keep the one before; mark their bodies, and
    tell them what they got."""
    first = first_weld(e, k, span, counts)
    for w in range(counts[WELDS]):
        i = first + w
        impulse = particle_impulse(row, i, surface_motion(dim, dof, NOW, e, bodies, i, row, row_body), 1.0)
        if row_body[i][0] >= 0:
            b = e * bodies + row_body[i][0]
            touching[k + 1, b] = 1.0
            lent[k + 1, b] = lent[k + 1, b] - flat(dim, impulse)
        before = mpm_v[k, row_body[i][2]]
        weld_after[k, e * counts[WELDS] + w] = before
        mpm_v[k, row_body[i][2]] = before + flat(dim, impulse) / mpm_material[row_body[i][1]][1]
