"""Chambers and tendons on particles that nothing else moves."""

from dataclasses import replace

import numpy as np

from taichi_sim.core.array import Array
from taichi_sim.core.store import Store
from taichi_sim.solvers.acting.arrays import CHAMBER, TENDON, ActingPlan
from taichi_sim.solvers.acting.solver import Acting

HOST = (
    Array("x", ("dim",), "particle", "state", "m", "position"),
    Array("v", ("dim",), "particle", "state", "m/s", "velocity"),
)


def solid(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners and outward faces of a square or an octahedron."""
    if dim == 2:
        return np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]]), np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    corners = np.concatenate([np.eye(3), -np.eye(3)])
    faces = np.array([[0, 1, 2], [1, 3, 2], [3, 4, 2], [4, 0, 2], [1, 0, 5], [3, 1, 5], [4, 3, 5], [0, 4, 5]])
    return corners, faces


def case(dim: int, envs: int, rng: np.random.Generator) -> tuple[ActingPlan, dict[str, np.ndarray]]:
    """A chamber whose corners go with three particles each, and two tendons, one of them with fixed ends."""
    corners, faces = solid(dim)
    n, particles = len(corners), 12
    ends = [n + i for i in range(4)]  # a tendon through four anchors, then one through three, two of them fixed
    anchors = n + 7
    free = [*range(n), *ends, n + 5]
    links = np.array([(a, (3 * i + j) % 10) for i, a in enumerate(free) for j in range(3)])
    units = np.array([(CHAMBER, 0, len(faces)), (TENDON, n, n + 4), (TENDON, n + 4, n + 7)])
    bound = rng.permutation(particles)[:10]
    plan = ActingPlan(dim, envs, particles, anchors, bound, links, faces, units)
    offset = np.zeros((envs, anchors, dim))
    offset[:, :n] = 3.0 * corners
    offset[:, n:] = rng.normal(size=(envs, 7, dim))
    values = {
        "weight": rng.normal(0.3, 0.2, envs * len(links)),
        "offset": offset.reshape(-1, dim),
        "mass": rng.uniform(1, 2, envs * len(bound)),
        "dt": rng.uniform(0.1, 0.2, envs),
        "trait": np.tile([[3.0, 2.0, 0.0], [0.0, 0.0, 0.4], [2.0, 0.5, 0.2]], (envs, 1)),
        "drive": rng.uniform(0.5, 2.0, (2, envs * 3, 2)),
        "x": rng.normal(0, 0.3, (envs * particles, dim)),
        "v": rng.normal(size=(envs * particles, dim)),
    }
    return plan, values


class Case:
    """One kick of velocities, and its adjoint."""

    def __init__(self, runtime, plan: ActingPlan, values: dict[str, np.ndarray]) -> None:
        self.plan, self.values = plan, values
        self.host = Store(runtime, HOST, {"particle": plan.envs * plan.particles}, plan.dim, 1, 1, 1)
        self.acting = Acting(runtime, plan, self.host.arrays, 2)

    def write(self, values: dict[str, np.ndarray]) -> None:
        for name, value in values.items():
            if name in ("x", "v"):
                self.host.write(name, value[None])
            else:
                self.acting.store.write(name, value)

    def velocities(self, **changed: np.ndarray) -> np.ndarray:
        """After a kick in frame 1."""
        self.write({**self.values, **changed})
        self.acting.kick(0, 1)
        after = np.array(self.host.view("v")[0])
        self.acting.unkick(0)
        return after

    def force(self, **changed: np.ndarray) -> np.ndarray:
        """(envs, bound, dim) N."""
        self.velocities(**changed)
        return np.array(self.acting.store.view("force")).reshape(self.plan.envs, -1, self.plan.dim)

    def gradient(self, bar: np.ndarray) -> dict[str, np.ndarray]:
        self.write(self.values)
        self.host.write("d_v", bar)
        self.host.zero(["d_x"])
        self.acting.clear_adjoints()
        self.acting.kick(0, 1)
        self.acting.unkick(0)
        self.acting.kick_adjoint(0, 1)
        found = {name: self.acting.store.reduced_adjoint(name) for name in ("weight", "offset", "mass", "dt", "trait")}
        found["drive"] = self.acting.store.reduced_adjoint("drive")
        found["x"] = np.array(self.host.view("d_x"))
        return found


def without(plan: ActingPlan, kind: int) -> ActingPlan:
    """The plan without the units of a kind."""
    return replace(plan, units=plan.units[plan.units[:, 0] != kind])
