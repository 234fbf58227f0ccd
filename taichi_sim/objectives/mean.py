"""Mass-weighted means and directions, with the derivatives objectives need.

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


def unit(what: str, direction: np.ndarray) -> np.ndarray:
    """``direction`` scaled to length 1. Raises ``ValueError`` naming ``what`` if it has no direction."""
    length = np.linalg.norm(direction)
    if not (np.isfinite(length) and length > 0.0):
        raise ValueError(f"{what}: direction = {direction.tolist()} must be finite and not zero")
    return direction / length


def unit_vjp(direction: np.ndarray, bar: np.ndarray) -> np.ndarray:
    """Gradient of ``bar · unit(direction)`` by ``direction``: only turning counts, length does not."""
    length = np.linalg.norm(direction)
    along = direction / length
    return (bar - along * np.sum(along * bar)) / length
