"""Design variables as one vector of scaled variables, and the loss and gradient there.

A scaled variable is 0 at the scene's own value and moves by 1 when the design variable moves by one *unit*, so that a
step of 0.1 means a tenth of what matters whatever the physical unit is:

* linear with both bounds: half of their distance;
* linear otherwise: the largest magnitude in the array, at least 1;
* logarithmic: a factor of ten (a step of 0.1 changes the value by 26 %);
* ``step`` of the design entry replaces these (for logarithmic ones: decades).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from taichi_sim.core.errors import RolloutError, StartError

__all__ = ["Block", "Point", "Problem", "Simulated", "Variable", "block"]


class Variable(Protocol):
    """One design variable: an array of the simulation by path, with what may be done to it.

    ``lower``/``upper`` are ``None``, numbers or arrays that broadcast to ``value``; ``scale`` is ``"linear"`` or
    ``"log"``; ``spread`` is the standard deviation of a random start (in units of the value; for ``"log"`` in
    decades); ``step`` is the size of one unit, or ``None``.
    """

    @property
    def path(self) -> str: ...
    @property
    def value(self) -> Any: ...
    @property
    def lower(self) -> Any: ...
    @property
    def upper(self) -> Any: ...
    @property
    def scale(self) -> str: ...
    @property
    def spread(self) -> float | None: ...
    @property
    def step(self) -> Any: ...


class Simulated(Protocol):
    """What optimisation needs of a simulation."""

    @property
    def design(self) -> Sequence[Variable]: ...
    def set(self, path: str, value: Any, /) -> None: ...
    def value_and_grad(self, of: Any = ..., wrt: Any = ...) -> tuple[Any, Mapping[str, np.ndarray]]: ...


@dataclass(frozen=True)
class Point:
    """One evaluation: scaled variables ``z`` (n,), the loss and its gradient with respect to ``z`` (n,).

    ``horizon`` is the frames it was simulated for, 0 for a whole rollout. ``bad`` names the first array that is not
    finite, or what the rollout complained about; empty for a good point;
    ``mistaken``: it could not even begin as it was given.
    """

    z: np.ndarray
    loss: float
    gradient: np.ndarray
    bad: str = ""
    horizon: int = 0
    mistaken: bool = False


@dataclass(frozen=True)
class Block:
    """Where one design variable sits in ``z``, and how it is scaled."""

    path: str
    value: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    log: bool
    unit: np.ndarray
    spread: float
    part: slice

    def to_value(self, z: np.ndarray) -> np.ndarray:
        z = z.reshape(self.value.shape)
        moved = self.value * 10.0 ** (z * self.unit) if self.log else self.value + z * self.unit
        return np.clip(moved, self.lower, self.upper)

    def from_value(self, value: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            moved = np.log10(value) - np.log10(self.value) if self.log else value - self.value
        return (moved / self.unit).ravel()

    def chain(self, gradient: np.ndarray, value: np.ndarray) -> np.ndarray:
        rate = value * math.log(10.0) * self.unit if self.log else self.unit
        return (gradient * rate).ravel()


def block(variable: Variable, offset: int = 0) -> Block:
    """A design variable with its scale, from ``offset`` on. Raises ``ValueError`` where it cannot be used as it is."""
    path = variable.path
    value = np.array(variable.value, dtype=np.float64)
    lower = np.broadcast_to(-np.inf if variable.lower is None else np.asarray(variable.lower, float), value.shape)
    upper = np.broadcast_to(np.inf if variable.upper is None else np.asarray(variable.upper, float), value.shape)
    if variable.scale not in ("linear", "log"):
        raise ValueError(f"{path}: scale must be 'linear' or 'log', got {variable.scale!r}")
    log = variable.scale == "log"
    if not np.all(np.isfinite(value)):
        raise ValueError(f"{path}: the start value must be finite")
    if np.any(lower > upper) or np.any(value < lower) or np.any(value > upper):
        raise ValueError(f"{path} = {_brief(value)}: must lie between its bounds {_brief(lower)} and {_brief(upper)}")
    if log and (np.any(value <= 0) or np.any(upper <= 0)):
        raise ValueError(f"{path} = {_brief(value)}: a logarithmic scale needs values above 0")
    if log:
        lower = np.maximum(lower, 0.0)
        unit = np.ones(value.shape)
    else:
        bounded = np.isfinite(lower) & np.isfinite(upper) & (upper > lower)
        free = max(1.0, float(np.max(np.abs(value), initial=0.0)))
        unit = np.full(value.shape, free)
        unit[bounded] = (upper[bounded] - lower[bounded]) / 2
    if variable.step is not None:
        unit = np.broadcast_to(np.asarray(variable.step, dtype=np.float64), value.shape)
        if not np.all(np.isfinite(unit) & (unit > 0)):
            raise ValueError(f"{path}: step must be above 0, got {variable.step!r}")
    return Block(path, value, lower, upper, log, unit, variable.spread or 0.0, slice(offset, offset + value.size))


def _brief(value: np.ndarray) -> str:
    return (
        f"{value.flat[0]:g}" if value.size and np.all(value == value.flat[0]) else np.array2string(value, threshold=6)
    )


class Problem:
    """The loss of a simulation as a function of scaled variables.

    ``start`` (n,) is the seeded start: the scene's values, spread where the design asks for it. ``lower`` and
    ``upper`` (n,) are the bounds. Raises ``ValueError`` where a design variable cannot be used as declared.
    """

    def __init__(self, simulation: Simulated, seed: int = 0, of: str = "loss") -> None:
        self.simulation = simulation
        self.of = of
        self.horizon = 0
        self.blocks: list[Block] = []
        offset = 0
        for variable in simulation.design:
            self.blocks.append(block(variable, offset))
            offset = self.blocks[-1].part.stop
        if offset == 0:
            raise ValueError("nothing to optimise: the scene has no [[design]] entry; name at least one path there")
        self.paths = [b.path for b in self.blocks]
        if len(set(self.paths)) < len(self.paths):
            twice = next(p for p in self.paths if self.paths.count(p) > 1)
            raise ValueError(f"{twice}: named by two [[design]] entries")
        self.size = offset
        self.lower = np.concatenate([b.from_value(b.lower) for b in self.blocks])
        self.upper = np.concatenate([b.from_value(b.upper) for b in self.blocks])
        rng = np.random.default_rng(seed)
        start = np.zeros(offset)
        for b in self.blocks:
            if b.spread:
                start[b.part] = b.spread * rng.standard_normal(b.value.size) / b.unit.ravel()
        self.start = np.clip(start, self.lower, self.upper)

    def values(self, z: np.ndarray) -> dict[str, np.ndarray]:
        """Value of every design variable at ``z``, by path."""
        return {b.path: b.to_value(z[b.part]) for b in self.blocks}

    def until(self, horizon: int) -> None:
        """Evaluate over so many frames from now on."""
        self.horizon = horizon
        self.simulation.horizon = horizon  # type: ignore[attr-defined]

    def apply(self, z: np.ndarray) -> None:
        """Put the values of ``z`` into the simulation."""
        for path, value in self.values(z).items():
            self.simulation.set(path, value)

    def evaluate(self, z: np.ndarray) -> Point:
        """Simulate at ``z``. A rollout that fails or is not finite gives a bad point, not an error."""
        z = np.array(z, dtype=np.float64)
        values = self.values(z)
        try:
            try:
                self.apply(z)
            except ValueError as error:  # out of the range the simulation allows
                raise StartError(str(error)) from None
            loss, gradients = self.simulation.value_and_grad(self.of, wrt=self.paths)
        except RolloutError as error:
            nothing = np.full(self.size, math.nan)
            return Point(z, math.nan, nothing, str(error), self.horizon, isinstance(error, StartError))
        loss = float(loss)
        gradient = np.zeros(self.size)
        bad = "" if math.isfinite(loss) else f"{self.of} is {loss}"
        for b in self.blocks:
            part = np.asarray(gradients[b.path], dtype=np.float64).reshape(b.value.shape)
            if not bad and not np.all(np.isfinite(part)):
                index = np.unravel_index(int(np.argmin(np.isfinite(part))), part.shape)
                where = f"[{', '.join(str(int(i)) for i in index)}]" if index else ""
                bad = f"gradient of {b.path}{where} is {part[index]}"
            gradient[b.part] = b.chain(part, values[b.path])
        return Point(z, loss, gradient, bad, self.horizon)

    def zero_gradients(self, point: Point) -> list[str]:
        """Paths whose gradient is exactly zero at a good point."""
        return [b.path for b in self.blocks if not point.bad and not np.any(point.gradient[b.part])]
