"""Steps of scenes with joints: what the functions for free bodies ask for where bodies hang on joints.

The velocity problem has the degrees of freedom as unknowns (``tree``). Its residual is summed over bodies, as without
joints, and then pulled to degrees of freedom; its matrix is ``M + Σ Jᵀ G J`` with rows of J along chains of joints.
"""

from typing import Any, NamedTuple

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.closure import Bond, Loop, add_bonds, bond_slope
from taichi_sim.solvers.rigid.drive import add_row_slopes, add_rows, row_impulse
from taichi_sim.solvers.rigid.dynamics import clear_motion_bars
from taichi_sim.solvers.rigid.geometry import column3
from taichi_sim.solvers.rigid.rotation import turn, turn_adjoint
from taichi_sim.solvers.rigid.topology import BALL, LOOSE
from taichi_sim.solvers.rigid.tree import (
    COORDINATE,
    COUNT,
    KIND,
    PARENT,
    Chain,
    Tree,
    column6,
    freedom_of,
    joint_freedom,
    pull,
)
from taichi_sim.solvers.rigid.twist import BEFORE, DELTA, FREE, NOW, RESIDUAL, TRIAL


class Joints(NamedTuple):
    """Whether there are joints in the scene, and closures, and the arrays of both."""

    on: bool
    loops: bool
    tree: Any
    row: Any
    bond: Any

    @property
    def unknown(self) -> Any:
        """The array whose columns the velocity problem is solved in."""
        return self.tree.reduced if self.on else self.tree.dof


def unjointed(dof: Any) -> Joints:
    """What the velocity problem takes where no body hangs on a joint; stands in a kernel within ``ti.static``."""
    return Joints(False, False, Chain(*[dof] * len(Chain._fields)), dof, Bond(dof, dof))


def jointed(T: Tree, loops: bool, jacobian: Any, row: Any, L: Loop) -> Joints:
    """What it takes where bodies do, of what poses and free motion take; likewise within ``ti.static``."""
    of_tree = {name: getattr(T, name) for name in Chain._fields if name != "jacobian"}
    return Joints(True, loops, Chain(**of_tree, jacobian=jacobian), row, Bond(L.bond, L.closure))


@ti.func
def add_block(dim: ti.template(), T: ti.template(), matrix: ti.template(), e, G, A, arm_a, B,
              arm_b, turning):
    """``Jᵀ G J`` to ``matrix``, J the row of three between places at ``arm`` of bodies A and B (-1: the world), or with
    ``turning`` 1 between their angular velocities, along degrees of freedom."""
    n = T.extent[6]
    at, base = e * n, e * n * n
    for i in range(at, at + n):
        T.jacobian[i] = T.jacobian[i] * 0.0
    for side in range(2):
        body, arm, sign = A, arm_a, 1.0
        if side == 1:
            body, arm, sign = B, arm_b, -1.0
        if body >= 0:
            away, b = arm, body
            while b >= 0:
                g = e * T.extent[0] + b
                away = away + column3(T.lever, g, 3)  # from the joint above b
                first = freedom_of(T, e, b)
                for i in range(first, first + T.link[b][COUNT]):
                    slide, turn = column6(T, i)
                    if turning == 0:
                        turn = slide + turn.cross(away)
                    T.jacobian[i] = T.jacobian[i] + sign * turn
                away = away + column3(T.lever, g, 0)
                b = T.link[b][PARENT]
    for i in range(n):
        if T.jacobian[at + i].norm_sqr() > 0.0:
            pushed = G.transpose() @ T.jacobian[at + i]
            for j in range(n):
                m = base + i * n + j
                matrix[m] = matrix[m] + pushed.dot(T.jacobian[at + j])


@ti.func
def project(dim: ti.template(), J: ti.template(), e, column):
    """Residual along degrees of freedom from that of bodies at the velocities in ``column``; adds joints and closures.
    Returns the square of its size in the metric of the inverse mass, J."""
    n, joints = J.tree.extent[6], J.tree.extent[7]
    if ti.static(J.loops):
        add_bonds(dim, J.tree, J.bond, e, column)
    pull(dim, J.tree, e, RESIDUAL)
    for i in range(joints):
        j = e * n + n - joints + i
        change = J.tree.reduced[j, column] - J.tree.reduced[j, FREE]
        J.tree.reduced[j, RESIDUAL] = J.tree.reduced[j, RESIDUAL] + J.tree.armature[e * joints + i] * change
    add_rows(J.tree, J.row, e, column)
    norm = 0.0
    for i in range(n):
        r = J.tree.reduced[e * n + i, RESIDUAL]
        norm = norm + r * r / J.tree.mass_matrix[e * n * n + i * (n + 1)]
    return norm


