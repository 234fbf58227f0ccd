"""Poses inside kernels: from what arrays store in 2-D or 3-D to three-dimensional vectors, and back; and the drift."""

from taichi_sim.core.maths import add_scaled_identity, axial, double_dot, skew, trace
from taichi_sim.runtime import ti


@ti.func
def lift(dim: ti.template(), x):
    """Vector of the space as a 3-vector."""
    out = ti.Vector([x[0], x[1], 0.0])
    if ti.static(dim == 3):
        out = ti.Vector([x[0], x[1], x[2]])
    return out


@ti.func
def flat(dim: ti.template(), x):
    """3-vector as a vector of the space; the transpose of :func:`lift`."""
    return ti.Vector([x[d] for d in ti.static(range(dim))])


@ti.func
def lift_turn(dim: ti.template(), w):
    """Angular velocity or torque as a 3-vector."""
    out = ti.Vector([0.0, 0.0, w[0]])
    if ti.static(dim == 3):
        out = ti.Vector([w[0], w[1], w[2]])
    return out


@ti.func
def flat_turn(dim: ti.template(), w):
    """3-vector as an angular velocity; the transpose of :func:`lift_turn`."""
    return ti.Vector([w[d] for d in ti.static(range(2 if dim == 2 else 0, 3))])


@ti.func
def lift_inertia(dim: ti.template(), i):
    """Inertia in body axes as a matrix. In 2-D the two moments that nothing turns about are 1."""
    out = ti.Matrix([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, i[0]]])
    if ti.static(dim == 3):
        out = ti.Matrix([[i[0], i[3], i[4]], [i[3], i[1], i[5]], [i[4], i[5], i[2]]])
    return out


@ti.func
def lift_inertia_adjoint(dim: ti.template(), bar):
    """Adjoint of :func:`lift_inertia`: off-diagonal moments stand in two places."""
    off = bar + bar.transpose()
    all_six = ti.Vector([bar[2, 2], bar[0, 0], bar[1, 1], bar[2, 2], off[0, 1], off[0, 2], off[1, 2]])
    return ti.Vector([all_six[d] for d in ti.static(range(1) if dim == 2 else range(1, 7))])


@ti.func
def rotation_matrix(dim: ti.template(), q):
    """Matrix of an angle, or of a quaternion (w, v) of any length, s = 2/|q|²:
    ``I + s (w skew(v) + v vᵀ - |v|² I)``."""
    out = skew(ti.Vector([0.0, 0.0, 0.0]))
    if ti.static(dim == 2):
        c, s = ti.cos(q[0]), ti.sin(q[0])
        out = ti.Matrix([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    else:
        v = ti.Vector([q[1], q[2], q[3]])
        s = 2.0 / q.norm_sqr()
        out = add_scaled_identity(s * (v.outer_product(v) + q[0] * skew(v)), 1.0 - s * v.norm_sqr())
    return out


@ti.func
def rotation_matrix_adjoint(dim: ti.template(), q, bar):
    """Adjoint of :func:`rotation_matrix`."""
    out = q
    if ti.static(dim == 2):
        c, s = ti.cos(q[0]), ti.sin(q[0])
        out = ti.Vector([c * (bar[1, 0] - bar[0, 1]) - s * (bar[0, 0] + bar[1, 1])])
    else:
        v = ti.Vector([q[1], q[2], q[3]])
        s = 2.0 / q.norm_sqr()
        s_bar = double_dot(bar, add_scaled_identity(v.outer_product(v) + q[0] * skew(v), -v.norm_sqr()))
        w_bar = s * double_dot(bar, skew(v))
        v_bar = s * (q[0] * axial(bar) + bar @ v + bar.transpose() @ v - 2.0 * trace(bar) * v)
        out = ti.Vector([w_bar, v_bar[0], v_bar[1], v_bar[2]]) - (s * s * s_bar) * q
    return out


@ti.func
def half_turn(w, h):
    """``y = h w / 2``, ``cos |y|``, ``sin |y| / |y|`` and the derivative of the latter by |y|, over |y|."""
    y = (0.5 * h) * w
    squared = y.norm_sqr()
    cosine = 1.0 - 0.5 * squared
    sinc = 1.0 - squared / 6.0 * (1.0 - squared / 20.0)
    slope = -1.0 / 3.0 * (1.0 - squared / 10.0)
    if squared > 1e-8:
        angle = ti.sqrt(squared)
        cosine = ti.cos(angle)
        sinc = ti.sin(angle) / angle
        slope = (cosine - sinc) / squared
    return y, cosine, sinc, slope


@ti.func
def turn(dim: ti.template(), q, w, h):
    """Attitude after turning with ``w`` for ``h``: exponential map, then normalised."""
    out = q
    if ti.static(dim == 2):
        out = ti.Vector([q[0] + h * w[2]])
    else:
        y, c, sinc, _slope = half_turn(w, h)
        e = sinc * y
        v = ti.Vector([q[1], q[2], q[3]])
        u = c * v + q[0] * e + e.cross(v)
        p = ti.Vector([c * q[0] - e.dot(v), u[0], u[1], u[2]])
        out = p * (1.0 / ti.sqrt(p.norm_sqr()))
    return out


@ti.func
def turn_adjoint(dim: ti.template(), q, w, h, bar):
    """Adjoint of :func:`turn`: ``q_bar``, ``w_bar``, ``h_bar``."""
    q_bar = bar
    w_bar = w * 0.0
    h_bar = h * 0.0
    if ti.static(dim == 2):
        w_bar = ti.Vector([0.0, 0.0, h * bar[0]])
        h_bar = w[2] * bar[0]
    else:
        y, c, sinc, slope = half_turn(w, h)
        e = sinc * y
        v = ti.Vector([q[1], q[2], q[3]])
        u = c * v + q[0] * e + e.cross(v)
        p = ti.Vector([c * q[0] - e.dot(v), u[0], u[1], u[2]])
        length = ti.sqrt(p.norm_sqr())
        p_bar = (bar - p * (p.dot(bar) / (length * length))) / length
        s_bar = p_bar[0]
        u_bar = ti.Vector([p_bar[1], p_bar[2], p_bar[3]])
        c_bar = s_bar * q[0] + u_bar.dot(v)
        e_bar = q[0] * u_bar - s_bar * v + v.cross(u_bar)
        v_bar = c * u_bar - s_bar * e + u_bar.cross(e)
        q_bar = ti.Vector([c * s_bar + e.dot(u_bar), v_bar[0], v_bar[1], v_bar[2]])
        y_bar = sinc * e_bar + (e_bar.dot(y) * slope - sinc * c_bar) * y
        w_bar = (0.5 * h) * y_bar
        h_bar = 0.5 * w.dot(y_bar)
    return q_bar, w_bar, h_bar
