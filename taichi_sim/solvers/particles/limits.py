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


def _stable(square: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Limit of ``h`` for ``v' = v - h (ω² x + γ v)``, ``x' = x + h v'``: ``h² ω² + 2 h γ < 4``."""
    with np.errstate(divide="ignore"):
        return 4.0 / (rate + np.sqrt(rate * rate + 4.0 * square))


def step_limit(plan: ParticlesPlan, values: Mapping[str, np.ndarray], speed: float = 0.0) -> StepLimit:
    """The largest allowed step for the parameters ``values`` (arrays by name, shaped as the solver's).

    Springs: the matrices of stiffness and damping over mass have no eigenvalue above twice the sum of a particle's
    springs over its mass (row sums). Bends likewise, with the second differences they are made of. Grains: as many
    contacts as fit around one, for Hertz's law at the overlap of an impact with ``speed`` (m/s), one of them damped.
    Positions are those of ``values["x"]`` (bends only).
    """
    n = plan.particles
    mass = np.asarray(values["mass"], float).reshape(plan.envs, n)
    held = np.asarray(values["tag"])[:, HELD] > 0
    limits: dict[str, np.ndarray] = {}
    if plan.edges:
        ends = np.asarray(plan.edges)[:, :2]
        spring = np.asarray(values["spring"], float).reshape(plan.envs, len(ends), 3)
        stiff = np.stack([_sum(ends, np.repeat(s[:, 0], 2), n) for s in spring])
        rate = np.stack([_sum(ends, np.repeat(s[:, 1], 2), n) for s in spring])
        limits["springs"] = _stable(2 * stiff / mass, 2 * rate / mass)
    if plan.bends:
        corner = np.asarray(plan.bends)
        x = np.asarray(values["x"], float).reshape(plan.envs, n, plan.dim)
        bend = np.asarray(values["bend_stiffness"], float).reshape(plan.envs, len(corner))
        steep = []
        for e in range(plan.envs):
            a, b = (1.0 / np.maximum(np.linalg.norm(np.diff(x[e][corner[:, i : i + 2]], axis=1)[:, 0], axis=1), 1e-15)
                    for i in (0, 1))  # fmt: skip
            each = bend[e][:, None] * 2 * (a + b)[:, None] * np.column_stack([a, a + b, b])
            steep.append(_sum(corner, each.ravel(), n))
        limits["bends"] = _stable(np.stack(steep) / mass, np.zeros_like(mass))
    if plan.grains:
        limits["grains"] = _grain_limit(plan, values, mass, speed)
    best = StepLimit(math.inf, "nothing", -1, -1)
    for culprit, limit in limits.items():
        limit = np.where(held, np.inf, limit)
        at = int(np.argmin(limit))
        if limit.flat[at] * SHARE < best.allowed:
            best = StepLimit(float(limit.flat[at]) * SHARE, culprit, *divmod(at, n))
    return best


def _sum(ends: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    return np.bincount(ends.ravel(), weights=values, minlength=count)


def _grain_limit(plan: ParticlesPlan, values: Mapping[str, np.ndarray], mass: np.ndarray, speed: float) -> np.ndarray:
    """Contacts of each grain with one of its own kind, or with a compliant wall where there are such.

    A tangential spring with 2/7 of the stiffness moves 7/2 times as easily: all directions are as stiff as the normal.
    """
    row = np.asarray(values["tag"])[:, SURFACE]
    radius = np.asarray(values["radius"], float).reshape(mass.shape)
    surface = np.asarray(values["surface"], float).reshape(plan.envs, plan.surfaces, 4)[:, np.maximum(row, 0)]
    counts = (row >= 0) & (radius > 0)
    walls = COMPLIANT in plan.walls
    reduced = np.where(counts, radius if walls else 0.5 * radius, 1.0)
    K = surface[..., 0] * (1.0 if walls else 0.5)
    if plan.hertz:
        K = 4.0 / 3.0 * K * np.sqrt(reduced)
    exponent = 1.5 if plan.hertz else 1.0
    pair_mass = mass if walls else 0.5 * mass
    # depth of an impact: K δ^(p+1) / (p+1) = m w² / 2
    depth = (0.5 * (exponent + 1) * pair_mass * speed**2 / np.maximum(K, 1e-300)) ** (1 / (exponent + 1))
    if plan.hertz:
        depth = np.maximum(depth, 1e-6 * reduced)
    slope = exponent * K * depth ** (exponent - 1) if plan.hertz else K
    square = 2 * MOST_CONTACTS[plan.dim] * slope / mass
    rate = 2 * slope / mass * depth / exponent * surface[..., 1]  # one impact at a time
    return np.where(counts, _stable(square, rate), np.inf)
