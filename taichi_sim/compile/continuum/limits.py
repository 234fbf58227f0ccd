"""The largest stable substep of an explicit scheme, for the stiffest design that is allowed."""

import math

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.continuum.matter import BodyMatter
from taichi_sim.compile.limits import StepLimit, extreme
from taichi_sim.scene.schema import Scene


def default_max_speed(speed: float, gravity: np.ndarray, duration: float, extent: np.ndarray) -> float:
    """Fastest particle to expect: the start's speed plus what gravity adds in the time, or in the domain's height."""
    g = float(np.linalg.norm(gravity))
    fall = 0.0
    if g > 0:
        height = float(np.abs(extent @ (gravity / g)))
        fall = min(g * duration, math.sqrt(2.0 * g * height))
    return speed + fall


def expected_speed(
    scene: Scene,
    v: np.ndarray,
    slices: dict[str, slice],
    bounds: dict[str, tuple[np.ndarray, np.ndarray]],
    others: float = 0.0,
) -> float:
    """Speed the step is chosen for, m/s: ``solver.max_speed``; without it that of the fastest start the design allows,
    and what gravity adds. ``v`` (envs, particles, dim) are the velocities of the start, ``others`` (m/s) that of what
    may push the particles.

    Raises ``ValueError`` where ``solver.max_speed`` is below what a body starts with.
    """
    present = {name: float(np.max(np.linalg.norm(v[:, where], axis=-1), initial=0.0)) for name, where in slices.items()}
    fastest = max(present, key=lambda name: present[name])
    speed = present[fastest]
    for name in slices:
        ends = [np.ravel(end) for end in bounds.get(f"bodies.{name}.velocity", ())]
        largest = float(np.max(np.abs(np.concatenate(ends)), initial=0.0)) if ends else 0.0
        if math.isfinite(largest):
            speed = max(speed, math.sqrt(scene.dim) * largest)
    extent = np.asarray(scene.domain.upper) - np.asarray(scene.domain.lower)
    expected = default_max_speed(max(speed, others), np.asarray(scene.gravity), scene.duration, extent)
    given = scene.solver.max_speed
    if given is None:
        return expected
    if present[fastest] > float(given) * (1 + 1e-6):
        raise ValueError(
            f"solver.max_speed = {float(given):g} m/s is below the {present[fastest]:.4g} m/s body {fastest!r} starts "
            f"with; leave it out (then {expected:.3g} m/s is expected) or set it to the fastest speed there will be"
        )
    return float(given)


def step_limit(
    bodies: list[BodyMatter],
    values: Values,
    bounds: dict[str, tuple[np.ndarray, np.ndarray]],
    added_stiffness: dict[str, float],
    spacing: float,
    cfl: float,
    max_speed: float,
    dim: int,
) -> StepLimit:
    """``cfl`` cells per substep at wave speed plus ``max_speed``, and the limit of explicit viscosity.

    ``bounds`` holds the design's (lower, upper) by path: each parameter is taken where it makes the body stiffest.
    ``added_stiffness`` (Pa) by body is what actuators add.
    """
    worst: StepLimit | None = None
    for body in bodies:
        density = float(np.min(extreme(values, bounds, body.density, -1)))
        parameters = {}
        for name, path in body.parameters.items():
            low, high = extreme(values, bounds, path, -1), extreme(values, bounds, path, +1)
            candidates = [float(np.min(low)), float(np.max(high))]
            parameters[name] = candidates
        wave = 0.0
        diffusivity = 0.0
        for choice in _corners(parameters):
            wave = max(wave, body.law.wave_speed(choice, density))
            diffusivity = max(diffusivity, body.law.diffusivity(choice, density))
        wave = math.sqrt(wave**2 + added_stiffness.get(body.name, 0.0) / density)
        allowed = cfl * spacing / max(wave + max_speed, 1e-300)
        if diffusivity > 0:
            allowed = min(allowed, 0.5 * spacing**2 / (2 * dim * diffusivity))
        if worst is None or allowed < worst.allowed:
            worst = StepLimit(allowed, body.name, wave, max_speed)
    assert worst is not None
    return worst


def _corners(parameters: dict[str, list[float]]) -> list[dict[str, float]]:
    corners: list[dict[str, float]] = [{}]
    for name, candidates in parameters.items():
        corners = [{**corner, name: value} for corner in corners for value in dict.fromkeys(candidates)]
    return corners
