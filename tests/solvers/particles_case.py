"""Small particle scenes run directly on the solver, and their gradients beside central differences."""

import numpy as np
from differences import central

from taichi_sim import runtime
from taichi_sim.solvers.particles.arrays import COMPLIANT, SEPARATE, SLIP, STICKY, ParticlesPlan, rooms
from taichi_sim.solvers.particles.solver import ParticlesSolver

STATE = ("x", "v", "spin", "stretch", "roll")
PARAMETERS = (
    "mass", "radius", "spring", "bend_stiffness", "surface", "step", "gravity", "wall_normal", "wall",
    "obstacle_friction", "particle_force", "impulse",
)  # fmt: skip
INPUTS = ("group_force", "actuation")


def build(plan, steps, values, frames=1, state=None):
    """A solver with room for ``steps`` steps, filled; ``state`` goes into slot 0."""
    solver = ParticlesSolver(runtime.current(), plan, -(-steps // frames), frames, steps + 1)
    for name, value in values.items():
        view = solver.store.view(name)
        view[...] = np.broadcast_to(value, view.shape)
    start = solver.at_rest(np.zeros(plan.dim))
    for name, value in (state or {}).items():
        start[name] = np.reshape(value, start[name].shape)
    solver.write_first_slot(start)
    return solver


def run(solver, steps, record=False):
    """All steps from slot 0; the last state."""
    solver.begin(0)
    solver.forward(0, steps, record)
    return solver.read_slot(steps)


class Rollout:
    """A scalar of the last slot, and its gradient by the hand-written adjoints."""

    def __init__(self, solver, steps, seed=0):
        rng = np.random.default_rng(seed)
        self.solver, self.steps, self.turn_normals = solver, steps, False
        self.weights = {n: rng.normal(0, 1, solver.store.view(n)[0].shape) for n in ("x", "v", "spin")}

    def value(self):
        last = run(self.solver, self.steps)
        return float(sum(np.sum(w * last[n]) for n, w in self.weights.items()))

    def gradient(self):
        run(self.solver, self.steps, record=True)
        store = self.solver.store
        self.solver.clear_adjoints()
        for n, w in self.weights.items():
            store.write(f"d_{n}", w)
        self.solver.backward(0, self.steps)
        found = {n: np.array(store.view(f"d_{n}")) for n in STATE}
        return found | {n: store.reduced_adjoint(n) for n in PARAMETERS + INPUTS}

    def place(self, name):
        view = self.solver.store.view(name)
        return view[0] if name in STATE else view

    def difference(self, name, direction, step):
        """Extrapolated central difference along ``direction``."""
        return central(self.value, self.place(name), direction, step)

    def errors(self, names, sizes=(1e-4, 1e-5, 1e-6), seed=5):
        """Relative error of the gradient along a random direction of each array."""
        gradient = self.gradient()
        rng = np.random.default_rng(seed)
        found = {}
        for name in names:
            place = self.place(name)
            if not np.any(gradient[name]):
                found[name] = 0.0 if name in ("stretch", "roll") else np.inf
                continue
            direction = rng.normal(0, 1, place.shape)
            if name in ("surface", "spring", "wall", "step"):
                direction *= np.abs(place)  # columns of different units
            if name == "radius" and self.solver.plan.grains:
                direction *= place > 0  # a point does not become a grain
            if name == "wall_normal" and self.turn_normals:
                direction -= np.sum(direction * place, axis=-1, keepdims=True) * place
            size = max(1e-2, float(np.abs(place).max())) / float(np.abs(direction).max())
            mine = float(np.sum(gradient[name] * direction))
            truth = [self.difference(name, direction, size * s) for s in sizes]
            scale = max(abs(mine), 1e-3 * float(np.linalg.norm(gradient[name]) * np.linalg.norm(direction)))
            found[name] = min(abs(mine - t) for t in truth) / scale
        return found


def network(dim, segment_mode=False, envs=2, walls=()):
    """Points joined by springs and bends in all ways: driven, held, pushed, damped, with coincident ends."""
    rng = np.random.default_rng(1)
    n = 9
    edges = [(i, i + 1, i % 3) for i in range(n - 1)] + [(0, 4, 1), (6, 2, 2), (7, 8, 0)]
    plan = ParticlesPlan(
        dim, envs, n, tuple(edges), tuple((i, i + 1, i + 2) for i in range(n - 2)), actuators=3, groups=3,
        walls=walls, driven=True, driven_frames=2, coupled=True, partitions=2, segment_mode=segment_mode,
    )  # fmt: skip
    count = envs * n
    tag = np.zeros((n, 4), int)
    tag[:, 1] = rng.integers(0, 3, n)
    tag[3, 2] = 1
    values = {
        "mass": rng.uniform(0.5, 1.5, count),
        "radius": rng.uniform(0.0, 0.05, count),
        "spring": np.column_stack([rng.uniform(5, 50, (envs * len(edges), 2)) * [1, 0.02],
                                   rng.uniform(0.1, 0.5, envs * len(edges))]),
        "bend_stiffness": rng.uniform(0.1, 0.5, envs * (n - 2)),
        "step": [0.01, 0.3],
        "gravity": rng.normal(0, 3, (envs, dim)),
        "tag": tag,
        "particle_force": rng.normal(0, 2, (2, count, dim)),
        "impulse": rng.normal(0, 0.02, dim),
        "group_force": rng.normal(0, 2, (4, envs * 3, dim)),
        "actuation": rng.normal(0, 0.2, (4, envs * 3)),
    }  # fmt: skip
    x = rng.normal(0, 0.5, (count, dim))
    x[8] = x[7]  # a spring and a bend without length
    return plan, values, {"x": x, "v": rng.normal(0, 1, (count, dim))}


def box(dim, kinds, envs, width):
    """``wall_normal`` and ``wall`` of walls on all sides, in turn of the given kinds."""
    normals = np.concatenate([np.eye(dim), -np.eye(dim)])
    plan_walls = tuple(kinds[i % len(kinds)] for i in range(2 * dim))
    offsets = np.full(2 * dim, -width)
    friction = 0.3 + 0.05 * np.arange(2 * dim)
    return plan_walls, {
        "wall_normal": np.tile(normals, (envs, 1)),
        "wall": np.tile(np.column_stack([offsets, friction]), (envs, 1)),
    }


HARD = (STICKY, SLIP, SEPARATE)


def heap(dim, hertz=False, rolling=True, segment_mode=False, envs=1, seed=2):
    """Spinning grains of two surfaces pressed together in a box of compliant walls."""
    rng = np.random.default_rng(seed)
    lattice = 0.115 * np.indices((4, 3, 2)[:dim]).reshape(dim, -1).T
    n, width = len(lattice), 0.23
    walls, wall_values = box(dim, (COMPLIANT,), envs, width)
    count = envs * n
    radius = rng.uniform(0.05, 0.08, count)
    neighbours, contacts = rooms(dim, radius, 2 * dim)
    plan = ParticlesPlan(
        dim, envs, n, surfaces=2, walls=walls, grains=True, hertz=hertz, rolling=rolling, neighbours=neighbours,
        contacts=contacts, partitions=3, segment_mode=segment_mode,
    )  # fmt: skip
    tag = np.zeros((n, 4), int)
    tag[:, 0] = np.arange(n) % 2
    stiffness = 5e4 if hertz else 5e3
    values = {
        "mass": rng.uniform(0.5, 1.5, count),
        "radius": radius,
        "surface": np.tile([[stiffness, 0.3, 0.4, 0.2], [1.6 * stiffness, 0.5, 0.2, 0.1]], (envs, 1)),
        "step": [1e-3, 0.3],
        "gravity": np.tile(np.eye(dim)[1] * -9.8, (envs, 1)),
        "tag": tag,
        **wall_values,
    }
    turn = 1 if dim == 2 else 3
    state = {
        "x": np.tile(lattice - lattice.mean(0), (envs, 1)) + rng.normal(0, 0.012, (count, dim)),
        "v": rng.normal(0, 0.5, (count, dim)),
        "spin": rng.normal(0, 5, (count, turn)),
    }
    return plan, values, state


def mixture(dim, segment_mode=False):
    """Everything at once: grains joined by springs that do not touch each other, held grains, points without a radius
    or a surface, hard and compliant walls, forces, impulses."""
    plan, values, state = heap(dim, segment_mode=segment_mode)
    rng = np.random.default_rng(4)
    n = plan.particles
    walls, sides = box(dim, (COMPLIANT, SEPARATE), 1, 0.2)
    edges = tuple((i, i + 1, i % 2) for i in range(5))
    plan = ParticlesPlan(
        dim, 1, n, edges, ((0, 1, 2), (2, 3, 4)), actuators=2, groups=2, surfaces=2, walls=walls, grains=True,
        rolling=True, neighbours=plan.neighbours, contacts=plan.contacts, driven=True, coupled=True, partitions=3,
        segment_mode=segment_mode,
    )  # fmt: skip
    tag = values["tag"]
    tag[:6, 3] = 1  # one clan
    tag[6, 2] = tag[9, 2] = 1  # held
    tag[7, 0] = -1
    tag[:, 1] = np.arange(n) % 2
    values["radius"][8] = 0.0
    values |= sides | {
        "spring": np.column_stack([np.full((5, 2), [300.0, 1.0]), rng.uniform(0.08, 0.12, 5)]),
        "bend_stiffness": 0.3,
        "particle_force": rng.normal(0, 3, (1, n, dim)),
        "impulse": rng.normal(0, 0.01, dim),
        "group_force": rng.normal(0, 3, (1, 2, dim)),
        "actuation": rng.normal(0, 0.2, (1, 2)),
    }
    state["v"] = 2 * state["v"]
    return plan, values, state
