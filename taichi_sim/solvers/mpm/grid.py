"""Velocity update of a grid node, and its adjoint: momentum to velocity, gravity, fields, damping, contact.

What a backward sweep needs of the forward one is the momentum and mass of the active nodes, kept in ``saved``; all
else is computed again, node by node.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.mpm.contact import touch, touch_adjoint
from taichi_sim.solvers.mpm.order import images
from taichi_sim.solvers.mpm.spline import NODE_MASK
from taichi_sim.solvers.mpm.transfer import vec4, xyz


@ti.func
def push(dim: ti.template(), fields: ti.template(), v, node, f, env, gravity: ti.template(),
         field_acceleration: ti.template(), field_gain: ti.template(), dt, damping):
    """Free velocity after one step: ``(v + dt a) / (1 + dt damping)``, ``a`` = gravity plus fields."""
    a = gravity[env]
    if ti.static(fields > 0):
        nodes = field_acceleration.shape[0] // ti.static(max(fields, 1))
        for j in ti.static(range(fields)):
            a = a + field_gain[f, env * fields + j] * field_acceleration[j * nodes + node]
    return (v + dt * a) / (1.0 + dt * damping)


@ti.func
def node_velocity(dim: ti.template(), fields: ti.template(), m, node, f, env, plane, gravity: ti.template(),
                  field_acceleration: ti.template(), field_gain: ti.template(), dt, damping, floor,
                  contact_head: ti.template(), contact_next: ti.template(), contact_kind: ti.template(),
                  contact_normal: ti.template(), contact_alpha: ti.template(), contact_friction: ti.template()):
    """Velocity (first ``dim`` components) and mass (last) of a node from its momentum and mass ``m``."""
    out = vec4(dim, m * 0.0, m[3])
    if m[3] > floor:
        free = push(dim, fields, xyz(dim, m) / m[3], node, f, env, gravity, field_acceleration, field_gain, dt, damping)
        touched = touch(free, contact_head[plane + node], contact_next, contact_kind, contact_normal, contact_alpha,
                        contact_friction)
        out = vec4(dim, touched, m[3])
    return out


@ti.func
def node_velocity_adjoint(dim: ti.template(), fields: ti.template(), m, out_bar, counts, node, f, env, part, plane,
                          gravity: ti.template(), field_acceleration: ti.template(), field_gain: ti.template(),
                          d_field_gain: ti.template(), dt, damping, floor,
                          contact_head: ti.template(), contact_next: ti.template(), contact_kind: ti.template(),
                          contact_normal: ti.template(), contact_alpha: ti.template(),
                          contact_friction: ti.template(), d_contact_normal: ti.template(),
                          d_contact_alpha: ti.template(), d_contact_friction: ti.template()):
    """Adjoint of :func:`node_velocity`.

    Nodes outside the period (``counts`` 0) mirror one inside, which alone adds to the adjoints of parameters.
    Returns the adjoint of momentum and mass, and of gravity, ``dt`` and damping (to be summed by the caller).
    """
    m_bar = m * 0.0
    a_bar = xyz(dim, m) * 0.0
    dt_bar = m[3] * 0.0
    damping_bar = m[3] * 0.0
    if m[3] > floor:
        inverse = 1.0 / m[3]
        v = xyz(dim, m) * inverse
        touched_bar = xyz(dim, out_bar)
        pushed = push(dim, fields, v, node, f, env, gravity, field_acceleration, field_gain, dt, damping)
        head = contact_head[plane + node]
        if head >= 0:
            touched_bar = touch_adjoint(pushed, head, touched_bar, counts, contact_next, contact_kind, contact_normal,
                                  contact_alpha, contact_friction, d_contact_normal, d_contact_alpha,
                                  d_contact_friction)
        scale = 1.0 / (1.0 + dt * damping)
        along = touched_bar.dot(pushed) * scale
        v_bar = touched_bar * scale
        damping_bar = -along * dt
        a_bar = v_bar * dt
        a = gravity[env]
        if ti.static(fields > 0):
            nodes = field_acceleration.shape[0] // ti.static(max(fields, 1))
            for j in ti.static(range(fields)):
                local = field_acceleration[j * nodes + node]
                a = a + field_gain[f, env * fields + j] * local
                if counts == 1:
                    d_field_gain[part, f, env * fields + j] = d_field_gain[part, f, env * fields + j] + ti.cast(
                        a_bar.dot(local), ti.f64
                    )
        dt_bar = v_bar.dot(a) - along * damping
        m_bar = vec4(dim, v_bar * inverse, -v_bar.dot(v) * inverse)
    return m_bar, a_bar, dt_bar, damping_bar


@ti.func
def sum_copies(dim: ti.template(), periodic: ti.template(), partitions: ti.template(), copies: ti.template(), first,
               stride, J, node, sizes, strides, lattice: ti.template()):
    """Sum of a node over the private copies of its environment, and over its periodic images.

    ``periodic`` tells axis by axis; without periodic axes the copies are cleared on the way (nobody else reads them).
    """
    total = copies[first] * 0.0
    if ti.static(periodic.count(True) == 0):
        for k in ti.static(range(partitions)):
            c = (first + k * stride + node) & NODE_MASK
            total = total + copies[c]
            copies[c] = copies[c] * 0.0
    else:
        for image in ti.static(images(periodic)):
            other = node
            inside = 1
            for d in ti.static(range(dim)):
                if ti.static(image[d] != 0):
                    period = ti.cast(lattice[6 + d] * lattice[1] + 0.5, ti.i32)
                    index = J[d] + ti.static(image[d]) * period
                    if index < 0 or index >= sizes[d]:
                        inside = 0
                    other = other + ti.static(image[d]) * period * strides[d]
            if inside == 1:
                for k in ti.static(range(partitions)):
                    total = total + copies[(first + k * stride + other) & NODE_MASK]
    return total
