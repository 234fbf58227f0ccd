"""Contact of grid nodes with walls and static obstacles, and its adjoint.

Walls and obstacles of any shape are one thing to the kernels: a list of contacts at a node, each with a normal,
a weight ``alpha`` in [0, 1] (1 at walls; 1 half a cell inside an obstacle, falling smoothly to 0 half a cell outside),
a kind and a friction coefficient. Shapes live on the host: their derivative is the adjoint of normal and weight,
chained there.
"""

from taichi_sim.runtime import ti

STICKY, SLIP, SEPARATE = 0, 1, 2
KINDS = {"sticky": STICKY, "slip": SLIP, "separate": SEPARATE}

#: More contacts than a node has.
ALL = 2**30


@ti.func
def project(v, n, kind, friction):
    """Velocity after contact: none (sticky), tangential (slip), or Coulomb friction while approaching (separate).

    Coulomb: an impulse ``-v_n`` a mass holds back at most ``-μ v_n``: ``v_t (1 + μ v_n / |v_t|)`` for ``v_n < 0``,
    nothing left within the cone.
    """
    out = v
    u = v.dot(n)
    if kind == STICKY:
        out = v * 0.0
    elif kind == SLIP:
        out = v - u * n
    elif u < 0.0:
        tangential = v - u * n
        s2 = tangential.dot(tangential)
        out = v * 0.0
        if friction == 0.0:
            out = tangential
        elif s2 > 0.0:
            s = ti.sqrt(s2)
            if s + friction * u > 0.0:
                out = (1.0 + friction * u / s) * tangential
    return out


@ti.func
def project_adjoint(v, n, kind, friction, out_bar):
    """Adjoint of :func:`project`: ``v_bar``, ``n_bar``, ``friction_bar``."""
    v_bar = out_bar
    n_bar = v * 0.0
    friction_bar = v[0] * 0.0
    u = v.dot(n)
    if kind == STICKY:
        v_bar = v * 0.0
    elif kind == SLIP:
        along = out_bar.dot(n)
        v_bar = out_bar - along * n
        n_bar = -u * out_bar - along * v
    elif u < 0.0:
        tangential = v - u * n
        s2 = tangential.dot(tangential)
        v_bar = v * 0.0
        t_bar = v * 0.0
        u_bar = v[0] * 0.0
        sliding = 0
        if friction == 0.0:
            sliding = 1
            t_bar = out_bar
            if s2 > 0.0:
                friction_bar = out_bar.dot(tangential) * u / ti.sqrt(s2)
        elif s2 > 0.0:
            s = ti.sqrt(s2)
            if s + friction * u > 0.0:
                sliding = 1
                f_bar = out_bar.dot(tangential)
                t_bar = (1.0 + friction * u / s) * out_bar - (f_bar * friction * u / (s * s2)) * tangential
                u_bar = f_bar * friction / s
                friction_bar = f_bar * u / s
        if sliding == 1:
            u_bar = u_bar - t_bar.dot(n)
            n_bar = u_bar * v - u * t_bar
            v_bar = t_bar + u_bar * n
    return v_bar, n_bar, friction_bar


@ti.func
def touch(v, head, contact_next: ti.template(), contact_kind: ti.template(), contact_normal: ti.template(),
          contact_alpha: ti.template(), contact_friction: ti.template()):
    """Apply every contact of a node in turn."""
    after, _last = touch_some(v, head, ALL, contact_next, contact_kind, contact_normal, contact_alpha, contact_friction)
    return after


@ti.func
def touch_some(v, head, count, contact_next: ti.template(), contact_kind: ti.template(),
               contact_normal: ti.template(), contact_alpha: ti.template(), contact_friction: ti.template()):
    """Velocity after the first ``count`` contacts of a node, and the contact that would come next (-1: none)."""
    out = v
    c = head
    done = 0
    while c >= 0 and done < count:
        after = project(out, contact_normal[c], contact_kind[c], contact_friction[c])
        out = out + contact_alpha[c] * (after - out)
        c = contact_next[c]
        done = done + 1
    return out, c


@ti.func
def touch_adjoint(v, head, v_bar, counts, contact_next: ti.template(), contact_kind: ti.template(),
                  contact_normal: ti.template(), contact_alpha: ti.template(), contact_friction: ti.template(),
                  d_contact_normal: ti.template(), d_contact_alpha: ti.template(), d_contact_friction: ti.template()):
    """Adjoint of :func:`touch`. A contact belongs to one node (and its periodic images, for which ``counts`` is 0), so
    its adjoints are added without atomics."""
    out_bar = v_bar
    length = 0
    c = head
    while c >= 0:
        length = length + 1
        c = contact_next[c]
    for back in range(length):
        before, e = touch_some(v, head, length - 1 - back, contact_next, contact_kind, contact_normal, contact_alpha,
                               contact_friction)
        n = contact_normal[e]
        alpha = contact_alpha[e]
        after = project(before, n, contact_kind[e], contact_friction[e])
        through, n_bar, friction_bar = project_adjoint(before, n, contact_kind[e], contact_friction[e], alpha * out_bar)
        if counts == 1:
            d_contact_alpha[e] = d_contact_alpha[e] + ti.cast(out_bar.dot(after - before), ti.f64)
            d_contact_friction[e] = d_contact_friction[e] + ti.cast(friction_bar, ti.f64)
            d_contact_normal[e] = d_contact_normal[e] + ti.cast(n_bar, ti.f64)
        out_bar = (1.0 - alpha) * out_bar + through
    return out_bar
