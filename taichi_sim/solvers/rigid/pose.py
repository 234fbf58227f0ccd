"""Where links are: poses of bodies from the coordinates of joints, and the adjoint of that."""

from taichi_sim.core.maths import add_scaled_identity, skew
from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.geometry import column3
from taichi_sim.solvers.rigid.rotation import (
    flat,
    flat_turn,
    lift,
    lift_inertia,
    rotation_matrix,
    rotation_matrix_adjoint,
)
from taichi_sim.solvers.rigid.topology import BALL, HINGE, LOOSE, PRISMATIC
from taichi_sim.solvers.rigid.tree import (
    COORDINATE,
    COUNT,
    JOINT,
    KIND,
    PARENT,
    freedom_of,
    joint_freedom,
    row_of,
    spread,
)
from taichi_sim.solvers.rigid.twist import BEFORE, body_motion


@ti.func
def no_turn(dim: ti.template()):
    """Attitude of the world."""
    return ti.Vector([0.0] if ti.static(dim == 2) else [1.0, 0.0, 0.0, 0.0])


@ti.func
def compose(dim: ti.template(), p, q):
    """Attitude ``q``, seen from the attitude ``p``: quaternion product, or sum of angles."""
    out = p
    if ti.static(dim == 2):
        out = p + q
    else:
        u, v = ti.Vector([p[1], p[2], p[3]]), ti.Vector([q[1], q[2], q[3]])
        w = p[0] * v + q[0] * u + u.cross(v)
        out = ti.Vector([p[0] * q[0] - u.dot(v), w[0], w[1], w[2]])
    return out


@ti.func
def opposite(dim: ti.template(), q):
    """Transpose of the product with ``q``: that with its conjugate; nothing to do for angles."""
    out = q
    if ti.static(dim == 2):
        out = q * 0.0
    else:
        out = ti.Vector([q[0], -q[1], -q[2], -q[3]])
    return out


@ti.func
def axis_of(dim: ti.template(), kind, axis):
    """Axis of a hinge or a slide; everything turns about z in 2-D."""
    out = lift(dim, axis)
    if ti.static(dim == 2):
        if kind == HINGE:
            out = ti.Vector([0.0, 0.0, 1.0])
    return out


@ti.func
def coordinates(T: ti.template(), k, kind, at):
    """Coordinates of a joint in slot ``k``: of a hinge or a slide the first counts, of a ball all four."""
    out = ti.Vector([0.0, 0.0, 0.0, 0.0])
    if kind == HINGE or kind == PRISMATIC:
        out[0] = T.coordinate[k, at]
    elif kind == BALL:
        for i in ti.static(range(4)):
            out[i] = T.coordinate[k, at + i]
    return out


@ti.func
def joint_turn(dim: ti.template(), kind, a, x):
    """Attitude a joint with coordinates ``x`` gives."""
    out = no_turn(dim)
    if ti.static(dim == 2):
        if kind == HINGE:
            out = ti.Vector([x[0]])
    else:
        if kind == HINGE:
            c, s = ti.cos(0.5 * x[0]), ti.sin(0.5 * x[0])
            out = ti.Vector([c, s * a[0], s * a[1], s * a[2]])
        elif kind == BALL:
            out = x
    return out


@ti.func
def joint_turn_adjoint(dim: ti.template(), kind, a, x, bar):
    """Adjoint of :func:`joint_turn`: ``a_bar``, ``x_bar``."""
    a_bar, x_bar = a * 0.0, x * 0.0
    if ti.static(dim == 2):
        if kind == HINGE:
            x_bar[0] = bar[0]
    else:
        if kind == HINGE:
            c, s = ti.cos(0.5 * x[0]), ti.sin(0.5 * x[0])
            v_bar = ti.Vector([bar[1], bar[2], bar[3]])
            x_bar[0] = 0.5 * (c * v_bar.dot(a) - s * bar[0])
            a_bar = s * v_bar
        elif kind == BALL:
            x_bar = bar
    return a_bar, x_bar


