"""Loops: two bodies held together by stiff rows, where a tree has no place for one more joint.

``γ = K P (-g/h - J v)``, K = h² k: a spring at the error ``g`` the step will end with, so that no stiffness is too
large. A closure has two rows of three: places (``g``: anchor of A minus that of B) and, for a hinge or a weld,
attitudes. A hinge holds its axis: ``g`` = axis of B × axis of A, and ``P`` takes turning about the axis out. A weld
holds all: ``g`` is the axial part of the rotation between the bodies, ``P`` is 1.

Columns of ``bond``: arm of A 0-2, arm of B 3-5, bias ``-g/h`` 6-8, K 9, axis 10-12 (0: nothing is free).
"""

from typing import Any, NamedTuple

from taichi_sim.core.maths import axial, skew
from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.geometry import column3
from taichi_sim.solvers.rigid.pose import parent_pose
from taichi_sim.solvers.rigid.rotation import flat, lift, rotation_matrix, rotation_matrix_adjoint
from taichi_sim.solvers.rigid.topology import FIXED, HINGE
from taichi_sim.solvers.rigid.tree import row_of
from taichi_sim.solvers.rigid.twist import DELTA, NOW, RESIDUAL, VELOCITY_BAR, ZED_BAR, add_wrench, body_motion


class Bond(NamedTuple):
    """What the velocity problem needs of closures."""

    bond: Any
    closure: Any


class Loop(NamedTuple):
    """The arrays of this file, passed through kernels as one."""

    bond: Any
    closure: Any
    closure_anchor: Any
    closure_axis: Any
    closure_mount: Any
    closure_stiffness: Any
    closure_turning: Any


class LoopBar(NamedTuple):
    """Adjoints of :class:`Loop`."""

    closure_anchor: Any
    closure_axis: Any
    closure_mount: Any
    closure_stiffness: Any
    closure_turning: Any


@ti.func
def place_loops(dim: ti.template(), T: ti.template(), L: ti.template(), e, k, h):
    """Arms, errors and stiffness of all closures in the step from slot ``k``."""
    for i in range(T.extent[10]):
        c, kind = e * T.extent[10] + i, L.closure[i][0]
        R, _q, x, m = parent_pose(dim, T, e, k, L.closure[i][1])
        S, _p, y, n = parent_pose(dim, T, e, k, L.closure[i][2])
        arm_a, arm_b = R @ (lift(dim, L.closure_anchor[2 * c]) - m), S @ (lift(dim, L.closure_anchor[2 * c + 1]) - n)
        g = x + arm_a - y - arm_b
        turn_g, axis, K = g * 0.0, g * 0.0, 0.0
        if kind == FIXED:
            turn_g = 0.5 * axial(R @ rotation_matrix(dim, L.closure_mount[c]).transpose() @ S.transpose())
            K = h * h * L.closure_turning[c]
        if ti.static(dim == 3):
            if kind == HINGE:
                axis = S @ L.closure_axis[2 * c + 1]
                turn_g = axis.cross(R @ L.closure_axis[2 * c])
                K = h * h * L.closure_turning[c]
        for row in ti.static(range(2)):
            bias = g if ti.static(row == 0) else turn_g
            L.bond[2 * c + row] = ti.Vector([
                arm_a[0], arm_a[1], arm_a[2], arm_b[0], arm_b[1], arm_b[2], -bias[0] / h, -bias[1] / h, -bias[2] / h,
                h * h * L.closure_stiffness[c] if ti.static(row == 0) else K,
                0.0 if ti.static(row == 0) else axis[0], 0.0 if ti.static(row == 0) else axis[1],
                0.0 if ti.static(row == 0) else axis[2]])


