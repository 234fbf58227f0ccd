"""Cross products with spins, which are one number in the plane and three in space."""

from taichi_sim.runtime import ti


@ti.func
def spin_cross(w, a):
    """``ω × a``. With ``arm_cross`` it obeys the rules of the triple product in both dimensions: the adjoint of
    ``p = ω × a`` is ``ω_bar = a × p_bar`` and ``a_bar = -ω × p_bar``."""
    if ti.static(w.n == 1):
        return ti.Vector([-w[0] * a[1], w[0] * a[0]])
    else:
        return w.cross(a)


@ti.func
def arm_cross(a, b):
    """``a × b`` as a spin or torque. The adjoint of ``q = a × b`` is ``a_bar = -q_bar × b``, ``b_bar = q_bar × a``."""
    if ti.static(a.n == 2):
        return ti.Vector([a[0] * b[1] - a[1] * b[0]])
    else:
        return a.cross(b)