@ti.func
def parent_pose(dim: ti.template(), T: ti.template(), e, k, p):
    """Rotation matrix, attitude, place and centre of mass (body axes) of the parent, or of the world."""
    zero = ti.Vector([0.0, 0.0, 0.0])
    R, q, x, c = skew(zero), no_turn(dim), zero, zero
    R = add_scaled_identity(R, 1.0)
    if p >= 0:
        g = e * T.extent[0] + p
        R, q, x, c = T.turned[g], T.rotation[k, g], lift(dim, T.position[k, g]), lift(dim, T.centre[g])
    return R, q, x, c


@ti.func
def place_tree(dim: ti.template(), T: ti.template(), e, k):
    """Poses and velocities of links in slot ``k``; of all bodies rotation matrices, inertia in world axes, levers and
    motions. Velocities along degrees of freedom go to BEFORE."""
    bodies = T.extent[0]
    for o in range(bodies):
        b = T.order[o]
        g, first, kind = e * bodies + b, freedom_of(T, e, b), T.link[b][KIND]
        if kind == LOOSE:
            v, w = T.velocity[k, g], T.spin[k, g]
            for i in ti.static(range(3 if dim == 2 else 6)):
                axis = ti.static(5 if dim == 2 and i == 2 else i)
                T.motion[first + i] = ti.Vector([ti.select(axis == d, 1.0, 0.0) for d in ti.static(range(6))])
                if ti.static(i < dim):
                    T.reduced[first + i, BEFORE] = v[i]
                else:
                    T.reduced[first + i, BEFORE] = w[i - dim]
            T.lever[g] = T.lever[g] * 0.0
            T.turned[g] = rotation_matrix(dim, T.rotation[k, g])
        else:
            J = e * T.extent[9] + T.link[b][JOINT]
            R, q, x, c = parent_pose(dim, T, e, k, T.link[b][PARENT])
            a = axis_of(dim, kind, T.joint_axis[J])
            y = coordinates(T, k, kind, e * T.extent[8] + T.link[b][COORDINATE])
            attitude = compose(dim, compose(dim, q, joint_turn(dim, kind, a, y)), T.mount[J])
            own = rotation_matrix(dim, attitude)
            upper = lift(dim, T.parent_anchor[J]) - c
            if kind == PRISMATIC:
                upper = upper + y[0] * a
            upper = R @ upper
            lower = own @ (lift(dim, T.centre[g] - T.child_anchor[J]))
            T.turned[g] = own
            T.rotation[k, g] = attitude
            T.position[k, g] = flat(dim, x + upper + lower)
            T.lever[g] = ti.Vector([upper[0], upper[1], upper[2], lower[0], lower[1], lower[2]])
            for i in range(T.link[b][COUNT]):
                if kind == BALL:
                    a = ti.Vector([ti.select(i == d, 1.0, 0.0) for d in ti.static(range(3))])
                s = R @ a
                t = s
                if kind == PRISMATIC:
                    t = t * 0.0
                else:
                    s = s * 0.0
                T.motion[first + i] = ti.Vector([s[0], s[1], s[2], t[0], t[1], t[2]])
                T.reduced[first + i, BEFORE] = T.rate[k, joint_freedom(T, e, b) + i]
        T.inertia_world[g] = T.turned[g] @ lift_inertia(dim, T.inertia[g]) @ T.turned[g].transpose()
        T.heft[g] = T.mass[g]
    spread(dim, T, e, BEFORE, 0, BEFORE)
    for b in range(bodies):
        if T.link[b][KIND] != LOOSE:
            v, w = body_motion(dim, T.dof, BEFORE, row_of(dim, T, e, b))
            T.velocity[k, e * bodies + b] = flat(dim, v)
            T.spin[k, e * bodies + b] = flat_turn(dim, w)


