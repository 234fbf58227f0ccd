"""Hard walls: half-spaces that stop particles at the moment of impact, and their adjoint.

What is left of a velocity is nothing (sticky), the part along the wall (slip), or that part less Coulomb's friction for
the impulse that stops the rest (separate). A particle that leaves is never held. The drift is split where the particle
meets the wall, so that it ends on the wall; a wall turns both the velocity and the rest of the drift, and the next wall
sees what is left.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.particles.arrays import COMPLIANT, SLIP, STICKY


@ti.func
def stop(v, n, kind, friction):
    """Velocity after the impact on a wall, for ``v · n < 0``."""
    along = v - v.dot(n) * n
    size = along.norm()
    keep = size * 0.0
    if kind == SLIP or (kind != STICKY and friction == 0.0):
        keep = 1.0
    elif kind != STICKY and size > 0.0:
        keep = ti.max(0.0, 1.0 + friction * v.dot(n) / size)
    return keep * along


@ti.func
def stop_adjoint(v, n, kind, friction, bar):
    """Adjoint of :func:`stop`: ``v_bar``, ``n_bar``, ``friction_bar``."""
    u = v.dot(n)
    along = v - u * n
    size = along.norm()
    along_bar, u_bar, friction_bar = bar * 0.0, u * 0.0, u * 0.0
    if kind == SLIP:
        along_bar = bar
    elif kind != STICKY and size > 0.0:
        keep = 1.0 + friction * u / size
        if keep > 0.0:
            slope = bar.dot(along) / size
            along_bar = keep * bar - (friction * u / size * slope / size) * along
            u_bar, friction_bar = friction * slope, u * slope
    elif kind != STICKY and friction == 0.0:
        along_bar = bar
    u_bar = u_bar - along_bar.dot(n)
    return along_bar + u_bar * n, u_bar * v - u * along_bar, friction_bar


@ti.func
def meet(x, v, s, r, n, offset, h):
    """Whether the drift ``s`` of a particle meets a wall, and the share of the step before it does."""
    gap = n.dot(x) - offset - r
    along = s.dot(n)
    met, share = 0, gap * 0.0
    if gap + along < 0.0 and v.dot(n) < 0.0:
        met = 1
        if gap > 0.0:
            share = -gap / along
    return met, share, gap, along


@ti.func
def walls(count, first, x, free, r, h, wall_kind: ti.template(), wall_normal: ti.template(), wall: ti.template()):
    """Velocity and drift after the first ``count`` hard walls of the environment whose first wall is ``first``."""
    v, s = free, h * free
    for i in range(count):
        if wall_kind[i] != COMPLIANT:
            n = wall_normal[first + i]
            met, share, _gap, _along = meet(x, v, s, r, n, wall[first + i][0], h)
            if met == 1:
                v = stop(v, n, wall_kind[i], wall[first + i][1])
                s = share * s + (1.0 - share) * h * v
    return v, s


@ti.func
def walls_adjoint(part, count, first, x, free, r, h, v_bar, s_bar, wall_kind: ti.template(),
                  wall_normal: ti.template(), wall: ti.template(), d_wall_normal: ti.template(),
                  d_wall: ti.template()):
    """Adjoint of :func:`walls`: of ``free``, ``x``, ``r`` and ``h``; those of the walls are added."""
    vb, sb, xb = v_bar, s_bar, x * 0.0
    rb, hb = r * 0.0, r * 0.0
    for back in range(count):
        i = count - 1 - back
        w = first + i
        if wall_kind[i] != COMPLIANT:
            n = wall_normal[w]
            v, s = walls(i, first, x, free, r, h, wall_kind, wall_normal, wall)
            met, share, gap, along = meet(x, v, s, r, n, wall[w][0], h)
            if met == 1:
                after = stop(v, n, wall_kind[i], wall[w][1])
                hb = hb + (1.0 - share) * sb.dot(after)
                share_bar = sb.dot(s - h * after)
                after_bar = vb + ((1.0 - share) * h) * sb
                sb = share * sb
                vb, n_bar, friction_bar = stop_adjoint(v, n, wall_kind[i], wall[w][1], after_bar)
                gap_bar = r * 0.0
                if gap > 0.0:
                    gap_bar = -share_bar / along
                    along_bar = share_bar * gap / (along * along)
                    sb = sb + along_bar * n
                    n_bar = n_bar + along_bar * s
                xb = xb + gap_bar * n
                rb = rb - gap_bar
                n_bar = n_bar + gap_bar * x
                d_wall_normal[part, w] = d_wall_normal[part, w] + ti.cast(n_bar, ti.f64)
                d_wall[part, w] = d_wall[part, w] + ti.cast(ti.Vector([-gap_bar, friction_bar]), ti.f64)
    return vb + h * sb, xb, rb, hb + sb.dot(free)
