"""Where shapes and contacts are: world axes, gaps, normals and arms from poses; and the adjoint of all of them.

A contact acts between two bodies, or a body and the world (-1), which carry features that are closest (``closest``,
or the lattice of a mesh). The normal points from B to A; both bodies are pushed at one place, on the surface of A, so
that momentum and angular momentum are conserved to rounding. Where A cannot move, the two change their roles: A is
always a body that moves.

Columns of ``contact``: normal 0-2, arm of A 3-5, arm of B 6-8, gap 9, then the law's K 10, b 11, μ 12, d 13, vs 14,
and room for the solve: frozen normal impulse 15, normal impulse 16, impulse 17-19,
a list of contacts 20.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.closest import (
    LINE_LINE,
    PARTS,
    POINT_GRID,
    POINT_LINE,
    POINT_PLANE,
    POINT_POINT,
    POINT_RIM,
    RIM_PLANE,
    closest,
    closest_adjoint,
)
from taichi_sim.solvers.rigid.rotation import flat, lift
from taichi_sim.solvers.shapes.samples import sampled_distance

GAP, STIFF, BIAS, FRICTION, DAMPING, STICTION, FROZEN, NORMAL, IMPULSE = 9, 10, 11, 12, 13, 14, 15, 16, 17
LISTED = 20


@ti.func
def column3(rows: ti.template(), i, first: ti.template()):
    """Three neighbouring columns as a vector."""
    return ti.Vector([rows[i][first], rows[i][first + 1], rows[i][first + 2]])


@ti.func
def place(dim: ti.template(), position: ti.template(), k, e, body, bodies):
    """Centre of mass of a body; the origin for the world (-1)."""
    out = ti.Vector([0.0, 0.0, 0.0])
    if body >= 0:
        out = lift(dim, position[k, e * bodies + body])
    return out


@ti.func
def orient(S: ti.template(), e):
    """Points and planes in world axes, as seen from the centre of mass of their body: ``arm = R (point - centre)``;
    ``face``: normal ``R n`` and offset ``o - n · centre``. Those of the world stay as they are."""
    bodies, points, planes = S.extent[0], S.extent[1], S.extent[2]
    for i in range(points):
        own = lift(S.dim, S.point[e * points + i])
        if S.point_body[i] >= 0:
            b = e * bodies + S.point_body[i]
            own = S.turned[b] @ (own - lift(S.dim, S.centre[b]))
        S.arm[e * points + i] = own
    for j in range(planes):
        p = e * planes + j
        n = lift(S.dim, S.plane_normal[p])
        offset = S.plane_offset[p]
        if S.plane_body[j] >= 0:
            b = e * bodies + S.plane_body[j]
            offset = offset - S.plane_normal[p].dot(S.centre[b])
            n = S.turned[b] @ n
        S.face[p] = ti.Vector([n[0], n[1], n[2], offset])


@ti.func
def clear_orient_adjoint(S: ti.template(), D: ti.template(), e):
    """Set the adjoints of arms and faces to zero."""
    for i in range(e * S.extent[1], (e + 1) * S.extent[1]):
        D.arm[i] = D.arm[i] * 0.0
    for j in range(e * S.extent[2], (e + 1) * S.extent[2]):
        D.face[j] = D.face[j] * 0.0


@ti.func
def orient_adjoint(S: ti.template(), D: ti.template(), e):
    """Adjoint of :func:`orient`, added to that of rotations, centres, points and planes."""
    bodies, points, planes = S.extent[0], S.extent[1], S.extent[2]
    for i in range(points):
        a = e * points + i
        local = D.arm[a]
        if S.point_body[i] >= 0:
            b = e * bodies + S.point_body[i]
            D.turned[b] = D.turned[b] + local.outer_product(lift(S.dim, S.point[a] - S.centre[b]))
            local = S.turned[b].transpose() @ local
            D.centre[b] = D.centre[b] - ti.cast(flat(S.dim, local), ti.f64)
        D.point[a] = D.point[a] + ti.cast(flat(S.dim, local), ti.f64)
    for j in range(planes):
        p = e * planes + j
        n_bar = column3(D.face, p, 0)
        offset_bar = D.face[p][3]
        D.plane_offset[p] = D.plane_offset[p] + ti.cast(offset_bar, ti.f64)
        if S.plane_body[j] >= 0:
            b = e * bodies + S.plane_body[j]
            D.turned[b] = D.turned[b] + n_bar.outer_product(lift(S.dim, S.plane_normal[p]))
            local = flat(S.dim, S.turned[b].transpose() @ n_bar) - offset_bar * S.centre[b]
            D.plane_normal[p] = D.plane_normal[p] + ti.cast(local, ti.f64)
            D.centre[b] = D.centre[b] - ti.cast(offset_bar * S.plane_normal[p], ti.f64)
        else:
            D.plane_normal[p] = D.plane_normal[p] + ti.cast(flat(S.dim, n_bar), ti.f64)


@ti.func
def curve(S: ti.template(), line, rim, i):
    """The two points a feature is made of, and the share of the second in its radius: a point (twice), a line, or the
    circle around end ``i % 2`` of line ``i // 2``."""
    c, o, share = i, i, 0.0
    if line or rim:
        l = ti.select(rim, i // 2, i)
        end = ti.select(rim, i % 2, 0)
        c, o = S.line[l][0], S.line[l][1]
        if end == 1:
            c, o = S.line[l][1], S.line[l][0]
        share = ti.select(line, 0.5, 0.0)
    return c, o, share


@ti.func
def features(S: ti.template(), e, kind, i, j):
    """Of feature ``i`` of A and ``j`` of B: their bodies, their points, and the vectors and radii that ``closest``
    takes, as seen from the bodies' centres of mass."""
    points = e * S.extent[1]
    c, o, share = curve(S, kind == LINE_LINE, kind == RIM_PLANE, i)
    a0, a1 = S.arm[points + c], S.arm[points + o] - S.arm[points + c]
    ra = (1.0 - share) * S.radius[points + c] + share * S.radius[points + o]
    A, B = S.point_body[c], -1
    b0, b1, rb, d, q, part = a0, a1, ra, c, o, share
    if kind == POINT_PLANE or kind == RIM_PLANE:
        b0, rb, B = column3(S.face, e * S.extent[2] + j, 0), S.face[e * S.extent[2] + j][3], S.plane_body[j]
    elif kind == POINT_GRID:
        B = S.grid[j][4]
    else:
        d, q, part = curve(S, kind == LINE_LINE or kind == POINT_LINE, kind == POINT_RIM, j)
        b0, b1 = S.arm[points + d], S.arm[points + q] - S.arm[points + d]
        rb = (1.0 - part) * S.radius[points + d] + part * S.radius[points + q]
        B = S.point_body[d]
    return A, B, a0, a1, b0, b1, ra, rb, ti.Vector([c, o, d, q]), share, part


@ti.func
def on_lattice(S: ti.template(), e, j, B, P):
    """Distance, its gradient, normal and bend of lattice ``j`` at ``P``, as seen from B's centre of mass, all in the
    axes of the lattice; with the rotation of B, the place in those axes, and the scale."""
    R = ti.Matrix.identity(float, 3)
    middle = P * 0.0
    if B >= 0:
        R = S.turned[e * S.extent[0] + B]
        middle = lift(S.dim, S.centre[e * S.extent[0] + B])
    scale = S.grid_scale[e * S.census[3] + j]
    w = R.transpose() @ P + middle - lift(S.dim, S.grid_place[e * S.census[3] + j])
    origin = column3(S.lattice, j, 0)
    sizes = ti.Vector([S.grid[j][1], S.grid[j][2], S.grid[j][3]])
    phi, g, n, bend = sampled_distance(3, S.grid[j][0], sizes, S.lattice[j][3], w / scale - origin, S.sample)
    return phi, g, n, bend, R, w, scale


@ti.func
def shared(kind):
    """Which share of the gap the place of a contact is away from A: between two points it is the middle, whoever was
    declared first."""
    return ti.select(kind == POINT_POINT, 0.5, 0.0)


@ti.func
def locate(S: ti.template(), e, k, code, i, j):
    """Bodies, normal, arms and gap of a contact as it stands on the tape."""
    kind = code % PARTS
    A, B, a0, a1, b0, b1, ra, rb, _ids, _share, _part = features(S, e, kind, i, j)
    away = place(S.dim, S.position, k, e, A, S.extent[0]) - place(S.dim, S.position, k, e, B, S.extent[0])
    n, way, gap = closest(S.codes, kind, code // PARTS, away + a0, a1, b0, b1, ra, rb)
    if ti.static(POINT_GRID in S.codes):
        if kind == POINT_GRID:
            phi, _g, m, _bend, R, _w, scale = on_lattice(S, e, j, B, away + a0)
            n, gap = R @ m, scale * phi - ra
    mine = a0 + way
    if kind != RIM_PLANE:
        mine = mine - (ra + shared(kind) * gap) * n
    other = away + mine
    if moves(S, A) == 0:
        A, B, n, mine, other = B, A, -n, other, mine
    if moves(S, B) == 0:
        B = -1
    return A, B, n, mine, other, gap


@ti.func
def moves(S: ti.template(), body):
    """Whether forces move a body: not the world, and nothing that is held."""
    out = 0
    if body >= 0:
        out = 1 - S.held[body]
    return out


@ti.func
def locate_adjoint(S: ti.template(), D: ti.template(), e, k, code, i, j, n_bar, arm_a_bar, arm_b_bar, gap_bar):
    """Adjoint of :func:`locate`, added to that of positions, radii, arms, faces, rotations and scales."""
    kind = code % PARTS
    A, B, a0, a1, b0, b1, ra, rb, ids, share, part = features(S, e, kind, i, j)
    bodies, points = e * S.extent[0], e * S.extent[1]
    away = place(S.dim, S.position, k, e, A, S.extent[0]) - place(S.dim, S.position, k, e, B, S.extent[0])
    mine_bar, other_bar, normal_bar = arm_a_bar, arm_b_bar, n_bar
    if moves(S, A) == 0:
        mine_bar, other_bar, normal_bar = arm_b_bar, arm_a_bar, -n_bar
    both = mine_bar + other_bar
    pulled = ti.select(kind == RIM_PLANE, 0.0, 1.0)
    n, _way, gap = closest(S.codes, kind, code // PARTS, away + a0, a1, b0, b1, ra, rb)
    normal_bar = normal_bar - (pulled * ra + shared(kind) * gap) * both
    P_bar, a1_bar, b0_bar, b1_bar, ra_bar, rb_bar, n = closest_adjoint(
        S.codes, kind, code // PARTS, away + a0, a1, b0, b1, ra, rb, normal_bar, both,
        gap_bar - shared(kind) * n.dot(both))
    if ti.static(POINT_GRID in S.codes):
        if kind == POINT_GRID:
            phi, g, m, bend, R, w, scale = on_lattice(S, e, j, B, away + a0)
            y_bar = (gap_bar * scale) * g + bend.transpose() @ (R.transpose() @ normal_bar)
            P_bar, n, ra_bar = R @ (y_bar / scale), R @ m, -gap_bar
            a1_bar, b0_bar, b1_bar, rb_bar = a1_bar * 0.0, b0_bar * 0.0, b1_bar * 0.0, 0.0 * rb_bar
            at = e * S.census[3] + j
            D.grid_scale[at] = D.grid_scale[at] + ti.cast(gap_bar * phi - y_bar.dot(w) / (scale * scale), ti.f64)
            D.grid_place[at] = D.grid_place[at] - ti.cast(flat(S.dim, y_bar / scale), ti.f64)
            if B >= 0:
                D.turned[bodies + B] = D.turned[bodies + B] + normal_bar.outer_product(m) + (
                    away + a0).outer_product(y_bar / scale)
                D.centre[bodies + B] = D.centre[bodies + B] + ti.cast(flat(S.dim, y_bar / scale), ti.f64)
    ra_bar = ra_bar - pulled * n.dot(both)
    c, o = points + ids[0], points + ids[1]
    D.arm[c] = D.arm[c] + both + P_bar - a1_bar
    D.arm[o] = D.arm[o] + a1_bar
    D.radius[c] = D.radius[c] + ti.cast((1.0 - share) * ra_bar, ti.f64)
    D.radius[o] = D.radius[o] + ti.cast(share * ra_bar, ti.f64)
    if kind == POINT_PLANE or kind == RIM_PLANE:
        p = e * S.extent[2] + j
        D.face[p] = D.face[p] + ti.Vector([b0_bar[0], b0_bar[1], b0_bar[2], rb_bar])
    elif kind != POINT_GRID:
        d, q = points + ids[2], points + ids[3]
        D.arm[d] = D.arm[d] + b0_bar - b1_bar
        D.arm[q] = D.arm[q] + b1_bar
        D.radius[d] = D.radius[d] + ti.cast((1.0 - part) * rb_bar, ti.f64)
        D.radius[q] = D.radius[q] + ti.cast(part * rb_bar, ti.f64)
    away_bar = flat(S.dim, other_bar + P_bar)
    if A >= 0:
        D.position[bodies + A] = D.position[bodies + A] + away_bar
    if B >= 0:
        D.position[bodies + B] = D.position[bodies + B] - away_bar
