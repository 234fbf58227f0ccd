"""The contact-gradient policy ``randomised``: loss and gradient are means over starts near the design.

Exact gradients through contact may differ at every start, and say nothing of a jump: a ball that hits a wall ends in
front of it wherever it was aimed, though a little higher it would have passed. The loss smoothed by random changes of
the design, ``E f(z + σ w)``, has neither fault. Two estimates of its gradient come from the same rollouts: the mean of
the exact gradients, which does not see jumps, and the slope of a regression of the losses on the changes (``spread``),
which does and is the noisier one. They are weighted by the inverse of what each is expected to be off by: of the mean
its variance and the square of its bias (as far as it differs from the slope by more than both errors), of the slope its
variance. This is the α-order gradient of Suh, Simchowitz, Zhang and Tedrake ("Do differentiable simulators give better
policy gradients?", ICML 2022) with the bias measured where they ask the user for a threshold.

Use it where contacts begin, end or are missed on the way (throws, hits, steps, grasps), or where ``taichi-sim check
--spread`` says that gradients spread by more than their mean; not where parameters are identified (it is the smoothed
loss that is smallest at the answer), nor for designs of many numbers with few samples (below two a number there is no
slope, and jumps stay unseen). ``gradient_sigma`` is how far a start may be from the truth of the design: below it
ripples and jumps are averaged out, and so is the answer.

The changes are drawn once, in pairs ``±w``, and the same ones count at every design: evaluations are a function of the
design, and methods with line searches work. All starts are environments of one simulation.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from taichi_sim.core.errors import RolloutError
from taichi_sim.optimization.problem import Point, Problem, Simulated
from taichi_sim.optimization.spread import regress

__all__ = ["Randomised", "combined"]


class Randomised(Problem):
    """The loss smoothed over ``starts``, a simulation of ``samples`` environments beside the one of the design."""

    def __init__(
        self, simulation: Simulated, starts: Simulated, samples: int, sigma: float, seed: int = 0, of: str = "loss"
    ) -> None:
        super().__init__(simulation, seed, of)
        self.starts, self.sigma = starts, sigma
        half = np.random.default_rng(seed).standard_normal(((samples + 1) // 2, self.size))
        self.changes = sigma * np.concatenate([half, -half])[:samples]

    def until(self, horizon: int) -> None:
        super().until(horizon)
        self.starts.horizon = horizon  # type: ignore[attr-defined]

    def evaluate(self, z: np.ndarray) -> Point:
        z = np.array(z, dtype=np.float64)
        near = np.clip(z + self.changes, self.lower, self.upper)
        values = [self.values(one) for one in near]
        whose = f" (one of {len(near)} starts within gradient_sigma = {self.sigma:g}: less keeps them nearer)"
        try:
            for path in self.paths:
                self.starts.set(path, np.stack([value[path] for value in values]))
            losses, found = self.starts.value_and_grad(self.of, wrt=self.paths)
        except (RolloutError, ValueError) as error:
            return Point(z, math.nan, np.full(self.size, math.nan), f"{error}{whose}", self.horizon)
        gradients = np.stack([self._scaled(found, value, i) for i, value in enumerate(values)])
        gradients[near != z + self.changes] = 0.0  # held at a bound
        losses = np.asarray(losses, dtype=np.float64)
        bad = self._not_finite(losses, gradients)
        gradient = np.full(self.size, math.nan) if bad else combined(near - z, losses, gradients)
        return Point(z, float(losses.mean()), gradient, bad and f"{bad}{whose}", self.horizon)

    def _scaled(self, gradients: Mapping[str, np.ndarray], values: Mapping[str, Any], start: int) -> np.ndarray:
        """(n,) gradient of one start with respect to scaled variables."""
        parts = [b.chain(np.asarray(gradients[b.path][start], np.float64), values[b.path]) for b in self.blocks]
        return np.concatenate(parts)

    def _not_finite(self, losses: np.ndarray, gradients: np.ndarray) -> str:
        if not np.isfinite(losses).all():
            return f"{self.of} is {losses[np.argmin(np.isfinite(losses))]}"
        wrong = [b.path for b in self.blocks if not np.isfinite(gradients[:, b.part]).all()]
        return f"gradient of {wrong[0]} is not finite" if wrong else ""


def combined(changes: np.ndarray, losses: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """(n,) gradient of the smoothed loss from ``changes`` (samples, n) of the design, ``losses`` (samples,) and exact
    ``gradients`` (samples, n) there."""
    mean = gradients.mean(axis=0)
    found = regress(losses, {"z": changes})
    if found is None:
        return mean
    slope, error = found["z"]
    unsure = float(np.sum(gradients.var(axis=0, ddof=1))) / len(losses)
    noise = float(np.sum(error**2))
    bias = max(0.0, float(np.sum((mean - slope) ** 2)) - unsure - noise)
    if noise + unsure + bias == 0.0:
        return mean
    share = noise / (noise + unsure + bias)
    return share * mean + (1.0 - share) * slope