@ti.func
def place_tree_adjoint(dim: ti.template(), T: ti.template(), B: ti.template(), e, k):
    """Adjoint of the poses of :func:`place_tree` (that of velocities is in ``dynamics``): what stands at rotation
    matrices, levers, motions and poses of links goes to coordinates, free bodies and the parameters of joints."""
    bodies = T.extent[0]
    for back in range(bodies):
        b = T.order[bodies - 1 - back]
        g, first, kind = e * bodies + b, freedom_of(T, e, b), T.link[b][KIND]
        if kind == LOOSE:
            B.rotation[g] = B.rotation[g] + rotation_matrix_adjoint(dim, T.rotation[k, g], B.turned[g])
        else:
            p, J, at = T.link[b][PARENT], e * T.extent[9] + T.link[b][JOINT], T.link[b][COORDINATE]
            at = at + e * T.extent[8]
            R, q, _x, c = parent_pose(dim, T, e, k, p)
            a = axis_of(dim, kind, T.joint_axis[J])
            y = coordinates(T, k, kind, at)
            turned = compose(dim, q, joint_turn(dim, kind, a, y))
            x_bar = lift(dim, B.position[g])
            upper_bar, lower_bar = column3(B.lever, g, 0) + x_bar, column3(B.lever, g, 3) + x_bar
            # the joint to the centre of mass
            local = T.centre[g] - T.child_anchor[J]
            local_bar = ti.cast(flat(dim, T.turned[g].transpose() @ lower_bar), ti.f64)
            B.centre[g] = B.centre[g] + local_bar
            B.child_anchor[J] = B.child_anchor[J] - local_bar
            own_bar = B.turned[g] + lower_bar.outer_product(lift(dim, local))
            # attitude
            bar = B.rotation[g] + rotation_matrix_adjoint(dim, T.rotation[k, g], own_bar)
            B.mount[J] = B.mount[J] + ti.cast(compose(dim, opposite(dim, turned), bar), ti.f64)
            turned_bar = compose(dim, bar, opposite(dim, T.mount[J]))
            a_bar, y_bar = joint_turn_adjoint(dim, kind, a, y, compose(dim, opposite(dim, q), turned_bar))
            q_bar = compose(dim, turned_bar, opposite(dim, joint_turn(dim, kind, a, y)))
            # the parent's centre of mass to the joint
            upper = lift(dim, T.parent_anchor[J]) - c
            anchor_bar = R.transpose() @ upper_bar
            if kind == PRISMATIC:
                upper = upper + y[0] * a
                a_bar = a_bar + y[0] * anchor_bar
                y_bar[0] = y_bar[0] + a.dot(anchor_bar)
            R_bar = upper_bar.outer_product(upper)
            for i in range(T.link[b][COUNT]):
                motion_bar = column3(B.motion, first + i, 3)
                if kind == PRISMATIC:
                    motion_bar = column3(B.motion, first + i, 0)
                if kind == BALL:
                    a = ti.Vector([ti.select(i == d, 1.0, 0.0) for d in ti.static(range(3))])
                R_bar = R_bar + motion_bar.outer_product(a)
                a_bar = a_bar + R.transpose() @ motion_bar
            B.parent_anchor[J] = B.parent_anchor[J] + ti.cast(flat(dim, anchor_bar), ti.f64)
            if kind == PRISMATIC or (ti.static(dim == 3) and kind == HINGE):
                B.joint_axis[J] = B.joint_axis[J] + ti.cast(flat(dim, a_bar), ti.f64)
            if kind == HINGE or kind == PRISMATIC:
                B.coordinate[at] = B.coordinate[at] + y_bar[0]
            elif kind == BALL:
                for i in ti.static(range(4)):
                    B.coordinate[at + i] = B.coordinate[at + i] + y_bar[i]
            if p >= 0:
                h = e * bodies + p
                B.turned[h] = B.turned[h] + R_bar
                B.rotation[h] = B.rotation[h] + q_bar
                B.position[h] = B.position[h] + flat(dim, x_bar)
                B.centre[h] = B.centre[h] - ti.cast(flat(dim, anchor_bar), ti.f64)
            B.position[g] = B.position[g] * 0.0
            B.rotation[g] = B.rotation[g] * 0.0
