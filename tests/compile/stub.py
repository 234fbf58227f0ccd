"""What bindings need of a solver: arrays that can be written and adjoints that can be read, without Taichi."""

import numpy as np

from taichi_sim.solvers.mpm.arrays import MpmPlan


class StubStore:
    """Remembers what is written; ``adjoints`` are handed out."""

    def __init__(self) -> None:
        self.written: dict[str, np.ndarray] = {}
        self.adjoints: dict[str, np.ndarray] = {}
        self.runtime = type("Runtime", (), {"precision": "f64"})()

    def write(self, name: str, values: np.ndarray) -> None:
        self.written[name] = np.array(values)

    def reduced_adjoint(self, name: str) -> np.ndarray:
        return self.adjoints[name]

    def view(self, name: str) -> np.ndarray:
        return self.adjoints[name.removeprefix("d_")]


class StubSolver:
    def __init__(self, plan: MpmPlan | None = None) -> None:
        self.store, self.plan = StubStore(), plan
        self.floor = 0.0

    def set_mass_floor(self, floor: float) -> None:
        self.floor = floor

    def __getitem__(self, name: str) -> np.ndarray:
        return self.store.written[name]


def plan(dim: int = 2, cells: int = 8, envs: int = 1, periodic: bool = False, **changes) -> MpmPlan:
    """Sizes of a cube of ``cells`` cells of 0.1 m."""
    sizes = {
        "dim": dim, "spacing": 0.1, "lower": (0.0,) * dim, "upper": (0.1 * cells,) * dim,
        "periodic": (periodic,) + (False,) * (dim - 1), "envs": envs, "partitions": 1, "particles": 5, "laws": (),
        "law_ranges": (), "rows": 1, "groups": 1, "fields": 0, "contacts": 1, "driven": True, "driven_frames": 1,
        "sort_every": 5, "segment_mode": True,
    }  # fmt: skip
    return MpmPlan(**{**sizes, **changes})


def pullback_agrees(binding, values, names, solver, paths, step=1e-6, tolerance=1e-6) -> None:
    """``Σ bar · written`` has the gradient that ``binding.pullback`` gives, along a random direction of each path."""
    rng = np.random.default_rng(0)
    binding.apply(values, solver)
    bars = {name: rng.normal(size=solver[name].shape) for name in names}
    solver.store.adjoints = dict(bars)
    found = binding.pullback(values, solver)

    def total(changed) -> float:
        binding.apply(changed, solver)
        return sum(float(np.sum(bars[name] * solver[name])) for name in names)

    for path in paths:
        direction = rng.normal(size=values[path].shape)
        size = np.max(np.abs(values[path])) or 1.0
        h = step * size
        ends = [total({**values, path: values[path] + sign * h * direction}) for sign in (1, -1)]
        slope = float(np.sum(found[path] * direction))
        difference = (ends[0] - ends[1]) / (2 * h)
        assert abs(slope - difference) <= tolerance * max(abs(slope), abs(difference), 1e-12), (path, slope, difference)
    binding.apply(values, solver)
