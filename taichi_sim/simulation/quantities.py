"""Values by path: read, changed, and held to what their declaration allows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from taichi_sim.core.errors import short
from taichi_sim.core.given import real_numbers, text, texts
from taichi_sim.scene.paths import design_variables, match
from taichi_sim.scene.values import HUGE
from taichi_sim.simulation.turns import exclusive, waiting
from taichi_sim.simulation.user_arrays import UserArrays
from taichi_sim.timeline.tape import open_tape


@dataclass(frozen=True)
class DesignVariable:
    """What an optimiser may change: an array by path, its bounds (infinite where there are none) and scale."""

    path: str
    value: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    scale: str
    spread: float
    step: float | None


class Quantities(UserArrays):
    """The part of :class:`Simulation` that knows its quantities by path."""

    @property
    def design(self) -> list[DesignVariable]:
        """The scene's ``[[design]]`` entries, wildcards written out."""
        found = []
        for d in design_variables(self.scene):
            value = self.get(d.path)
            low, high = (np.broadcast_to(b, value.shape) for b in (d.lower, d.upper))
            found.append(DesignVariable(d.path, value, low, high, d.scale, d.spread, d.step))
        return found

    @waiting
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Everything with a gradient: path → ``value, shape, unit, doc, lower, upper, scale``."""
        out = {}
        for path in self._values:
            q = self.model.quantities[path]
            value = self.get(path)
            out[path] = {
                "value": value,
                "shape": value.shape,
                "unit": q.unit,
                "doc": q.doc,
                "lower": q.lower,
                "upper": q.upper,
                "scale": q.scale,
            }
        return out

    def _paths(self, patterns: "str | Iterable[str]") -> list[str]:
        patterns = texts("a path (wrt)", patterns)
        return list(dict.fromkeys(path for pattern in patterns for path in self._matching(pattern)))

    def _matching(self, pattern: str) -> list[str]:
        try:
            return match(self._values, pattern)
        except ValueError as error:
            absent = [path for path in self.model.quantities if path not in self._values]
            if pattern in absent:  # accelerations nobody asked for have no arrays
                raise ValueError(
                    f"{pattern} is not a quantity of this scene as it is: give the body acceleration = 0 to make it one"
                ) from None
            raise error

    def _one(self, path: str) -> str:
        """The path a caller that needs exactly one gave."""
        found = self._paths(text("a path", path))
        if len(found) != 1:
            raise ValueError(f"{path!r} stands for {len(found)} quantities, one is needed: {', '.join(found)}")
        return found[0]

    @waiting
    def get(self, path: str) -> np.ndarray:
        """Value of a quantity by path; with more than one environment the leading axis is theirs."""
        value = self._values[self._one(path)]
        return value[0].copy() if self.envs == 1 else value.copy()

    @exclusive
    def set(self, path: str, value: Any) -> None:
        """Change a quantity; ``*`` in the path sets all that match. The value's shape is one environment's (for all
        of them) or has a leading axis of ``envs``. Raises ``ValueError`` for a wrong shape or a value out of range.

        ``dt`` is the length of every substep, s. Their number stays, and so do the times at which signals and
        objectives are evaluated: a rollout with another ``dt`` lasts frames · substeps · dt. It is there to be
        differentiated by; another step for the same duration is a new simulation with ``solver.dt`` in the scene.
        It may be at most the step limit of the values as they are."""
        self._alive()
        if self._tape is not None and self._tape is open_tape():
            raise RuntimeError(
                f"{path} cannot be set between run() and the end of its ti.ad.Tape, which takes the gradient where "
                "it was run; set it before run()"
            )
        changed = {name: self._checked(name, value) for name in self._paths(text("a path", path))}
        self._values.update(changed)
        self._final = self.rollout = None

    def _checked(self, name: str, value: Any) -> np.ndarray:
        """``value`` as an array (envs, …) of the quantity ``name``."""
        shape = self._values[name].shape
        array = real_numbers(f"{name}:", value)
        if array.shape == shape[1:]:
            array = np.broadcast_to(array, shape).copy()
        if array.shape != shape:
            per_env = f" or {shape} for {self.envs} environments" if self.envs > 1 else ""
            raise ValueError(f"{name} has shape {shape[1:]}{per_env}, got {array.shape}")
        if name.endswith(".limits"):  # may be infinite, and have no range
            return array
        checked = self.model.quantities[name].parameter
        numbers = array[~np.isnan(array)] if checked.gaps else array
        if not np.isfinite(numbers).all():
            raise ValueError(f"{name}: must be finite, got {short(value)}")
        if (np.abs(numbers) > HUGE).any():
            raise ValueError(f"{name}: must be at most {HUGE:g} in size, got {short(value)}")
        for number in (numbers.min(), numbers.max()) if numbers.size else ():
            if message := checked.check(float(number)):
                raise ValueError(f"{name} = {number:g}: {message}")
        if name == "dt" and array.max() > (limit := self.model.limit_at(self._values)).allowed * (1 + 1e-6):
            raise ValueError(
                f"dt = {array.max():g} s: must be at most {limit.text} s, the step limit of {limit.culprit}"
            )
        return array
