"""Mass-weighted means, with the derivatives objectives need.

Sums are written without matrix products: those may add up in another order on another number of threads.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Mean:
    """Mass-weighted mean of a quantity over particles.

    ``value`` (dim,); ``share`` = mass / total mass, (particles,); ``total`` mass in kg, (1,). All may have axes in
    front, as may what is given.
    """

    value: np.ndarray
    share: np.ndarray
    total: np.ndarray
    values: np.ndarray

    def by_values(self, bar: np.ndarray) -> np.ndarray:
        """Gradient of ``bar · mean`` by the averaged quantity, (particles, dim)."""
        return self.share[..., None] * bar[..., None, :]

    def by_mass(self, bar: np.ndarray) -> np.ndarray:
        """Gradient of ``bar · mean`` by the masses, (particles,)."""
        along = np.einsum("...nd,...d->...n", self.values, bar)
        return (along - np.sum(self.value * bar, axis=-1, keepdims=True)) / self.total


def weighted_mean(values: np.ndarray, mass: np.ndarray) -> Mean:
    """Mean of ``values`` (particles, dim) weighted by ``mass`` (particles,) in kg.

    Raises ``ValueError`` unless there is one mass per particle and their sum is finite and positive.
    """
    fits = mass.shape == values.shape[:-1]
    total = np.sum(mass, axis=-1, keepdims=True) if fits else np.full(1, np.nan)
    if not (np.isfinite(total) & (total > 0.0)).all():
        raise ValueError(
            f"mass must be one positive number per particle, got shape {mass.shape} with sum {float(total.flat[0]):g}"
        )
    share = mass / total
    return Mean(np.einsum("...n,...nd->...d", share, values), share, total, values)