@ti.func
def bond_motion(dim: ti.template(), T: ti.template(), L: ti.template(), e, i, column):
    """``J v`` of row ``i``: of the anchor, or the angular velocity, of A relative to B."""
    out = ti.Vector([0.0, 0.0, 0.0])
    r = 2 * e * T.extent[10] + i
    for side in ti.static(range(2)):
        body = L.closure[i // 2][1 + side]
        if body >= 0:
            v, w = body_motion(dim, T.dof, column, row_of(dim, T, e, body))
            if i % 2 == 0:
                w = v + w.cross(column3(L.bond, r, 3 * side))
            if ti.static(side == 0):
                out = out + w
            else:
                out = out - w
    return out


@ti.func
def push_bond(dim: ti.template(), T: ti.template(), L: ti.template(), e, i, column, gamma):
    """Transpose of :func:`bond_motion`: an impulse of row ``i`` added to the bodies' rows in ``column``."""
    r = 2 * e * T.extent[10] + i
    for side in range(2):
        body = L.closure[i // 2][1 + side]
        if body >= 0:
            impulse = gamma
            arm = column3(L.bond, r, 0)
            if side == 1:
                impulse = -gamma
                arm = column3(L.bond, r, 3)
            if i % 2 == 0:
                add_wrench(dim, T.dof, column, row_of(dim, T, e, body), impulse, arm.cross(impulse))
            else:
                add_wrench(dim, T.dof, column, row_of(dim, T, e, body), impulse * 0.0, impulse)


@ti.func
def bond_impulse(L: ti.template(), r, motion):
    """``γ`` of a row."""
    lack, axis = column3(L.bond, r, 6) - motion, column3(L.bond, r, 10)
    return L.bond[r][9] * (lack - axis.dot(lack) * axis)


@ti.func
def add_bonds(dim: ti.template(), T: ti.template(), L: ti.template(), e, column):
    """Take the impulses of all closures at the velocities in ``column`` from RESIDUAL of ``dof``."""
    for i in range(2 * T.extent[10]):
        gamma = bond_impulse(L, 2 * e * T.extent[10] + i, bond_motion(dim, T, L, e, i, column))
        push_bond(dim, T, L, e, i, RESIDUAL, -gamma)


@ti.func
def bond_slope(L: ti.template(), r):
    """``G = -dγ/dv`` of a row, 3x3."""
    axis = column3(L.bond, r, 10)
    return L.bond[r][9] * (ti.Matrix.identity(float, 3) - axis.outer_product(axis))


@ti.func
def loops_adjoint(dim: ti.template(), T: ti.template(), L: ti.template(), B: ti.template(), C: ti.template(), e, k, h):
    """Adjoint of all closures, from ``z`` in DELTA (see ``step.contacts_adjoint``); adds to VELOCITY_BAR and ZED_BAR of
    ``dof``, to rotation matrices and positions. ``B``: adjoints of the tree, ``C``: of closures. Returns ``h_bar``."""
    h_bar = 0.0
    for i in range(2 * T.extent[10]):
        r, c = 2 * e * T.extent[10] + i, e * T.extent[10] + i // 2
        motion, z = bond_motion(dim, T, L, e, i, NOW), bond_motion(dim, T, L, e, i, DELTA)
        gamma = bond_impulse(L, r, motion)
        axis, K = column3(L.bond, r, 10), L.bond[r][9]
        lack = column3(L.bond, r, 6) - motion
        held = z - axis.dot(z) * axis
        push_bond(dim, T, L, e, i, VELOCITY_BAR, -K * held)
        push_bond(dim, T, L, e, i, ZED_BAR, gamma)
        g_bar = (-K / h) * held
        K_bar = held.dot(lack)
        stiffness = L.closure_turning[c]
        if i % 2 == 0:
            stiffness = L.closure_stiffness[c]
            C.closure_stiffness[c] = C.closure_stiffness[c] + ti.cast(h * h * K_bar, ti.f64)
        elif K > 0.0:
            C.closure_turning[c] = C.closure_turning[c] + ti.cast(h * h * K_bar, ti.f64)
        if K > 0.0:
            h_bar = h_bar + 2.0 * h * stiffness * K_bar - K * held.dot(column3(L.bond, r, 6)) / h
        for side in range(2):
            body, sign = L.closure[i // 2][1 + side], 1.0
            if side == 1:
                sign = -1.0
            R, _q, _x, m = parent_pose(dim, T, e, k, body)
            R_bar = R * 0.0
            if i % 2 == 0:
                arm_bar = sign * g_bar
                if body >= 0:
                    _v, w = body_motion(dim, T.dof, NOW, row_of(dim, T, e, body))
                    _z, y = body_motion(dim, T.dof, DELTA, row_of(dim, T, e, body))
                    arm_bar = arm_bar + sign * ((-K * held).cross(w) + gamma.cross(y))
                local = ti.cast(flat(dim, R.transpose() @ arm_bar), ti.f64)
                C.closure_anchor[2 * c + side] = C.closure_anchor[2 * c + side] + local
                R_bar = arm_bar.outer_product(lift(dim, L.closure_anchor[2 * c + side]) - m)
                if body >= 0:
                    b = e * T.extent[0] + body
                    B.centre[b] = B.centre[b] - local
                    B.position[b] = B.position[b] + sign * flat(dim, g_bar)
            else:
                S, _s, _y, _n = parent_pose(dim, T, e, k, L.closure[i // 2][2 - side])
                if L.closure[i // 2][0] == FIXED:
                    M = rotation_matrix(dim, L.closure_mount[c])
                    E_bar = 0.5 * skew(g_bar)
                    if side == 0:
                        R_bar = E_bar @ S @ M
                        M_bar = S.transpose() @ E_bar.transpose() @ R
                        C.closure_mount[c] = C.closure_mount[c] + ti.cast(
                            rotation_matrix_adjoint(dim, L.closure_mount[c], M_bar), ti.f64)
                    else:
                        R_bar = E_bar.transpose() @ S @ M.transpose()
                if ti.static(dim == 3):
                    if L.closure[i // 2][0] == HINGE:
                        mine, other = L.closure_axis[2 * c + side], S @ L.closure_axis[2 * c + 1 - side]
                        bar = sign * g_bar.cross(other)
                        if side == 1:
                            bar = bar - K * (axis.dot(z) * lack + axis.dot(lack) * z)
                        R_bar = bar.outer_product(mine)
                        C.closure_axis[2 * c + side] = (
                            C.closure_axis[2 * c + side] + ti.cast(R.transpose() @ bar, ti.f64))
            if body >= 0:
                b = e * T.extent[0] + body
                B.turned[b] = B.turned[b] + R_bar
    return h_bar