@ti.func
def place_masses(dim: ti.template(), J: ti.template(), e, matrix: ti.template()):
    """What the matrix of the velocity problem is without contacts."""
    n = J.tree.extent[6]
    for i in range(e * n * n, (e + 1) * n * n):
        matrix[i] = J.tree.mass_matrix[i]
    add_row_slopes(J.tree, J.row, e, matrix)
    if ti.static(J.loops):
        for i in range(2 * J.tree.extent[10]):
            r = 2 * e * J.tree.extent[10] + i
            add_block(dim, J.tree, matrix, e, bond_slope(J.bond, r), J.bond.closure[i // 2][1],
                      column3(J.bond.bond, r, 0), J.bond.closure[i // 2][2], column3(J.bond.bond, r, 3), i % 2)


@ti.func
def drift_joints(T: ti.template(), e, k, h):
    """Velocities of joints of slot ``k + 1``, from NOW, and their coordinates."""
    for b in range(T.extent[0]):
        if T.link[b][KIND] != LOOSE:
            first, p, at = freedom_of(T, e, b), joint_freedom(T, e, b), e * T.extent[8] + T.link[b][COORDINATE]
            for i in range(T.link[b][COUNT]):
                T.rate[k + 1, p + i] = T.reduced[first + i, NOW]
            if T.link[b][KIND] == BALL:
                w = ti.Vector([T.reduced[first, NOW], T.reduced[first + 1, NOW], T.reduced[first + 2, NOW]])
                q = ti.Vector([T.coordinate[k, at], T.coordinate[k, at + 1], T.coordinate[k, at + 2],
                               T.coordinate[k, at + 3]])
                q = turn(3, q, w, h)
                for i in ti.static(range(4)):
                    T.coordinate[k + 1, at + i] = q[i]
            elif T.link[b][COUNT] == 1:
                T.coordinate[k + 1, at] = T.coordinate[k, at] + h * T.reduced[first, NOW]


@ti.func
def drift_joints_adjoint(dim: ti.template(), T: ti.template(), e, k, h, d_velocity: ti.template(),
                         d_spin: ti.template(), d_coordinate: ti.template(), d_rate: ti.template(),
                         d_dt: ti.template()):
    """Adjoint of :func:`drift_joints` into DELTA, the velocities themselves into NOW of ``reduced``; those of free
    bodies are taken from ``step.drift_adjoint`` and what is left of the state's."""
    h_bar = 0.0
    for b in range(T.extent[0]):
        first, p, at = freedom_of(T, e, b), joint_freedom(T, e, b), e * T.extent[8] + T.link[b][COORDINATE]
        if T.link[b][KIND] == LOOSE:
            g = e * T.extent[0] + b
            for i in ti.static(range(3 if dim == 2 else 6)):
                row = g * ti.static(3 if dim == 2 else 6) + i
                T.reduced[first + i, NOW] = T.dof[row, NOW]
                bar = 0.0 * h
                if ti.static(i < dim):
                    bar = d_velocity[g][i]
                else:
                    bar = d_spin[g][i - dim]
                T.reduced[first + i, DELTA] = T.dof[row, DELTA] + bar
            d_velocity[g] = d_velocity[g] * 0.0
            d_spin[g] = d_spin[g] * 0.0
        else:
            for i in range(T.link[b][COUNT]):
                T.reduced[first + i, NOW] = T.rate[k + 1, p + i]
                T.reduced[first + i, DELTA] = d_rate[p + i]
                d_rate[p + i] = 0.0
            if T.link[b][KIND] == BALL:
                w = ti.Vector([T.rate[k + 1, p], T.rate[k + 1, p + 1], T.rate[k + 1, p + 2]])
                q = ti.Vector([T.coordinate[k, at], T.coordinate[k, at + 1], T.coordinate[k, at + 2],
                               T.coordinate[k, at + 3]])
                bar = ti.Vector([d_coordinate[at], d_coordinate[at + 1], d_coordinate[at + 2], d_coordinate[at + 3]])
                q_bar, w_bar, turn_bar = turn_adjoint(3, q, w, h, bar)
                h_bar = h_bar + turn_bar
                for i in ti.static(range(4)):
                    d_coordinate[at + i] = q_bar[i]
                for i in ti.static(range(3)):
                    T.reduced[first + i, DELTA] = T.reduced[first + i, DELTA] + w_bar[i]
            elif T.link[b][COUNT] == 1:
                T.reduced[first, DELTA] = T.reduced[first, DELTA] + h * d_coordinate[at]
                h_bar = h_bar + T.rate[k + 1, p] * d_coordinate[at]
    d_dt[e] = d_dt[e] + ti.cast(h_bar, ti.f64)


@ti.func
def clear_bars(dim: ti.template(), T: ti.template(), B: ti.template(), e):
    """Set to zero what a step's adjoint adds to, but for adjoints of the state."""
    clear_motion_bars(dim, T, e)
    for g in range(e * T.extent[0], (e + 1) * T.extent[0]):
        B.turned[g] = B.turned[g] * 0.0
        B.lever[g] = B.lever[g] * 0.0
    for i in range(e * T.extent[6], (e + 1) * T.extent[6]):
        B.motion[i] = B.motion[i] * 0.0


@ti.func
def top_of(T: ti.template(), b):
    """The body of a tree next to the world."""
    top = b
    while T.link[top][PARENT] >= 0:
        top = T.link[top][PARENT]
    return top


@ti.func
def half_kicks(dim: ti.template(), T: ti.template(), row: ti.template(), touching: ti.template(), e, k, kick):
    """How long each degree of freedom moves freely until the time of the positions, into TRIAL: half a kick; nothing
    where a body of the tree touches something, or anything acts along one of its joints, or there are loops."""
    bodies = T.extent[0]
    for b in range(bodies):
        half, top = 0.5 * kick, top_of(T, b)
        if T.extent[10] > 0:
            half = 0.0
        for c in range(bodies):
            if top_of(T, c) == top:
                half = half * (1.0 - touching[k, e * bodies + c])
                if T.link[c][KIND] != LOOSE:
                    for i in range(T.link[c][COUNT]):
                        _gamma, fall = row_impulse(row[joint_freedom(T, e, c) + i],
                                                   T.reduced[freedom_of(T, e, c) + i, BEFORE])
                        if fall != 0.0:
                            half = 0.0
        first = freedom_of(T, e, b)
        for i in range(first, first + T.link[b][COUNT]):
            T.reduced[i, TRIAL] = half
