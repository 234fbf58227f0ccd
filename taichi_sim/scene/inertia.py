"""Mass, centre of mass and inertia of rigid bodies: of shapes, moved, put together, checked."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from taichi_sim.scene.shapes.shape import Shape

#: Relative rounding that a tensor read from a file may carry before it counts as impossible.
ROUNDING = 1e-6


@dataclass(frozen=True)
class MassProperties:
    """``mass`` (kg), ``center`` of mass (dim,) (m) and ``inertia`` about it (kg m²): (3, 3) along the axes of the
    coordinates; in 2-D (1, 1)."""

    mass: float
    center: np.ndarray
    inertia: np.ndarray

    @classmethod
    def nothing(cls, dim: int = 3) -> "MassProperties":
        """No mass at the origin."""
        size = 3 if dim == 3 else 1
        return cls(0.0, np.zeros(dim), np.zeros((size, size)))

    @property
    def dim(self) -> int:
        """2 or 3."""
        return len(self.center)

    def moved(self, turn: np.ndarray, position: np.ndarray) -> "MassProperties":
        """The same body after x → ``turn`` (dim, dim) @ x + ``position`` (dim,); ``turn`` is a rotation."""
        inertia = turn @ self.inertia @ turn.T if self.dim == 3 else self.inertia
        return MassProperties(self.mass, turn @ self.center + position, inertia)

    def times(self, factor: float) -> "MassProperties":
        """``factor`` times as dense. Mass and inertia are linear in the density, the centre does not know it."""
        return MassProperties(factor * self.mass, self.center, factor * self.inertia)

    def scaled(self, factor: float) -> "MassProperties":
        """The same matter ``factor`` times as large about the origin: mass as its power dim, inertia as dim + 2."""
        size = factor**self.dim
        return MassProperties(size * self.mass, factor * self.center, size * factor**2 * self.inertia)

    def about(self, point: np.ndarray) -> np.ndarray:
        """Inertia about ``point`` (dim,) instead of the centre (parallel axes)."""
        return self.inertia + self.mass * _turning(np.outer(self.center - point, self.center - point))

    @property
    def positive(self) -> bool:
        """Whether the inertia is positive definite, beyond rounding."""
        moments = np.linalg.eigvalsh(self.inertia)
        return bool(moments[0] > 1e-12 * moments[-1])

    def fault(self) -> str:
        """What no body can have, as a sentence; empty if there is nothing wrong.

        A body's mass and principal moments are positive, and no moment exceeds the sum of the two others (those of a
        flat plate add up to the third).
        """
        if not (np.isfinite(self.mass) and np.isfinite(self.center).all() and np.isfinite(self.inertia).all()):
            return "mass, centre and inertia must be finite"
        if not self.mass > 0:
            return f"the mass must be > 0 kg, is {self.mass:g}"
        moments = np.linalg.eigvalsh(self.inertia)
        if not self.positive:
            shown = ", ".join(f"{m:.4g}" for m in moments)
            return f"the inertia must be positive definite, its principal moments are {shown} kg m²"
        if self.dim == 3 and moments[2] > (moments[0] + moments[1]) * (1 + ROUNDING):
            low, middle, high = moments
            return (
                f"no body has this inertia: the principal moment {high:.4g} exceeds the sum of the others, "
                f"{low:.4g} + {middle:.4g} kg m²"
            )
        return ""


def _turning(second: np.ndarray) -> np.ndarray:
    """Inertia from a second moment ∫(x − c)(x − c)ᵀ dm (dim, dim): tr(S) I − S, in 2-D tr S."""
    trace = np.trace(second)
    return np.array([[trace]]) if len(second) == 2 else trace * np.eye(3) - second


def mass_properties(shape: Shape, density: float | None = None, mass: float | None = None) -> MassProperties:
    """Of a shape filled evenly: give ``density`` (kg/m³; in 2-D of a metre of depth) or ``mass`` (kg).

    Exact for primitives, closed meshes, and unions of what keeps apart; where parts of a union or difference overlap
    the lens is measured (about 1e-5 in 2-D, 1e-4 in 3-D of its volume). Linear in the density: the derivative by it is
    the same with ``density = 1``, and :meth:`MassProperties.scaled` says how a size enters.

    Raises ``ValueError`` for a shape without a volume and unless exactly one of the two is given and positive.
    """
    if (density is None) == (mass is None):
        raise ValueError("give either the density or the mass of a body")
    volume, centre = shape.moments()
    if not volume > 0:
        raise ValueError(f"a {shape.kind} without volume has no mass")
    filled = density if density is not None else float(mass or 0.0) / volume
    if not (np.isfinite(filled) and filled > 0):
        raise ValueError(f"{'density' if density is not None else 'mass'} must be > 0 and finite")
    return MassProperties(filled * volume, centre, filled * _turning(shape.spread()))


def together(parts: Iterable[MassProperties]) -> MassProperties:
    """Bodies fixed to each other, as one, in common coordinates."""
    parts = list(parts)
    mass = sum(part.mass for part in parts)
    if not mass > 0:
        return MassProperties.nothing(parts[0].dim if parts else 3)
    centre = np.sum([part.mass * part.center for part in parts], axis=0) / mass
    return MassProperties(mass, centre, np.sum([part.about(centre) for part in parts], axis=0))
