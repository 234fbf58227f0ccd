"""The largest step a compiled scene allows, what sets it, and the values it is judged by."""

import math
from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.binding import Values

#: A parameter of unbounded stiffness may grow by this factor before the step has to be chosen anew.
UNBOUNDED = 100.0


@dataclass(frozen=True)
class StepLimit:
    """``allowed`` substep (s), and what sets it: the entry ``body`` of a table of the scene, by the speed of its waves
    and particles (m/s; ``bodies``), or by what ``cause`` names."""

    allowed: float
    body: str
    wave_speed: float
    max_speed: float
    table: str = "bodies"
    cause: str = ""

    @property
    def culprit(self) -> str:
        """What sets it, by name."""
        return f"body {self.body!r}" if self.table == "bodies" else f"{self.table}.{self.body}"

    @property
    def why(self) -> str:
        """What of it sets it."""
        return self.cause or f"waves of {self.wave_speed:.3g} m/s"

    @property
    def text(self) -> str:
        """``allowed`` with three digits, rounded down, so that the number shown is allowed too."""
        return three_digits_down(self.allowed)


def three_digits_down(value: float) -> str:
    """``value`` with three digits, rounded towards 0."""
    shown = float(f"{value:.2e}")
    if shown > value:
        shown -= 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{shown:.3g}"


def extreme(values: Values, bounds: dict[str, tuple[np.ndarray, np.ndarray]], path: str, side: int) -> np.ndarray:
    """The value by ``path``, or what the design's ``bounds`` (lower, upper by path) allow on one ``side`` (-1, +1)."""
    value = values[path]
    if path not in bounds:
        return value
    bound = bounds[path][0 if side < 0 else 1]
    return np.asarray(bound) if np.isfinite(bound).all() else value * UNBOUNDED**side
