"""Bodies that hang on joints: from the velocities of the joints to those of the bodies, and back with forces.

The unknowns of a step are degrees of freedom: six of every free body, and those of the joints (``reduced``, a row a
degree of freedom). Contact knows only the velocities of bodies (``dof``, rows of bodies). :func:`spread` fills the
latter from the former, :func:`pull` is its transpose; with both, everything that is written for free bodies holds for
links.

``motion[i]`` is what the degree of freedom ``i`` adds to the velocity of its body relative to the parent: sliding 0-2
and turning 3-5, world axes. ``lever[b]`` leads from the parent's centre of mass to the joint (0-2), and from there to
the body's (3-5). A free body has no parent, no levers, and the axes of the world as motions.
"""

from typing import Any, NamedTuple

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.geometry import column3
from taichi_sim.solvers.rigid.twist import VELOCITY_BAR, add_wrench, body_motion, set_motion

#: Columns of ``link``, one row a body.
PARENT, KIND, JOINT, FIRST, COUNT, COORDINATE = 0, 1, 2, 3, 4, 5


class Chain(NamedTuple):
    """What velocities of links take, passed through kernels as one."""

    link: Any
    order: Any
    extent: Any
    dof: Any
    reduced: Any
    motion: Any
    lever: Any
    coordinate: Any
    rate: Any
    armature: Any
    mass_matrix: Any
    jacobian: Any


class Tree(NamedTuple):
    """The same and what poses and free motion take."""

    link: Any
    order: Any
    extent: Any
    dof: Any
    reduced: Any
    motion: Any
    lever: Any
    coordinate: Any
    rate: Any
    armature: Any
    mass_matrix: Any
    turned: Any
    inertia_world: Any
    heft: Any
    position: Any
    rotation: Any
    velocity: Any
    spin: Any
    mass: Any
    inertia: Any
    centre: Any
    parent_anchor: Any
    child_anchor: Any
    joint_axis: Any
    mount: Any
    gravity: Any
    force: Any
    torque: Any
    joint_force: Any
    composite: Any
    composite_inertia: Any
    factor: Any


class TreeBar(NamedTuple):
    """Adjoints of :class:`Tree`."""

    motion: Any
    lever: Any
    turned: Any
    position: Any
    rotation: Any
    velocity: Any
    spin: Any
    coordinate: Any
    rate: Any
    mass: Any
    inertia: Any
    centre: Any
    parent_anchor: Any
    child_anchor: Any
    joint_axis: Any
    mount: Any
    armature: Any
    gravity: Any
    force: Any
    torque: Any
    joint_force: Any


@ti.func
def row_of(dim: ti.template(), T: ti.template(), e, b):
    """First row of a body in ``dof``."""
    return (e * T.extent[0] + b) * ti.static(3 if dim == 2 else 6)


@ti.func
def freedom_of(T: ti.template(), e, b):
    """First row of a body's joint in ``reduced``."""
    return e * T.extent[6] + T.link[b][FIRST]


@ti.func
def joint_freedom(T: ti.template(), e, b):
    """The same counted among joints: where the parameters of a degree of freedom stand."""
    return e * T.extent[7] + T.link[b][FIRST] - (T.extent[6] - T.extent[7])


@ti.func
def column6(T: ti.template(), i):
    """Sliding and turning of a degree of freedom."""
    return column3(T.motion, i, 0), column3(T.motion, i, 3)


@ti.func
def joint_motion(T: ti.template(), e, b, column):
    """Velocity and angular velocity relative to the parent."""
    slide, turning = ti.Vector([0.0, 0.0, 0.0]), ti.Vector([0.0, 0.0, 0.0])
    first = freedom_of(T, e, b)
    for i in range(first, first + T.link[b][COUNT]):
        s, t = column6(T, i)
        slide = slide + T.reduced[i, column] * s
        turning = turning + T.reduced[i, column] * t
    return slide, turning


@ti.func
def spread(dim: ti.template(), T: ti.template(), e, column, bias, velocity):
    """Velocities of bodies in ``dof`` from those of joints in ``reduced``, both in ``column``.

    With ``bias`` 1 they are accelerations: what arises from the velocities in the column ``velocity`` of both is added.
    """
    zero = ti.Vector([0.0, 0.0, 0.0])
    for o in range(T.extent[0]):
        b = T.order[o]
        p = T.link[b][PARENT]
        upper, lower = column3(T.lever, e * T.extent[0] + b, 0), column3(T.lever, e * T.extent[0] + b, 3)
        v, w = joint_motion(T, e, b, column)
        if p >= 0:
            u, q = body_motion(dim, T.dof, column, row_of(dim, T, e, p))
            v = v + u + q.cross(upper)
            w = w + q
        if bias == 1:
            slide, turning = joint_motion(T, e, b, velocity)
            _v, own = body_motion(dim, T.dof, velocity, row_of(dim, T, e, b))
            above = zero
            if p >= 0:
                _u, above = body_motion(dim, T.dof, velocity, row_of(dim, T, e, p))
            w = w + above.cross(turning)
            v = v + above.cross(above.cross(upper) + 2.0 * slide) + own.cross(own.cross(lower))
        set_motion(dim, T.dof, column, row_of(dim, T, e, b), v + w.cross(lower), w)


