"""Forces of springs and of bending, on one of their ends, and the adjoints of these ends."""

from taichi_sim.runtime import ti

#: A spring shorter than this share of its rest length has no direction, nor has a side of a bend shorter than this
#: share of the other.
NO_DIRECTION = 1e-6


@ti.func
def one_over(length, least):
    """``1 / length``, and 0 where it is not above ``least``."""
    r = length * 0.0
    if length > least:
        r = 1.0 / length
    return r


@ti.func
def spring_force(e, w, k, c, rest):
    """Force on the first end of a spring: ``k (l - rest) e/l + c (w · e/l) e/l`` for the vector ``e`` and the relative
    velocity ``w`` towards the second end.

    Coincident ends have no direction: there ``rest`` and damping do not act, which leaves ``k e``.
    """
    length = e.norm()
    inverse = one_over(length, NO_DIRECTION * ti.abs(rest) + 1e-15)
    t = inverse * e
    return k * (e - rest * t) + (c * w.dot(t)) * t


@ti.func
def spring_force_adjoint(e, w, k, c, rest, bar):
    """Adjoint of :func:`spring_force`: ``e_bar``, ``w_bar``, ``k_bar``, ``c_bar``, ``rest_bar``."""
    length = e.norm()
    inverse = one_over(length, NO_DIRECTION * ti.abs(rest) + 1e-15)
    t = inverse * e
    pull, rate = bar.dot(t), w.dot(t)
    t_bar = -k * rest * bar + c * (pull * w + rate * bar)
    e_bar = k * bar + inverse * (t_bar - t_bar.dot(t) * t)
    return e_bar, (c * pull) * t, bar.dot(e - rest * t), pull * rate, -k * pull


@ti.func
def one_over_both(e1, e2):
    """``1 / length`` of the sides of a bend; 0 for one that is nothing beside the other."""
    l1, l2 = e1.norm(), e2.norm()
    return one_over(l1, NO_DIRECTION * l2 + 1e-15), one_over(l2, NO_DIRECTION * l1 + 1e-15)


@ti.func
def bend_slopes(e1, e2):
    """Derivatives by ``e1`` and ``e2`` of the bending energy a stiffness, ``1 - t1 · t2`` (unit vectors ``t``).

    For small angles that is half the angle squared; a bend of ``π`` has the energy 2. The rest shape is straight.
    """
    i1, i2 = one_over_both(e1, e2)
    t1, t2 = i1 * e1, i2 * e2
    c = t1.dot(t2)
    return -i1 * (t2 - c * t1), -i2 * (t1 - c * t2)


@ti.func
def bend_slopes_adjoint(e1, e2, p1, p2):
    """Adjoint of :func:`bend_slopes`: ``e1_bar``, ``e2_bar``."""
    i1, i2 = one_over_both(e1, e2)
    t1, t2 = i1 * e1, i2 * e2
    c = t1.dot(t2)
    c_bar = i1 * p1.dot(t1) + i2 * p2.dot(t2)
    t1_bar = c * i1 * p1 - i2 * p2 + c_bar * t2
    t2_bar = c * i2 * p2 - i1 * p1 + c_bar * t1
    shrink1, shrink2 = i1 * i1 * (p1.dot(t2) - c * p1.dot(t1)), i2 * i2 * (p2.dot(t1) - c * p2.dot(t2))
    return (i1 * (t1_bar - t1_bar.dot(t1) * t1) + shrink1 * t1, i2 * (t2_bar - t2_bar.dot(t2) * t2) + shrink2 * t2)


@ti.func
def bend_part(place, g1, g2):
    """Force, a stiffness, on the corner ``place`` of a bend: the corners move ``e1`` and ``e2`` by -1 and +1."""
    r = g1
    if place == 1:
        r = g2 - g1
    elif place == 2:
        r = -g2
    return r
