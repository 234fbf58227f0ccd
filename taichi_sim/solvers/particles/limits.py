"""The largest stable step, and what sets it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from taichi_sim.solvers.particles.arrays import COMPLIANT, HELD, SURFACE, ParticlesPlan

#: Share of the limit of stability that is allowed: near it an oscillation keeps its amplitude but not its frequency.
SHARE = 0.5

#: Most contacts that push a grain at once.
MOST_CONTACTS = {2: 6, 3: 12}


@dataclass(frozen=True)
class StepLimit:
    """``allowed`` step, s, and what sets it: ``culprit`` is ``"springs"``, ``"bends"`` or ``"grains"`` of ``particle``
    in ``env``; ``"nothing"`` (and -1) where any step would do."""

    allowed: float
    culprit: str
    env: int
    particle: int


def step_limit(plan: ParticlesPlan, values: Mapping[str, np.ndarray], speed: float = 0.0) -> StepLimit:
    """The largest allowed step for the parameters ``values`` (arrays by name, shaped as the solver's).

    For ``v' = v - h (ω² x + γ v)``, ``x' = x + h v'`` a step is stable while ``h² ω² + 2 h γ < 4``. The matrices of
    stiffness and damping over mass have no eigenvalue above their largest sum of a row: twice the springs of a particle
    over its mass; bends likewise, with the second differences they are made of. A grain has as many contacts as fit
    around it, for Hertz's law at the overlap of an impact with ``speed`` (m/s), one of them damped. Bends need the
    positions ``values["x"]``.
    """
    n = plan.particles
    mass = np.asarray(values["mass"], float).reshape(plan.envs, n)
    causes: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # sums over a row of stiffness and damping
    if plan.edges:
        ends = np.asarray(plan.edges)[:, :2]
        spring = np.asarray(values["spring"], float).reshape(plan.envs, len(ends), 3)
        stiff, damp = (2 * _sums(ends, np.repeat(spring[..., c], 2, axis=1), n) for c in (0, 1))
        causes["springs"] = stiff, damp
    if plan.bends:
        causes["bends"] = _bends(plan, values), np.zeros_like(mass)
    if plan.grains:
        causes["grains"] = _contacts(plan, values, mass, speed)
    if not causes:
        return StepLimit(math.inf, "nothing", -1, -1)
    square, rate = (sum(cause[c] for cause in causes.values()) / mass for c in (0, 1))
    with np.errstate(divide="ignore"):
        limit = SHARE * 4.0 / (rate + np.sqrt(rate * rate + 4.0 * square))
    limit[:, np.asarray(values["tag"])[:, HELD] > 0] = np.inf
    at = np.unravel_index(int(np.argmin(limit)), limit.shape)
    allowed = float(limit[at])
    if not math.isfinite(allowed):
        return StepLimit(math.inf, "nothing", -1, -1)
    culprit = max(causes, key=lambda name: allowed**2 * causes[name][0][at] + 2 * allowed * causes[name][1][at])
    return StepLimit(allowed, culprit, int(at[0]), int(at[1]))


def _sums(ends: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """(envs, count) sums over particles of ``values`` (envs, entries of ``ends``)."""
    return np.stack([np.bincount(ends.ravel(), weights=v, minlength=count) for v in values])


def _bends(plan: ParticlesPlan, values: Mapping[str, np.ndarray]) -> np.ndarray:
    corner = np.asarray(plan.bends)
    x = np.asarray(values["x"], float).reshape(plan.envs, plan.particles, plan.dim)
    bend = np.asarray(values["bend_stiffness"], float).reshape(plan.envs, len(corner))
    sides = [np.linalg.norm(x[:, corner[:, i + 1]] - x[:, corner[:, i]], axis=-1) for i in (0, 1)]
    a, b = (1.0 / np.maximum(side, 1e-15) for side in sides)
    each = (2 * bend * (a + b))[..., None] * np.stack([a, a + b, b], axis=-1)
    return _sums(corner, each.reshape(plan.envs, -1), plan.particles)


def _contacts(
    plan: ParticlesPlan, values: Mapping[str, np.ndarray], mass: np.ndarray, speed: float
) -> tuple[np.ndarray, np.ndarray]:
    """Grains all around of the stiffest surface there is, and as many compliant walls as meet in a corner.

    A tangential spring with 2/7 of the stiffness moves 7/2 times as easily: all directions are as stiff as the normal.
    """
    row = np.asarray(values["tag"])[:, SURFACE]
    radius = np.asarray(values["radius"], float).reshape(mass.shape)
    surface = np.asarray(values["surface"], float).reshape(plan.envs, plan.surfaces, 4)
    K, damping = surface[:, np.maximum(row, 0), 0], surface[:, np.maximum(row, 0), 1]
    counts = (row >= 0) & (radius > 0)
    largest = np.where(counts, radius, 0).max(axis=1, keepdims=True)
    stiffest = surface[..., 0].max(axis=1, keepdims=True)
    walls = min(plan.dim, plan.walls.count(COMPLIANT) + (1 if plan.obstacle else 0))
    among = K * stiffest / np.maximum(K + stiffest, 1e-300)
    exponent = 1.5 if plan.hertz else 1.0
    square, rate = np.zeros_like(mass), np.zeros_like(mass)
    between = radius * largest / np.maximum(radius + largest, 1e-300)
    for number, stiff, reduced in ((MOST_CONTACTS[plan.dim], among, between), (walls, K, radius)):
        if plan.hertz:
            stiff = 4.0 / 3.0 * stiff * np.sqrt(reduced)
        # depth of an impact on something that does not move: K δ^(p+1) / (p+1) = m w² / 2
        depth = (0.5 * (exponent + 1) * mass * speed**2 / np.maximum(stiff, 1e-300)) ** (1 / (exponent + 1))
        if plan.hertz:
            depth = np.maximum(depth, 1e-6 * reduced)
        slope = exponent * stiff * depth ** (exponent - 1)
        square = square + 2 * number * slope
        if number:
            rate = np.maximum(rate, 2 * slope * depth / exponent * damping)
    return np.where(counts, square, 0.0), np.where(counts, rate, 0.0)
