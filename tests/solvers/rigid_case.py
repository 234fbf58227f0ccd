"""Small rigid scenes run directly on the solver, and their gradients beside central differences."""

from dataclasses import replace

import numpy as np
from assembly import Assembly
from differences import central

from taichi_sim import runtime
from taichi_sim.solvers.rigid.shapes import BALL, HULL, WALL, pair_bit
from taichi_sim.solvers.rigid.solver import RigidSolver

STATE = ("position", "rotation", "velocity", "spin")
PARAMETERS = (
    "mass", "inertia", "centre", "point", "radius", "plane_normal", "plane_offset", "grid_scale", "grid_place",
    "friction", "stiffness", "damping", "stiction", "restitution", "gravity", "dt",
)  # fmt: skip
INPUTS = ("force", "torque")
JOINT_STATE = ("coordinate", "rate")
JOINT_PARAMETERS = (
    "parent_anchor", "child_anchor", "joint_axis", "mount", "armature", "joint_damping", "joint_stiffness",
    "joint_rest", "joint_lower", "joint_upper", "limit_stiffness", "limit_damping", "joint_friction", "joint_stiction",
    "drive_stiffness", "drive_damping", "drive_limit", "closure_anchor", "closure_axis", "closure_mount",
    "closure_stiffness", "closure_turning",
)  # fmt: skip
JOINT_INPUTS = ("joint_force", "target", "target_rate")


#: Pairs of kinds that scenes here are compiled for, whatever they hold: compiling takes longer than all of them. Those
#: with joints have balls only.
COMMON = sum({pair_bit(a, b) for a in (BALL, HULL, WALL) for b in (BALL, HULL)})
JOINTED = pair_bit(BALL, BALL) | pair_bit(BALL, WALL)


def build(assembly: Assembly, steps: int, envs: int = 1, frames: int = 1, also: int = COMMON) -> RigidSolver:
    """A solver with room for ``steps`` steps, filled; ``also``: pairs of kinds to compile for."""
    plan = assembly.plan(envs)
    plan = replace(plan, also=JOINTED if plan.jointed and also == COMMON else also)
    solver = RigidSolver(runtime.current(), plan, -(-steps // frames), frames, steps + 1)
    assembly.fill(solver)
    return solver


def run(solver: RigidSolver, steps: int) -> None:
    """All steps from slot 0."""
    solver.begin(0)
    solver.forward(0, steps, True)


class Rollout:
    """A scalar of the last slot, and its gradient by the hand-written adjoints."""

    def __init__(self, solver: RigidSolver, steps: int, synchronous: bool = False) -> None:
        rng = np.random.default_rng(0)
        self.synchronous = synchronous
        self.solver, self.steps = solver, steps
        self.states = STATE + (JOINT_STATE if solver.plan.jointed else ())
        self.weights = {n: rng.normal(0, 1, solver.store.view(n)[0].shape) for n in self.states}

    def value(self) -> float:
        run(self.solver, self.steps)
        last = self.solver.read_slot(self.steps)
        if self.synchronous:
            last["velocity"], last["spin"] = self.solver.synchronous_velocity(self.steps)
        return float(sum(np.sum(w * last[n]) for n, w in self.weights.items()))

    def gradient(self) -> dict[str, np.ndarray]:
        self.value()
        store = self.solver.store
        self.solver.clear_adjoints()
        for n, w in self.weights.items():
            if n not in ("velocity", "spin") or not self.synchronous:
                store.write(f"d_{n}", w)
        if self.synchronous:
            self.solver.add_velocity_adjoint(self.steps, self.weights["velocity"], self.weights["spin"])
        self.solver.backward(0, self.steps)
        found = {n: np.array(store.view(f"d_{n}")) for n in self.states}
        others = PARAMETERS + INPUTS + (JOINT_PARAMETERS + JOINT_INPUTS if self.solver.plan.jointed else ())
        return found | {n: store.reduced_adjoint(n) for n in others}

    def place(self, name: str) -> np.ndarray:
        """Where the values of an array are, writable."""
        view = self.solver.store.view(name)
        return view[0] if name in STATE + JOINT_STATE else view

    def difference(self, name: str, direction: np.ndarray, step: float) -> float:
        """Extrapolated central difference along ``direction``."""
        return central(self.value, self.place(name), direction, step)

    def check(
        self, names: tuple[str, ...], tolerance: float, steps: dict[str, float] | None = None, floor: float = 1e-12
    ) -> dict[str, float]:
        """Relative error of the gradient along a random direction of each array; asserts all are below. What is below
        ``floor`` counts as that large: differences of a value near 1 are rounded to 1e-11."""
        gradient = self.gradient()
        rng = np.random.default_rng(5)
        errors = {}
        for name in names:
            place = self.place(name)
            direction = rng.normal(0, 1, place.shape)
            size = (steps or {}).get(name, 1e-4) * max(1e-2, float(np.abs(place).max()))
            mine = float(np.sum(gradient[name] * direction))
            truth = [self.difference(name, direction, size * s) for s in (1.0, 0.1)]
            scale = max(abs(mine), 1e-3 * float(np.linalg.norm(gradient[name]) * np.linalg.norm(direction)), floor)
            errors[name] = min(abs(mine - t) for t in truth) / scale
        bad = {n: e for n, e in errors.items() if not e < tolerance}
        assert not bad, f"{bad} (all: {errors})"
        return errors
