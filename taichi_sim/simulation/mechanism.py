"""The rigid bodies and joints of a simulation as a mechanism: kinematics and inverse dynamics by name."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from taichi_sim.compile.rigid.family import RigidFamily
from taichi_sim.core.errors import unknown
from taichi_sim.solvers.rigid import mechanism
from taichi_sim.solvers.rigid.attitude import attitude
from taichi_sim.solvers.rigid.kinematics import Posture
from taichi_sim.solvers.rigid.solver import RigidSolver
from taichi_sim.solvers.rigid.topology import BALL, LOOSE

AXES = "xyz"


class Mechanism:
    """What planners and controllers ask of a robot: poses, Jacobians, mass matrix, inverse dynamics.

    For the values the simulation had when it was made, without contacts and drives. ``freedoms`` names the degrees of
    freedom in the order of all columns and rows: ``"BODY.v_x"``, ``"BODY.w_z"`` of bodies that hang on nothing (world
    axes), ``"JOINT"`` or, of balls, ``"JOINT.x"`` (axes of the parent). Made by ``Simulation.mechanism``.
    """

    def __init__(
        self, family: RigidFamily, solver: RigidSolver, state: Mapping[str, np.ndarray], scales: list[float], env: int
    ) -> None:
        self._inner = mechanism.Mechanism(solver, env)
        self._bodies = {body.name: b for b, body in enumerate(family.bodies)}
        self._pivots, self._scales = [body.pivot for body in family.bodies], scales
        self._joints = {link.name: link for link in family.joints.tree}
        self._dim, count, topology = family.plan.dim, family.plan.bodies, family.plan.topology
        mine = slice(env * count, (env + 1) * count)
        self._position, self._rotation = state["position"][mine], state["rotation"][mine]
        numbers = topology.coordinates
        self._coordinate = state.get("coordinate", np.zeros(0))[env * numbers : (env + 1) * numbers]
        self.freedoms = self._names(family)

    def _names(self, family: RigidFamily) -> tuple[str, ...]:
        topology = family.plan.topology
        names = [""] * topology.freedoms
        for b, body in enumerate(family.bodies):
            _, kind, _, first, count, _ = topology.links[b]
            if kind == LOOSE:
                turns = ["w_z"] if self._dim == 2 else [f"w_{a}" for a in AXES]
                ways = [*(f"v_{a}" for a in AXES[: self._dim]), *turns]
                names[first : first + count] = [f"{body.name}.{way}" for way in ways]
        first = topology.freedoms - topology.joint_freedoms
        for name, link in self._joints.items():
            mine = slice(first + link.freedoms.start, first + link.freedoms.stop)
            names[mine] = [f"{name}.{a}" for a in AXES] if link.kind == BALL else [name] * (mine.stop - mine.start)
        return tuple(names)

    def posture(
        self,
        coordinates: Mapping[str, Any] | None = None,
        poses: Mapping[str, tuple[Any, Any]] | None = None,
    ) -> Posture:
        """Forward kinematics. ``coordinates`` of joints by name (rad, m; of balls a rotation vector), ``poses`` of
        bodies that hang on nothing: centre of mass (m) and angle or rotation vector (rad); what is not given is as at
        the start. Raises ``ValueError`` for an unknown name or a wrong shape.
        """
        q, x, R = self._coordinate.copy(), self._position.copy(), self._rotation.copy()
        for name, value in (coordinates or {}).items():
            if name not in self._joints:
                raise ValueError(unknown("joint", name, self._joints))
            link = self._joints[name]
            count = link.freedoms.stop - link.freedoms.start
            given = _numbers(f"coordinate of {name!r}", value, count)
            q[link.coordinates] = attitude(given, 3) if link.kind == BALL else given
        for name, (place, turn) in (poses or {}).items():
            b = self._body(name)
            if self._inner.topology.links[b][1] != LOOSE:
                raise ValueError(f"{name!r} hangs on a joint: give the joint's coordinate instead of a pose")
            x[b] = _numbers(f"place of {name!r}", place, self._dim)
            R[b] = attitude(_numbers(f"rotation of {name!r}", turn, 1 if self._dim == 2 else 3), self._dim)
        return self._inner.forward(q, x, R)

    def place(self, body: str, point: Sequence[float] | None = None, at: Posture | None = None) -> np.ndarray:
        """(dim,) m, where a ``point`` of a body is (coordinates of its shape before the pose, as of markers; none: its
        centre of mass)."""
        b, at = self._body(body), self._at(at)
        return at.position[b] + (at.matrices[b] @ self._inner.arm(b, self._local(b, point)))[: self._dim]

    def jacobian(self, body: str, point: Sequence[float] | None = None, at: Posture | None = None) -> np.ndarray:
        """(dim + 1 or 3, freedoms): velocity of the point, then angular velocity of the body, world axes."""
        b = self._body(body)
        return self._inner.jacobian(self._at(at), b, self._local(b, point))

    def mass_matrix(self, at: Posture | None = None) -> np.ndarray:
        """(freedoms, freedoms), with the joints' armature."""
        return self._inner.mass_matrix(self._at(at))

    def inverse_dynamics(self, velocity: Any, acceleration: Any, at: Posture | None = None) -> np.ndarray:
        """(freedoms,) forces (N, N m) along the degrees of freedom that give ``acceleration`` at ``velocity``, both
        (freedoms,), against gravity. At rest: what holds the robot up."""
        count = len(self.freedoms)
        v, a = (_numbers(name, x, count) for name, x in (("velocity", velocity), ("acceleration", acceleration)))
        return self._inner.inverse_dynamics(self._at(at), v, a)

    def _at(self, at: Posture | None) -> Posture:
        if at is not None and not isinstance(at, Posture):
            raise ValueError(f"at must be what posture() returns, got {at!r}")
        return self.posture() if at is None else at

    def _body(self, name: str) -> int:
        if name not in self._bodies:
            raise ValueError(unknown("rigid body", name, self._bodies))
        return self._bodies[name]

    def _local(self, b: int, point: Sequence[float] | None) -> np.ndarray | None:
        """From the body's pivot, where its axes begin."""
        return None if point is None else self._scales[b] * (_numbers("point", point, self._dim) - self._pivots[b])


def _numbers(what: str, value: Any, count: int) -> np.ndarray:
    try:
        given = np.asarray(value, float).reshape(-1)
    except (TypeError, ValueError):
        given = np.full(0, np.nan)
    if given.shape != (count,) or not np.isfinite(given).all():
        raise ValueError(f"{what} must be {count} finite number{'s' if count > 1 else ''}, got {value!r}")
    return given