@ti.func
def pull(dim: ti.template(), T: ti.template(), e, column):
    """Transpose of :func:`spread`: forces and moments on bodies in ``dof`` to those along degrees of freedom in
    ``reduced``, both in ``column``. What bodies had becomes what their whole branch has."""
    for back in range(T.extent[0]):
        b = T.order[T.extent[0] - 1 - back]
        p = T.link[b][PARENT]
        force, moment = body_motion(dim, T.dof, column, row_of(dim, T, e, b))
        moment = moment + column3(T.lever, e * T.extent[0] + b, 3).cross(force)
        first = freedom_of(T, e, b)
        for i in range(first, first + T.link[b][COUNT]):
            s, t = column6(T, i)
            T.reduced[i, column] = s.dot(force) + t.dot(moment)
        if p >= 0:
            moment = moment + column3(T.lever, e * T.extent[0] + b, 0).cross(force)
            add_wrench(dim, T.dof, column, row_of(dim, T, e, p), force, moment)


@ti.func
def add_pair(rows: ti.template(), i, first, second):
    """Add two 3-vectors to a row of six."""
    rows[i] = rows[i] + ti.Vector([first[0], first[1], first[2], second[0], second[1], second[2]])


@ti.func
def swing_adjoint(w, r, bar):
    """Adjoint of ``ω × (ω × r)``: ``ω_bar``, ``r_bar``."""
    s = w.cross(r)
    s_bar = bar.cross(w)
    return s.cross(bar) + r.cross(s_bar), s_bar.cross(w)


@ti.func
def spread_adjoint(dim: ti.template(), T: ti.template(), B: ti.template(), e, column, bar, bias, velocity):
    """Adjoint of :func:`spread`; adjoints of velocities of bodies stand in column ``bar`` of ``dof``, those of joints
    are added in that of ``reduced``; of ``velocity`` in VELOCITY_BAR. Levers and motions get theirs added."""
    zero = ti.Vector([0.0, 0.0, 0.0])
    for back in range(T.extent[0]):
        b = T.order[T.extent[0] - 1 - back]
        p = T.link[b][PARENT]
        row, parent_row, g = row_of(dim, T, e, b), row_of(dim, T, e, p), e * T.extent[0] + b
        upper, lower = column3(T.lever, g, 0), column3(T.lever, g, 3)
        v_bar, w_bar = body_motion(dim, T.dof, bar, row)
        _v, w = body_motion(dim, T.dof, column, row)
        w_bar = w_bar + lower.cross(v_bar)
        upper_bar, lower_bar = zero, v_bar.cross(w)
        first = freedom_of(T, e, b)
        for i in range(first, first + T.link[b][COUNT]):
            s, t = column6(T, i)
            T.reduced[i, bar] = T.reduced[i, bar] + s.dot(v_bar) + t.dot(w_bar)
            add_pair(B.motion, i, T.reduced[i, column] * v_bar, T.reduced[i, column] * w_bar)
        if p >= 0:
            _u, q = body_motion(dim, T.dof, column, parent_row)
            upper_bar = v_bar.cross(q)
            add_wrench(dim, T.dof, bar, parent_row, v_bar, w_bar + upper.cross(v_bar))
        if bias == 1:
            slide, turning = joint_motion(T, e, b, velocity)
            _o, own = body_motion(dim, T.dof, velocity, row)
            own_bar, own_lower = swing_adjoint(own, lower, v_bar)
            lower_bar = lower_bar + own_lower
            add_wrench(dim, T.dof, VELOCITY_BAR, row, zero, own_bar)
            if p >= 0:
                _p, above = body_motion(dim, T.dof, velocity, parent_row)
                above_bar, above_upper = swing_adjoint(above, upper, v_bar)
                upper_bar = upper_bar + above_upper
                above_bar = above_bar + turning.cross(w_bar) + 2.0 * slide.cross(v_bar)
                add_wrench(dim, T.dof, VELOCITY_BAR, parent_row, zero, above_bar)
                turning_bar, slide_bar = w_bar.cross(above), 2.0 * v_bar.cross(above)
                for i in range(first, first + T.link[b][COUNT]):
                    s, t = column6(T, i)
                    T.reduced[i, VELOCITY_BAR] = (
                        T.reduced[i, VELOCITY_BAR] + s.dot(slide_bar) + t.dot(turning_bar))
                    add_pair(B.motion, i, T.reduced[i, velocity] * slide_bar, T.reduced[i, velocity] * turning_bar)
        add_pair(B.lever, g, upper_bar, lower_bar)
