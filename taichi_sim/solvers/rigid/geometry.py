"""Where a contact is: gap, normal and arms from poses; and the adjoint of all of them.

A contact acts between body A, which carries a point with a radius, and body B (or the world), which carries a plane or
another point with a radius. The normal points from B to A; both bodies are pushed at one place, on the surface of A,
so that momentum and angular momentum are conserved to rounding.

Columns of ``contact``: normal 0-2, arm of A 3-5, arm of B 6-8, gap 9, then the law's K 10, b 11, μ 12, d 13, vs 14,
and room for the solve: frozen normal impulse 15, normal impulse 16.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.arrays import POINT_PLANE
from taichi_sim.solvers.rigid.rotation import flat, lift

GAP, STIFF, BIAS, FRICTION, DAMPING, STICTION, FROZEN, NORMAL = 9, 10, 11, 12, 13, 14, 15, 16


@ti.func
def column3(rows: ti.template(), i, first: ti.template()):
    """Three neighbouring columns as a vector."""
    return ti.Vector([rows[i][first], rows[i][first + 1], rows[i][first + 2]])


@ti.func
def arm_of_point(dim: ti.template(), e, i, body, bodies, points, turned: ti.template(), centre: ti.template(),
                 point: ti.template()):
    """Point ``i`` of ``body`` relative to its centre of mass, world axes."""
    b = e * bodies + body
    return turned[b] @ lift(dim, point[e * points + i] - centre[b])


@ti.func
def add_arm_adjoint(dim: ti.template(), e, i, body, bodies, points, turned: ti.template(), centre: ti.template(),
                    point: ti.template(), turned_bar: ti.template(), d_centre: ti.template(), d_point: ti.template(),
                    bar):
    """Adjoint of :func:`arm_of_point`, added where it belongs."""
    b = e * bodies + body
    turned_bar[b] += bar.outer_product(lift(dim, point[e * points + i] - centre[b]))
    local = ti.cast(flat(dim, turned[b].transpose() @ bar), ti.f64)
    d_point[e * points + i] += local
    d_centre[b] -= local


@ti.func
def place(dim: ti.template(), position: ti.template(), k, e, body, bodies):
    """Centre of mass of a body; the origin for the world (-1)."""
    out = ti.Vector([0.0, 0.0, 0.0])
    if body >= 0:
        out = lift(dim, position[k, e * bodies + body])
    return out


@ti.func
def face(dim: ti.template(), e, j, body, bodies, planes, turned: ti.template(), centre: ti.template(),
         plane_normal: ti.template(), plane_offset: ti.template()):
    """Plane ``j`` in world axes: its normal, and its offset as seen from the centre of mass of its body."""
    local = plane_normal[e * planes + j]
    n = lift(dim, local)
    offset = plane_offset[e * planes + j]
    if body >= 0:
        b = e * bodies + body
        n = turned[b] @ n
        offset = offset - local.dot(centre[b])
    return n, offset


@ti.func
def locate(dim: ti.template(), e, k, kind, i, j, A, B, extent: ti.template(), position: ti.template(),
           turned: ti.template(), centre: ti.template(), point: ti.template(), radius: ti.template(),
           plane_normal: ti.template(), plane_offset: ti.template()):
    """Normal, arms and gap of point ``i`` of A against plane or point ``j`` of B."""
    bodies, points, planes = extent[0], extent[1], extent[2]
    arm = arm_of_point(dim, e, i, A, bodies, points, turned, centre, point)
    away = place(dim, position, k, e, A, bodies) + arm - place(dim, position, k, e, B, bodies)
    r = radius[e * points + i]
    n = ti.Vector([0.0, 0.0, 0.0])
    gap = 0.0
    if kind == POINT_PLANE:
        n, offset = face(dim, e, j, B, bodies, planes, turned, centre, plane_normal, plane_offset)
        gap = n.dot(away) - offset - r
    else:
        between = away - arm_of_point(dim, e, j, B, bodies, points, turned, centre, point)
        distance = ti.sqrt(ti.max(between.norm_sqr(), 1e-30))
        n = between / distance
        gap = distance - r - radius[e * points + j]
    return n, arm - r * n, away - r * n, gap


@ti.func
def locate_adjoint(dim: ti.template(), e, k, kind, i, j, A, B, extent: ti.template(), position: ti.template(),
                   turned: ti.template(), centre: ti.template(), point: ti.template(), radius: ti.template(),
                   plane_normal: ti.template(), turned_bar: ti.template(), d_position: ti.template(),
                   d_centre: ti.template(), d_point: ti.template(), d_radius: ti.template(),
                   d_plane_normal: ti.template(), d_plane_offset: ti.template(), n_bar, arm_a_bar, arm_b_bar, gap_bar):
    """Adjoint of :func:`locate`, added where it belongs."""
    bodies, points, planes = extent[0], extent[1], extent[2]
    arm = arm_of_point(dim, e, i, A, bodies, points, turned, centre, point)
    away = place(dim, position, k, e, A, bodies) + arm - place(dim, position, k, e, B, bodies)
    r = radius[e * points + i]
    away_bar = arm_b_bar
    normal_bar = n_bar - r * (arm_a_bar + arm_b_bar)
    r_bar = -gap_bar
    if kind == POINT_PLANE:
        p = e * planes + j
        local = plane_normal[p]
        n = lift(dim, local)
        d_plane_offset[p] -= ti.cast(gap_bar, ti.f64)
        if B >= 0:
            n = turned[e * bodies + B] @ n
        r_bar = r_bar - n.dot(arm_a_bar + arm_b_bar)
        away_bar = away_bar + gap_bar * n
        normal_bar = normal_bar + gap_bar * away
        if B >= 0:
            b = e * bodies + B
            turned_bar[b] += normal_bar.outer_product(lift(dim, local))
            d_plane_normal[p] += ti.cast(flat(dim, turned[b].transpose() @ normal_bar) + gap_bar * centre[b], ti.f64)
            d_centre[b] += ti.cast(gap_bar * local, ti.f64)
        else:
            d_plane_normal[p] += ti.cast(flat(dim, normal_bar), ti.f64)
    else:
        between = away - arm_of_point(dim, e, j, B, bodies, points, turned, centre, point)
        distance = ti.sqrt(ti.max(between.norm_sqr(), 1e-30))
        n = between / distance
        r_bar = r_bar - n.dot(arm_a_bar + arm_b_bar)
        between_bar = gap_bar * n + (normal_bar - n.dot(normal_bar) * n) / distance
        away_bar = away_bar + between_bar
        d_radius[e * points + j] -= ti.cast(gap_bar, ti.f64)
        add_arm_adjoint(dim, e, j, B, bodies, points, turned, centre, point, turned_bar, d_centre, d_point,
                        -between_bar)
    d_radius[e * points + i] += ti.cast(r_bar, ti.f64)
    d_position[e * bodies + A] += flat(dim, away_bar)
    if B >= 0:
        d_position[e * bodies + B] -= flat(dim, away_bar)
    add_arm_adjoint(dim, e, i, A, bodies, points, turned, centre, point, turned_bar, d_centre, d_point,
                    arm_a_bar + away_bar)
