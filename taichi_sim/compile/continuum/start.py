"""Initial state: pose, velocity and deformation of bodies, to particles and back."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.scene.bodies import apply_pose
from taichi_sim.scene.pose import rotation_matrix, rotation_vjp, spin, spin_vjp
from taichi_sim.solvers.mpm.solver import MpmSolver


@dataclass(frozen=True)
class BodyStart:
    """Rest geometry of one body: positions before the pose (n, dim) and the centre the pose turns about (dim,)."""

    name: str
    rest: np.ndarray
    centre: np.ndarray
    particles: slice

    def path(self, key: str) -> str:
        """Path of one of its quantities."""
        return f"bodies.{self.name}.{key}"


class Start(Binding):
    """``x = c + p + R (X - c)``, ``v = v0 + ω × R (X - c)``, ``C = ω ×``, ``F = R F0``; in body order.

    Particles of a spinning body spin themselves: without that the first substep would spread their centres' angular
    momentum over the whole body, which would turn more slowly, by a per cent at ten cells across.
    """

    def __init__(self, bodies: list[BodyStart], envs: int, particles: int, dim: int) -> None:
        self.bodies, self.envs, self.particles, self.dim = bodies, envs, particles, dim

    def state(self, values: Values) -> dict[str, np.ndarray]:
        """Initial ``x, v, C, F`` (envs, particles, …)."""
        shape = (self.envs, self.particles, self.dim)
        x, v = np.empty(shape), np.empty(shape)
        C, F = np.empty((*shape, self.dim)), np.empty((*shape, self.dim))
        for body in self.bodies:
            for e in range(self.envs):
                keys = ("position", "rotation", "velocity", "angular_velocity", "deformation")
                given = [values[body.path(key)][e] for key in keys]
                p = body.particles
                x[e, p], v[e, p], F[e, p] = apply_pose(body.rest, body.centre, *given)
                C[e, p] = spin(values[body.path("angular_velocity")][e], np.eye(self.dim)).T
        return {"x": x, "v": v, "C": C, "F": F}

    def apply(self, values: Values, solver: MpmSolver) -> None:
        """Nothing: the state enters through the timeline's first slot."""

    def pullback(self, values: Values, solver: MpmSolver) -> Values:
        bars = {name: solver.adjoint_in_body_order(name).astype(np.float64) for name in ("x", "v", "C", "F")}
        return self.pullback_state(values, bars)

    def pullback_state(self, values: Values, bars: dict[str, np.ndarray]) -> Values:
        """Gradient by path from adjoints of the initial state in body order."""
        out: Values = {}
        for body in self.bodies:
            found: dict[str, list[np.ndarray]] = {}
            for e in range(self.envs):
                rotation, omega = values[body.path("rotation")][e], values[body.path("angular_velocity")][e]
                arm0 = body.rest - body.centre
                R = rotation_matrix(rotation, self.dim)
                arm = arm0 @ R.T
                x_bar, v_bar = bars["x"][e, body.particles], bars["v"][e, body.particles]
                F_bar, F0 = bars["F"][e, body.particles], values[body.path("deformation")][e]
                F0_each = np.broadcast_to(F0, F_bar.shape)
                R_bar = np.einsum("nij,nkj->ik", F_bar, F0_each)
                omega_bar, arm_bar = spin_vjp(omega, arm, v_bar)
                own_spin = bars["C"][e, body.particles].sum(axis=0).T
                omega_bar = omega_bar + spin_vjp(omega, np.eye(self.dim), own_spin)[0]
                parts = {
                    "position": x_bar.sum(axis=0),
                    "rotation": rotation_vjp(rotation, (x_bar + arm_bar).T @ arm0 + R_bar, self.dim),
                    "velocity": _reduce(v_bar, values[body.path("velocity")][e].shape),
                    "angular_velocity": np.asarray(omega_bar),
                    "deformation": _reduce(R.T @ F_bar, F0.shape),
                }
                for key, part in parts.items():
                    found.setdefault(key, []).append(part)
            for key, stack in found.items():
                out[body.path(key)] = np.stack(stack).reshape(values[body.path(key)].shape)
        return out


def _reduce(bar: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum over particles unless the value has one entry for each."""
    return bar if bar.shape == shape else bar.sum(axis=0)
