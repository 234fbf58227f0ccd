"""Registries of everything that comes in kinds (laws, shapes, actuators, signals, objectives).

A kind declares its parameters once, as :class:`Parameter`; the scene format, its checks, ``taichi-sim list`` and the
gradient table are all derived from that declaration.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from taichi_sim.core.errors import unknown


@dataclass(frozen=True)
class Parameter:
    """One named quantity of a kind.

    ``default`` of ``None`` means the parameter must be given. ``shape`` uses names for sizes known only in a scene:
    ``"dim"`` (2 or 3) and ``"any"``. ``low``/``high`` are the allowed range, open ends where ``low_open`` /
    ``high_open``. ``kind`` is ``"real"`` (an array with a gradient), or ``"int"``, ``"text"``, ``"flag"``,
    ``"choice"`` (one of ``choices``), ``"shape"`` (a nested geometry table), ``"file"`` (a path), ``"path"`` (the name
    of another entry): those have no gradient.
    """

    name: str
    unit: str
    default: Any
    doc: str
    shape: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False
    scale: str = "linear"
    kind: str = "real"
    choices: tuple[str, ...] = ()
    differentiable: bool = field(default=True)

    @property
    def gaps(self) -> bool:
        """Whether NaN stands for what is not there: data with gaps say so in their ``doc``."""
        return "NaN" in self.doc

    def check(self, value: float) -> str | None:
        """Sentence saying what is allowed if the scalar ``value`` is out of range, else ``None``."""
        low_bad = self.low is not None and (value < self.low or (self.low_open and value == self.low))
        high_bad = self.high is not None and (value > self.high or (self.high_open and value == self.high))
        if value == value and not low_bad and not high_bad:
            return None
        return f"must be {self.range_text()}"

    def range_text(self) -> str:
        """The allowed range in words, for messages and ``taichi-sim list``."""
        parts = []
        if self.low is not None:
            parts.append(f"{'>' if self.low_open else '>='} {self.low:g}")
        if self.high is not None:
            parts.append(f"{'<' if self.high_open else '<='} {self.high:g}")
        return " and ".join(parts) + (f" {self.unit}" if parts and self.unit != "1" else "") if parts else "finite"


class Named(Protocol):
    """What a registry holds: something with a name, a one-line ``doc`` and declared parameters."""

    @property
    def name(self) -> str: ...
    @property
    def doc(self) -> str: ...
    @property
    def parameters(self) -> tuple[Parameter, ...]: ...


Kind = TypeVar("Kind", bound=Named)


class Registry(Generic[Kind]):
    """Kinds by name, filled by importing every module of one package: adding a kind is adding a file."""

    def __init__(self, what: str, package: str) -> None:
        self.what = what
        self.package = package
        self._kinds: dict[str, Kind] = {}
        self._loaded = False

    def add(self, kind: Kind) -> Kind:
        """Register ``kind`` and return it. Raises ``ValueError`` if the name is taken."""
        if kind.name in self._kinds:
            raise ValueError(f"{self.what} {kind.name!r} is registered twice")
        self._kinds[kind.name] = kind
        return kind

    def _load(self) -> None:
        if not self._loaded:
            self._loaded = True
            package = importlib.import_module(self.package)
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{self.package}.{module.name}")

    def get(self, name: str) -> Kind:
        """The kind called ``name``. Raises ``ValueError`` with the nearest name on a typo."""
        self._load()
        if name not in self._kinds:
            raise ValueError(unknown(self.what, name, self._kinds))
        return self._kinds[name]

    def names(self) -> list[str]:
        """All registered names, sorted."""
        self._load()
        return sorted(self._kinds)

    def __iter__(self) -> Iterator[Kind]:
        return iter([self._kinds[name] for name in self.names()])
