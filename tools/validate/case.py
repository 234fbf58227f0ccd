"""What a case is, and what it leaves."""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from taichi_sim.io.plots import Series


@dataclass(frozen=True)
class Row:
    """One number beside its reference.

    A row is good if ``reached`` lies within ``tolerance`` of ``reference``; where the quantity ends in "at most" or
    "at least", ``reference`` is a bound and only the far side of it is wrong.
    """

    id: str
    quantity: str
    reference: float
    reached: float
    tolerance: float

    @property
    def ok(self) -> bool:
        """Whether the number holds. One that is not finite does not."""
        if not np.isfinite(self.reached):
            return False
        beyond = self.reached - self.reference
        if self.quantity.endswith("at most"):
            return bool(beyond <= self.tolerance)
        if self.quantity.endswith("at least"):
            return bool(-beyond <= self.tolerance)
        return bool(abs(beyond) <= self.tolerance)

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON: ``id, quantity, reference, reached, tolerance, ok``."""
        reached = float(self.reached)
        return {
            "id": self.id,
            "quantity": self.quantity,
            "reference": float(self.reference),
            "reached": reached if np.isfinite(reached) else None,
            "tolerance": float(self.tolerance),
            "ok": self.ok,
        }


@dataclass(frozen=True)
class Plot:
    """A picture of a case, as :func:`taichi_sim.io.plots.plot_xy` draws it."""

    series: Sequence[Series]
    xlabel: str
    ylabel: str
    title: str
    logx: bool = False
    logy: bool = False


@dataclass
class Report:
    """Rows, plots and remarks of one case; ``row``, ``at_most`` and ``at_least`` add a row.

    ``skipped`` says why there are none: something the case needs is not here.
    """

    id: str
    rows: list[Row] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: str = ""

    def row(self, quantity: str, reference: float, reached: float, tolerance: float) -> None:
        """``reached`` shall be within ``tolerance`` (absolute) of ``reference``."""
        self.rows.append(Row(self.id, quantity, reference, float(reached), tolerance))

    def at_most(self, quantity: str, bound: float, reached: float) -> None:
        """``reached`` shall not exceed ``bound``."""
        self.rows.append(Row(self.id, f"{quantity}, at most", bound, float(reached), 0.0))

    def at_least(self, quantity: str, bound: float, reached: float) -> None:
        """``reached`` shall not fall below ``bound``."""
        self.rows.append(Row(self.id, f"{quantity}, at least", bound, float(reached), 0.0))


@dataclass(frozen=True)
class Case:
    """``run(quick)`` measures and returns a report; ``quick`` asks for as little work as still says something.

    ``slow`` cases take minutes; tests run them only when asked. A case without a quick form leaves rows out.
    """

    id: str
    title: str
    run: Callable[[bool], Report]
    slow: bool = False


def all_cases() -> dict[str, Case]:
    """Every case by id, in order."""
    package = importlib.import_module("validate.cases")
    found: dict[str, Case] = {}
    for module in pkgutil.iter_modules(package.__path__):
        loaded = importlib.import_module(f"{package.__name__}.{module.name}")
        for one in vars(loaded).values():
            if isinstance(one, Case):
                if one.id in found:
                    raise ValueError(f"two cases are called {one.id}")
                found[one.id] = one
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def _order(name: str) -> tuple[str, int, str]:
    """``A2`` before ``A10``."""
    digits = "".join(c for c in name if c.isdigit())
    return name[:1], int(digits or 0), name
