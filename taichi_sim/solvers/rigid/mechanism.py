"""A tree of joints on the host, in NumPy: poses, Jacobians, mass matrix, inverse dynamics; for planning and control.

One environment of a solver, whose parameters are read when it is made. Degrees of freedom are ordered as in
:class:`~taichi_sim.solvers.rigid.topology.Topology`: those of free bodies (velocity, angular velocity, world axes),
then those of joints. Inside, vectors are three-dimensional, as in the kernels.
"""

from collections.abc import Sequence

import numpy as np

from taichi_sim.solvers.rigid.arrays import RigidPlan
from taichi_sim.solvers.rigid.attitude import lift
from taichi_sim.solvers.rigid.kinematics import Posture, forward_kinematics, lifted
from taichi_sim.solvers.rigid.solver import RigidSolver

PARAMETERS = (
    "mass", "inertia", "centre", "parent_anchor", "child_anchor", "joint_axis", "mount", "armature", "gravity",
)  # fmt: skip


class Mechanism:
    """Bodies and joints of environment ``env`` of a solver."""

    def __init__(self, solver: RigidSolver, env: int = 0) -> None:
        self.plan: RigidPlan = solver.plan
        self.topology = self.plan.topology
        if not 0 <= env < self.plan.envs:
            raise ValueError(f"env must lie in 0 … {self.plan.envs - 1}, got {env}")
        self._env = env
        sizes = {"mass": self.plan.bodies, "inertia": self.plan.bodies, "centre": self.plan.bodies}
        sizes |= dict.fromkeys(("parent_anchor", "child_anchor", "joint_axis", "mount"), len(self.plan.joints))
        sizes |= {"armature": self.topology.joint_freedoms, "gravity": 1}
        self._p = {
            n: np.array(solver.store.view(n)[env * sizes[n] : (env + 1) * sizes[n]], float) for n in PARAMETERS
        }

    def posture(self, solver: RigidSolver, k: int) -> Posture:
        """That of slot ``k``."""
        n, view = self.plan.bodies, solver.store.view
        bodies = slice(self._env * n, (self._env + 1) * n)
        m = self.topology.coordinates
        coordinate = view("coordinate")[k, self._env * m : (self._env + 1) * m]
        return self.forward(coordinate, view("position")[k, bodies], view("rotation")[k, bodies])

    def forward(
        self, coordinate: Sequence[float] | np.ndarray, position: np.ndarray, rotation: np.ndarray
    ) -> Posture:
        """Forward kinematics: ``coordinate`` of all joints; ``position`` (bodies, dim), ``rotation`` (bodies, 1 or 4)
        count for free bodies. Raises ``ValueError`` for a wrong number of coordinates."""
        wanted = (self.topology.coordinates,)
        if np.shape(coordinate) != wanted:
            raise ValueError(f"coordinate must have {wanted[0]} numbers, got shape {np.shape(coordinate)}")
        return forward_kinematics(self.plan.dim, self.topology, self._p, np.asarray(coordinate), position, rotation)

    def arm(self, body: int, point: Sequence[float] | np.ndarray | None) -> np.ndarray:
        """(3,) from a body's centre of mass to a ``point`` of it, body axes."""
        return np.zeros(3) if point is None else lifted(np.asarray(point, float) - self._p["centre"][body])

    def jacobian(
        self, posture: Posture, body: int, point: Sequence[float] | np.ndarray | None = None
    ) -> np.ndarray:
        """Velocity of a ``point`` of a body (body axes; its centre of mass) and its angular velocity along every degree
        of freedom: (dim + 1 or 3, freedoms)."""
        away = posture.matrices[body] @ self.arm(body, point)
        out = np.zeros((6, self.topology.freedoms))
        b = body
        while b >= 0:
            parent, _kind, _j, first, count, _ = self.topology.links[b]
            away = away + posture.levers[b, 1]
            for i in range(first, first + count):
                slide, turn = posture.motions[i]
                out[:3, i] = slide + np.cross(turn, away)
                out[3:, i] = turn
            away = away + posture.levers[b, 0]
            b = parent
        dim = self.plan.dim
        return np.concatenate([out[:dim], out[3:] if dim == 3 else out[5:]])

    def mass_matrix(self, posture: Posture) -> np.ndarray:
        """Mass matrix with armature, (freedoms, freedoms)."""
        dim, t = self.plan.dim, self.topology
        M = np.zeros((t.freedoms, t.freedoms))
        for b in range(self.plan.bodies):
            J = self.jacobian(posture, b)
            I = self._inertia(posture, b)
            M += self._p["mass"][b] * J[:dim].T @ J[:dim] + J[dim:].T @ (I if dim == 3 else I[2:, 2:]) @ J[dim:]
        joints = np.arange(t.freedoms - t.joint_freedoms, t.freedoms)
        M[joints, joints] += self._p["armature"]
        return M

    def inverse_dynamics(
        self, posture: Posture, velocity: Sequence[float] | np.ndarray, acceleration: Sequence[float] | np.ndarray
    ) -> np.ndarray:
        """Forces along the degrees of freedom (freedoms,) that give ``acceleration`` at ``velocity``, against gravity:
        recursive Newton-Euler (Featherstone 2008, section 5.3)."""
        t, n = self.topology, self.plan.bodies
        v, a = np.asarray(velocity, float), np.asarray(acceleration, float)
        w, dw, acc = np.zeros((n + 1, 3)), np.zeros((n + 1, 3)), np.zeros((n + 1, 3))  # the last row: the world
        for b in t.order:
            parent, _kind, _j, first, count, _ = t.links[b]
            upper, lower = posture.levers[b]
            span = slice(first, first + count)
            slide, turn = np.einsum("i,ijk->jk", v[span], posture.motions[span])
            slide2, turn2 = np.einsum("i,ijk->jk", a[span], posture.motions[span])
            o = w[parent]
            w[b] = o + turn
            dw[b] = dw[parent] + turn2 + np.cross(o, turn)
            acc[b] = acc[parent] + np.cross(dw[parent], upper) + np.cross(o, np.cross(o, upper) + 2 * slide) + slide2
            acc[b] += np.cross(dw[b], lower) + np.cross(w[b], np.cross(w[b], lower))
        out = np.zeros(t.freedoms)
        out[t.freedoms - t.joint_freedoms :] = self._p["armature"] * a[t.freedoms - t.joint_freedoms :]
        force, moment = np.zeros((n + 1, 3)), np.zeros((n + 1, 3))
        for b in reversed(t.order):
            parent, _kind, _j, first, count, _ = t.links[b]
            upper, lower = posture.levers[b]
            I = self._inertia(posture, b)
            force[b] += self._p["mass"][b] * (acc[b] - lifted(self._p["gravity"][0]))
            moment[b] += I @ dw[b] + np.cross(w[b], I @ w[b])
            about = moment[b] + np.cross(lower, force[b])
            for i in range(first, first + count):
                out[i] += posture.motions[i, 0] @ force[b] + posture.motions[i, 1] @ about
            force[parent] += force[b]
            moment[parent] += about + np.cross(upper, force[b])
        return out

    def _inertia(self, posture: Posture, b: int) -> np.ndarray:
        I = lift(self._p["inertia"][b])
        return posture.matrices[b] @ I @ posture.matrices[b].T
