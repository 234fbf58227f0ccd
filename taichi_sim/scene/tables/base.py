"""What every table of the scene format is, and what stands in many: numbers, signals over time, profiles in space."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from taichi_sim.scene.declare import other, real

#: A number, a (nested) list of numbers, or an array.
Real = Any
#: A geometry table: ``{"kind": "box", "lower": [...], "upper": [...]}``.
ShapeTable = Mapping[str, Any]

NONNEGATIVE = {"low": 0.0}
ANY_SHAPE = (("any",), ("any", "any"), ("any", "any", "any"))
POSITIVE = {"low": 0.0, "low_open": True}


class Table(msgspec.Struct, kw_only=True, eq=False):
    """Base of every table. Two tables are equal when they hold the same numbers, lists and arrays alike."""

    #: Registry the table's ``kind`` comes from (``""``: the table has no kinds).
    registry: ClassVar[str] = ""

    def __eq__(self, other: object) -> bool:
        from taichi_sim.scene.raw import same, to_raw

        return type(self) is type(other) and same(to_raw(self), to_raw(other))

    __hash__ = None  # type: ignore[assignment]


class _Flat(msgspec.StructMeta):
    """Lets a kind's parameters be given as keywords beside the common ones."""

    def __call__(cls, *args: Any, **given: Any) -> Any:
        fields = cls.__struct_fields__  # type: ignore[attr-defined]
        extra = {key: given.pop(key) for key in list(given) if key not in fields}
        if extra:
            given["parameters"] = {**given.get("parameters", {}), **extra}
        if "kind" in fields and "kind" not in given and not args:
            from taichi_sim.scene.kinds import kinds

            allowed = ", ".join(kinds(cls.registry).names())  # type: ignore[attr-defined]
            raise ValueError(f"{cls.__name__}: kind is missing; allowed: {allowed}")
        return super().__call__(*args, **given)


class Kinded(Table, kw_only=True, metaclass=_Flat):
    """A table with the parameters of its kind, readable and writable as attributes too."""

    parameters: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and name in self.parameters:
            return self.parameters[name]
        raise AttributeError(f"{type(self).__name__} has no entry {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__struct_fields__:
            super().__setattr__(name, value)
        else:
            self.parameters[name] = value


class Signal(Kinded, kw_only=True):
    """A number over time. ``kind`` and its parameters: see ``taichi-sim list``."""

    registry: ClassVar[str] = "signal"
    kind: Annotated[str, other("choice", "kind of signal")]


class Profile(Table, kw_only=True):
    """Piecewise linear in one rest coordinate: ``values[i]`` at ``points[i]``, constant beyond the ends."""

    axis: Annotated[str, other("choice", "rest coordinate the profile runs along", choices=("x", "y", "z"))]
    points: Annotated[Real, real("m", "rest coordinates, increasing", "any", differentiable=False)]
    values: Annotated[Real, real("", "one vector a point", "any", "dim", differentiable=False)]


def vector(value: Real, dim: int) -> np.ndarray:
    """``value`` as a new float64 array (dim,); a scalar stands for every component."""
    return np.broadcast_to(np.asarray(value, np.float64), (dim,)).copy()
