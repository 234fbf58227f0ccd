"""Where shapes and contacts are: world axes, gaps, normals and arms from poses; and the adjoint of all of them.

A contact acts between body A, which carries a point with a radius, and body B (or the world), which carries a plane or
another point with a radius, or an edge: a line through a point along the normal of a plane. The normal points from B
to A; both bodies are pushed at one place, on the surface of A, so that momentum and angular momentum are conserved to
rounding.

Columns of ``contact``: normal 0-2, arm of A 3-5, arm of B 6-8, gap 9, then the law's K 10, b 11, μ 12, d 13, vs 14,
and room for the solve: frozen normal impulse 15, normal impulse 16.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.arrays import POINT_EDGE, POINT_PLANE
from taichi_sim.solvers.rigid.rotation import flat, lift

GAP, STIFF, BIAS, FRICTION, DAMPING, STICTION, FROZEN, NORMAL = 9, 10, 11, 12, 13, 14, 15, 16


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
def orient(dim: ti.template(), e, extent: ti.template(), turned: ti.template(), centre: ti.template(),
           point: ti.template(), plane_normal: ti.template(), plane_offset: ti.template(),
           point_body: ti.template(), plane_body: ti.template(), arm: ti.template(), face: ti.template()):
    """Points and planes in world axes, as seen from the centre of mass of their body: ``arm = R (point - centre)``;
    ``face``: normal ``R n`` and offset ``o - n · centre``."""
    bodies, points, planes = extent[0], extent[1], extent[2]
    for i in range(points):
        b = e * bodies + point_body[i]
        arm[e * points + i] = turned[b] @ lift(dim, point[e * points + i] - centre[b])
    for j in range(planes):
        p = e * planes + j
        n = lift(dim, plane_normal[p])
        offset = plane_offset[p]
        if plane_body[j] >= 0:
            b = e * bodies + plane_body[j]
            offset = offset - plane_normal[p].dot(centre[b])
            n = turned[b] @ n
        face[p] = ti.Vector([n[0], n[1], n[2], offset])


@ti.func
def clear_orient_adjoint(e, extent: ti.template(), arm_bar: ti.template(), face_bar: ti.template()):
    """Set the adjoints of arms and faces to zero."""
    for i in range(e * extent[1], (e + 1) * extent[1]):
        arm_bar[i] = arm_bar[i] * 0.0
    for j in range(e * extent[2], (e + 1) * extent[2]):
        face_bar[j] = face_bar[j] * 0.0


@ti.func
def orient_adjoint(dim: ti.template(), e, extent: ti.template(), turned: ti.template(), centre: ti.template(),
                   point: ti.template(), plane_normal: ti.template(), point_body: ti.template(),
                   plane_body: ti.template(), arm_bar: ti.template(), face_bar: ti.template(),
                   turned_bar: ti.template(), d_centre: ti.template(), d_point: ti.template(),
                   d_plane_normal: ti.template(), d_plane_offset: ti.template()):
    """Adjoint of :func:`orient`, added to that of rotations, centres, points and planes."""
    bodies, points, planes = extent[0], extent[1], extent[2]
    for i in range(points):
        a = e * points + i
        b = e * bodies + point_body[i]
        turned_bar[b] = turned_bar[b] + arm_bar[a].outer_product(lift(dim, point[a] - centre[b]))
        local = ti.cast(flat(dim, turned[b].transpose() @ arm_bar[a]), ti.f64)
        d_point[a] = d_point[a] + local
        d_centre[b] = d_centre[b] - local
    for j in range(planes):
        p = e * planes + j
        n_bar = column3(face_bar, p, 0)
        offset_bar = face_bar[p][3]
        d_plane_offset[p] = d_plane_offset[p] + ti.cast(offset_bar, ti.f64)
        if plane_body[j] >= 0:
            b = e * bodies + plane_body[j]
            turned_bar[b] = turned_bar[b] + n_bar.outer_product(lift(dim, plane_normal[p]))
            local = flat(dim, turned[b].transpose() @ n_bar) - offset_bar * centre[b]
            d_plane_normal[p] = d_plane_normal[p] + ti.cast(local, ti.f64)
            d_centre[b] = d_centre[b] - ti.cast(offset_bar * plane_normal[p], ti.f64)
        else:
            d_plane_normal[p] = d_plane_normal[p] + ti.cast(flat(dim, n_bar), ti.f64)


@ti.func
def locate(dim: ti.template(), e, k, kind, i, j, A, B, extent: ti.template(), position: ti.template(),
           radius: ti.template(), arm: ti.template(), face: ti.template()):
    """Normal, arms and gap of point ``i`` of A against plane or point ``j`` of B, or the edge through the latter."""
    bodies, points, planes = extent[0], extent[1], extent[2]
    mine = arm[e * points + i]
    away = place(dim, position, k, e, A, bodies) + mine - place(dim, position, k, e, B, bodies)
    r = radius[e * points + i]
    n = ti.Vector([0.0, 0.0, 0.0])
    gap = 0.0
    if kind == POINT_PLANE:
        n = column3(face, e * planes + j, 0)
        gap = n.dot(away) - face[e * planes + j][3] - r
    else:
        between = away - arm[e * points + j]
        if kind >= POINT_EDGE:
            u = column3(face, e * planes + kind - POINT_EDGE, 0)
            between = between - u.dot(between) * u
        distance = ti.sqrt(ti.max(between.norm_sqr(), 1e-30))
        n = between / distance
        gap = distance - r - radius[e * points + j]
    return n, mine - r * n, away - r * n, gap


@ti.func
def locate_adjoint(dim: ti.template(), e, k, kind, i, j, A, B, extent: ti.template(), position: ti.template(),
                   radius: ti.template(), arm: ti.template(), face: ti.template(), arm_bar: ti.template(),
                   face_bar: ti.template(), d_position: ti.template(), d_radius: ti.template(), n_bar, arm_a_bar,
                   arm_b_bar, gap_bar):
    """Adjoint of :func:`locate`, added to that of positions, radii, arms and faces."""
    bodies, points, planes = extent[0], extent[1], extent[2]
    a = e * points + i
    away = place(dim, position, k, e, A, bodies) + arm[a] - place(dim, position, k, e, B, bodies)
    away_bar = arm_b_bar
    both = arm_a_bar + arm_b_bar
    normal_bar = n_bar - radius[a] * both
    n = ti.Vector([0.0, 0.0, 0.0])
    if kind == POINT_PLANE:
        p = e * planes + j
        n = column3(face, p, 0)
        away_bar = away_bar + gap_bar * n
        normal_bar = normal_bar + gap_bar * away
        face_bar[p] = face_bar[p] + ti.Vector([normal_bar[0], normal_bar[1], normal_bar[2], -gap_bar])
    else:
        other = e * points + j
        straight = away - arm[other]
        between = straight
        u = n
        if kind >= POINT_EDGE:
            u = column3(face, e * planes + kind - POINT_EDGE, 0)
            between = straight - u.dot(straight) * u
        distance = ti.sqrt(ti.max(between.norm_sqr(), 1e-30))
        n = between / distance
        between_bar = gap_bar * n + (normal_bar - n.dot(normal_bar) * n) / distance
        if kind >= POINT_EDGE:
            p = e * planes + kind - POINT_EDGE
            u_bar = -u.dot(straight) * between_bar - u.dot(between_bar) * straight
            between_bar = between_bar - u.dot(between_bar) * u
            face_bar[p] = face_bar[p] + ti.Vector([u_bar[0], u_bar[1], u_bar[2], 0.0])
        away_bar = away_bar + between_bar
        arm_bar[other] = arm_bar[other] - between_bar
        d_radius[other] = d_radius[other] - ti.cast(gap_bar, ti.f64)
    d_radius[a] = d_radius[a] - ti.cast(gap_bar + n.dot(both), ti.f64)
    arm_bar[a] = arm_bar[a] + arm_a_bar + away_bar
    d_position[e * bodies + A] = d_position[e * bodies + A] + flat(dim, away_bar)
    if B >= 0:
        d_position[e * bodies + B] = d_position[e * bodies + B] - flat(dim, away_bar)
