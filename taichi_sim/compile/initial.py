"""Values a simulation begins with, by path, and the ranges a design may move them in."""

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.scene.bodies import BodyParticles
from taichi_sim.scene.paths import Quantity, match
from taichi_sim.scene.profiles import interpolate
from taichi_sim.scene.schema import Scene


def initial_values(bodies: list[BodyParticles], known: dict[str, Quantity], envs: int) -> Values:
    """(envs, …) value of every known quantity but the substep, which is not chosen yet."""
    values: Values = {}
    for path, quantity in known.items():
        value = quantity.value
        if path == "dt":
            continue
        if value is None:
            value = _seeded(path, bodies)
        values[path] = np.repeat(np.asarray(value, np.float64)[None], envs, axis=0)
    return values


def _seeded(path: str, bodies: list[BodyParticles]) -> np.ndarray:
    """Value of a profile: one entry a particle."""
    _, name, key = path.split(".")
    body = next(b for b in bodies if b.name == name)
    if key == "velocity":
        return interpolate(body.given_velocity, body.points_rest)
    return interpolate(body.given_deformation, body.points_rest)[:, :, None] * np.eye(len(body.center))


def admissible(scene: Scene, known: dict[str, Quantity]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Range the step is chosen for, by path: the design's bounds; without them a modulus is unbounded and anything
    else is taken as it is (the declared range of Poisson's ratio reaches to where no step would do)."""
    out = {}
    for entry in scene.design:
        for path in match(known, entry.path):
            value = known[path].value
            if value is None:
                continue
            free = np.asarray(np.inf) if known[path].scale == "log" else None
            low = np.asarray(entry.lower) if entry.lower is not None else value if free is None else -free
            high = np.asarray(entry.upper) if entry.upper is not None else value if free is None else free
            out[path] = (low, high)
    return out
