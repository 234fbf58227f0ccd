"""Small scenes without corners, and derivatives of whole rollouts by extrapolated central differences."""

from collections.abc import Callable, Mapping

import numpy as np

import taichi_sim as ts

STEPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def solid(law: str, dim: int = 2) -> ts.Scene:
    """A clamped beam, bent, spun and driven by a muscle and a wind; nothing touches anything."""
    cells = 20 if dim == 2 else 12
    size = [0.5, 0.2, 0.2][:dim]
    start = [0.0, 0.35, 0.35][:dim]
    upper = [a + b for a, b in zip(start, size, strict=True)]
    axis = [1.0, *[0.0] * (dim - 1)]
    return ts.Scene(
        name=f"{law}, {dim}-D",
        dim=dim,
        duration=0.2,
        frame_dt=0.02,
        gravity=[0.2, -3.0, 1.0][:dim],
        damping=0.5,
        domain=ts.Domain(upper=[1.0] * dim, cells=cells, walls={"x_lower": "sticky", "default": "slip"}),
        solver=ts.SolverSettings(max_speed=2.0),
        materials={"rubber": ts.Material(law=law, density=100.0, youngs_modulus=2e3, poissons_ratio=0.3)},
        bodies={
            "beam": ts.Body(
                shape={"kind": "box", "lower": start, "upper": upper},
                material="rubber",
                velocity=[0.1, 0.3, -0.2][:dim],
                angular_velocity=0.5 if dim == 2 else [0.3, 0.2, 0.5],
                deformation=np.diag([1.02, 0.97, 1.01][:dim]) + 0.01,
            )
        },
        fields={
            "wind": ts.Field(
                kind="uniform", acceleration=axis, signal=ts.Signal(kind="sinusoids", frequency=3.0, weights=[0.7])
            )
        },
        actuators={
            "muscle": ts.Actuator(
                kind="muscle", body="beam", direction=axis, strength=200.0,
                signal=ts.Signal(kind="sinusoids", frequency=5.0, weights=[0.4, 0.2], phases=[0.3, 1.4], squash="tanh"),
            )
        },
        objectives={"reach": ts.Objective(kind="distance", body="beam", target=[0.4, 0.6, 0.5][:dim], squared=True)},
    )  # fmt: skip


def fluid() -> ts.Scene:
    """A drop that flies, spins and oscillates between walls it does not reach."""
    return ts.Scene(
        name="newtonian_fluid, 2-D",
        dim=2,
        duration=0.2,
        frame_dt=0.02,
        gravity=[0.1, -2.0],
        damping=0.5,
        domain=ts.Domain(upper=[1.0, 1.0], cells=20),
        solver=ts.SolverSettings(max_speed=2.0),
        materials={
            "oil": ts.Material(law="newtonian_fluid", density=900.0, bulk_modulus=2e4, viscosity=2.0, gamma=7.0)
        },
        bodies={
            "drop": ts.Body(
                shape={"kind": "sphere", "center": [0.5, 0.5], "radius": 0.15},
                material="oil",
                velocity=[0.3, 0.2],
                angular_velocity=2.0,
                deformation=np.diag([0.99, 1.0]),
                regions={"right": ts.Region(shape={"kind": "box", "lower": [0.5, 0.3], "upper": [0.7, 0.6]})},
            )
        },
        objectives={
            "reach": ts.Objective(kind="distance", body="drop", region="right", target=[0.4, 0.6], squared=True),
            "speed": ts.Objective(kind="velocity", body="drop", region="right", direction=[1.0, 0.5]),
        },
    )


def smooth_scenes() -> list[ts.Scene]:
    """Every law, in both dimensions."""
    return [
        solid("neo_hookean"),
        solid("fixed_corotated"),
        solid("neo_hookean", 3),
        solid("fixed_corotated", 3),
        fluid(),
    ]


def extrapolated(function: Callable[[float], float], wanted: float) -> float:
    """Derivative at 0 by central differences, extrapolated from pairs of steps; the one nearest to ``wanted``."""
    quotients = []
    for step in STEPS:
        wide, narrow = ((function(h) - function(-h)) / (2 * h) for h in (step, step / 2))
        quotients.append((4 * narrow - wide) / 3)
    return min(quotients, key=lambda q: abs(q - wanted))


def along(sim: ts.Simulation, path: str, direction: np.ndarray, size: float) -> Callable[[float], float]:
    """The loss when ``path`` is moved by ``t · size · direction``."""
    base = sim.get(path)

    def loss(t: float) -> float:
        sim.set(path, base + t * size * direction)
        try:
            return float(sim.observe("loss"))
        finally:
            sim.set(path, base)

    return loss


def errors(sim: ts.Simulation, gradients: Mapping[str, np.ndarray], seed: int = 0) -> dict[str, float]:
    """Relative error of the derivative by every path, along a random direction."""
    rng = np.random.default_rng(seed)
    found = {}
    for path, gradient in gradients.items():
        value = sim.get(path)
        direction = rng.uniform(0.5, 1.0, value.shape) * rng.choice([-1.0, 1.0], value.shape)
        size = float(np.max(np.abs(value), initial=0.0)) or 1.0
        wanted = float(np.sum(gradient * direction)) * size
        reached = extrapolated(along(sim, path, direction, size), wanted)
        found[path] = abs(wanted - reached) / max(abs(wanted), abs(reached), 1e-300)
    return found
