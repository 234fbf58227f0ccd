"""Places that go with particles: which of them, by which weights."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from taichi_sim.scene.surface import point_text

#: Particles of a continuum an anchor goes with.
NEAREST = {2: 8, 3: 20}


@dataclass(frozen=True)
class Hold:
    """What an anchor goes with: ``particles`` (k,), with the weights ``basis @ (1, point − origin)``; none where it is
    fixed, at ``point``."""

    particles: np.ndarray
    basis: np.ndarray
    origin: np.ndarray

    def weights(self, point: np.ndarray) -> np.ndarray:
        """(k,) for a place before the pose."""
        return self.basis @ np.concatenate([[1.0], point - self.origin])

    def weights_vjp(self, bar: np.ndarray) -> np.ndarray:
        """Gradient by the place."""
        return bar @ self.basis[:, 1:]


def fixed(dim: int) -> Hold:
    """Goes with nothing."""
    return Hold(np.zeros(0, int), np.zeros((0, dim + 1)), np.zeros(dim))


def on(particle: int, place: np.ndarray) -> Hold:
    """Goes with one particle alone."""
    basis = np.zeros((1, len(place) + 1))
    basis[0, 0] = 1.0
    return Hold(np.array([particle]), basis, place)


def within(what: str, rest: np.ndarray, first: int, points: np.ndarray, pitch: float) -> list[Hold]:
    """Anchors at ``points`` (n, dim) on or in a continuum with particles ``rest`` (m, dim), the first called ``first``.

    Moving least squares (Lancaster & Salkauskas, Math. Comp. 37, 1981): of all weights that add up to 1 and reproduce
    the place, Σ w x = y, the smallest, those of far particles counting more. So an anchor moves with the affine part of
    what the matter around it does, and takes forces without a moment left over. Raises ``ValueError`` naming ``what``
    where there are no particles around a place, or where they lie on a line.
    """
    dim = rest.shape[1]
    count = min(NEAREST[dim], len(rest))
    distance, index = KDTree(rest).query(points, k=count)
    found = []
    for point, away, near in zip(
        points, distance.reshape(len(points), -1), index.reshape(len(points), -1), strict=True
    ):
        if away[0] > 2.0 * pitch:
            raise ValueError(
                f"{what}: the nearest particle of {point_text(point)} is {away[0]:.3g} m away; move it into the body, "
                "or leave more matter around it"
            )
        origin = rest[near].mean(axis=0)
        share = (1.0 - (away / (1.01 * away[-1] + 1e-300)) ** 2) ** 2
        A = np.column_stack([np.ones(count), (rest[near] - origin) / pitch])
        moment = A.T @ (share[:, None] * A)
        if not np.linalg.cond(moment) < 1e8:
            raise ValueError(
                f"{what}: the particles around {point_text(point)} lie in one layer; the walls there have to be two "
                "particles thick: take a smaller domain.spacing, or more particles_per_cell"
            )
        basis = share[:, None] * A @ np.linalg.inv(moment)
        basis[:, 1:] /= pitch
        found.append(Hold(first + near, basis, origin))
    return found
