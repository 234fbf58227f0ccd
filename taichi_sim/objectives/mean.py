"""Mass-weighted means, with the derivatives objectives need.

Sums are written without matrix products: those may add up in another order on another number of threads.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Mean:
    """Mass-weighted mean of a quantity over particles.

    ``value`` (dim,); ``share`` = mass / total mass, (particles,); ``total`` mass in kg.
    """

    value: np.ndarray
    share: np.ndarray
    total: float
    values: np.ndarray

    def by_values(self, bar: np.ndarray) -> np.ndarray:
        """Gradient of ``bar · mean`` by the averaged quantity, (particles, dim)."""
        return self.share[:, None] * bar

    def by_mass(self, bar: np.ndarray) -> np.ndarray:
        """Gradient of ``bar · mean`` by the masses, (particles,)."""
        return (np.einsum("nd,d->n", self.values, bar) - np.sum(self.value * bar)) / self.total


def weighted_mean(values: np.ndarray, mass: np.ndarray) -> Mean:
    """Mean of ``values`` (particles, dim) weighted by ``mass`` (particles,) in kg.

    Raises ``ValueError`` unless there is one mass per particle and their sum is finite and positive.
    """
    total = float(np.sum(mass)) if mass.shape == values.shape[:1] else float("nan")
    if not (np.isfinite(total) and total > 0.0):
        raise ValueError(f"mass must be one positive number per particle, got shape {mass.shape} with sum {total:g}")
    share = mass / total
    return Mean(np.einsum("n,nd->d", share, values), share, total, values)
