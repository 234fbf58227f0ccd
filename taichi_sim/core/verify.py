"""Derivatives checked against finite differences, along lines through a point. Knows no physics.

Protocol: double precision, central differences over relative steps 1e-3 … 1e-7 (and their Richardson extrapolations),
the best relative error counts. A rollout has corners (contact, friction, a particle that changes cells), so a row that
fails is looked at again: where the one-sided differences stay apart as the step shrinks the row is a ``kink``; where
the quantity changes less than its own rounding, measured from a difference table (Moré and Wild, "Estimating
computational noise", SIAM J. Sci. Comput. 33, 2011), the row says so. Neither excuses a gradient wrong by a factor.
A corner of the derivative (its slope jumps) makes central differences first order: there the second-order ones of both
sides have to agree with the gradient as far as rounding lets them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

__all__ = ["STEPS", "Comparison", "GradientReport", "Row", "check", "check_directional", "rows_of"]

#: Relative steps in the order they are tried: the ones that usually settle it come first.
STEPS = (1e-5, 1e-4, 1e-6, 1e-3, 1e-7)
#: Best relative error asked of a smooth quantity in double precision, and of one that has a corner here.
TOLERANCE = 1e-6
KINK_TOLERANCE = 1e-3
#: Components below this part of the array's largest are judged against that part (the adjoint rounds too).
NEGLIGIBLE = 1e-4
#: A difference quotient is uncertain by this many standard deviations of the rounding, over its step.
DEVIATIONS = 4.0
#: Rounding (in units of the last place of the quantity) that a rollout has at least: so small a step as it is measured
#: with changes few of the roundings on the way.
LEAST_ROUNDING = 64


@dataclass(frozen=True)
class Comparison:
    """A derivative along one direction beside its finite difference, in units of the quantity per unit of the path."""

    gradient: float
    finite_difference: float
    relative_error: float
    ok: bool
    note: str = ""


@dataclass(frozen=True)
class Row:
    """One comparison of a report: the derivative of ``of`` with respect to ``wrt``.

    ``along`` is ``"random k"`` (a random direction of unit length) or an index such as ``"[2, 0]"``; empty for scalars.
    """

    of: str
    wrt: str
    along: str
    gradient: float
    finite_difference: float
    relative_error: float
    ok: bool
    note: str = ""

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON; numbers that are not finite become ``None``."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in values.items()}


@dataclass
class GradientReport:
    """All rows of a gradient check. ``ok`` if every row is (a report without rows is not)."""

    rows: list[Row] = field(default_factory=list)
    #: Paths there was no time for, or not for all of their rows.
    left_out: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there is something to judge and all of it agrees."""
        return bool(self.rows) and all(row.ok for row in self.rows)

    @property
    def worst(self) -> Row | None:
        """The row with the largest relative error, failed rows first."""
        return max(self.rows, key=lambda r: (not r.ok, r.relative_error), default=None)

    def to_dict(self) -> dict[str, object]:
        """``{"ok": bool, "pairs": [row, …], "left_out": [path, …]}``, as ``taichi-sim check --json`` writes it."""
        return {"ok": self.ok, "pairs": [row.to_dict() for row in self.rows], "left_out": self.left_out}

    def __str__(self) -> str:
        head = ("of", "with respect to", "along", "gradient", "difference", "error", "")
        table: list[tuple[str, ...]] = [head]
        for r in self.rows:
            verdict = "ok" if r.ok else "WRONG"
            numbers = (f"{r.gradient:.9g}", f"{r.finite_difference:.9g}", f"{r.relative_error:.1e}")
            table.append((r.of, r.wrt, r.along, *numbers, f"{verdict}  {r.note}".rstrip()))
        widths = [max(len(line[k]) for line in table) for k in range(len(head))]
        return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in table)


class _Line:
    """The quantity along ``x + t·size·direction`` (t without unit), every value computed once."""

    def __init__(self, function: Callable[[np.ndarray], float], x: np.ndarray, direction: np.ndarray, size: float):
        self.function, self.x, self.direction = function, x, direction
        self.length = size / float(np.max(np.abs(direction)))  # t = 1 moves the largest component by `size`
        self._values: dict[float, float] = {}

    def __call__(self, t: float) -> float:
        if t not in self._values:
            self._values[t] = float(self.function(self.x + (t * self.length) * self.direction))
        return self._values[t]

    def difference(self, t: float, forward: bool) -> float:
        """Second-order difference quotient of step ``t``: central, or one-sided where only +t is allowed."""
        if forward:
            return (4 * self(t) - self(2 * t) - 3 * self(0.0)) / (2 * t * self.length)
        return (self(t) - self(-t)) / (2 * t * self.length)

    def sides(self, t: float) -> tuple[float, float]:
        """Left and right difference quotient of step ``t``."""
        h = t * self.length
        return (self(0.0) - self(-t)) / h, (self(t) - self(0.0)) / h

    def rounding(self) -> float:
        """Standard deviation of the quantity's rounding, from differences of seven neighbouring values."""
        values = np.array([self(k * 1e-10) for k in range(7)])
        deviations = []
        for order in range(1, 7):
            values = np.diff(values)
            if order >= 4:
                factor = math.factorial(order) ** 2 / math.factorial(2 * order)
                deviations.append(math.sqrt(factor * float(np.mean(values**2))))
        return max(float(np.median(deviations)), abs(self(0.0)) * LEAST_ROUNDING * np.finfo(float).eps)


def check_directional(
    function: Callable[[np.ndarray], float],
    gradient: np.ndarray,
    x: np.ndarray,
    direction: np.ndarray,
    *,
    steps: Sequence[float] = STEPS,
    tolerance: float = TOLERANCE,
    kink_tolerance: float = KINK_TOLERANCE,
    size: float | None = None,
    forward: bool = False,
) -> Comparison:
    """Compare ``gradient · direction`` with finite differences of ``function`` at ``x`` along ``direction``.

    ``function`` takes an array shaped like ``x`` and returns a float; ``gradient`` and ``direction`` have that shape
    too. ``size`` is what a relative step of 1 means (default: the largest ``|x|``, or 1 if ``x`` is zero). ``forward``
    uses ``x + t·direction`` only, for a point at the edge of what is allowed. Usually two
    evaluations; up to about thirty for a row in doubt. Raises ``ValueError`` for shapes that differ, a zero direction
    or a value not finite.
    """
    x, gradient, direction = (np.asarray(a, dtype=np.float64) for a in (x, gradient, direction))
    if gradient.shape != x.shape or direction.shape != x.shape:
        raise ValueError(f"gradient {gradient.shape} and direction {direction.shape} must be shaped like x {x.shape}")
    if not np.any(direction):
        raise ValueError("direction must not be zero")
    slope = float(np.sum(gradient * direction))
    if not math.isfinite(slope):
        return Comparison(slope, math.nan, math.inf, False, "gradient is not finite")
    line = _Line(function, x, direction, size or float(np.max(np.abs(x), initial=0.0)) or 1.0)
    floor = NEGLIGIBLE * float(np.max(np.abs(gradient))) * float(np.max(np.abs(direction)))

    best = _judge(slope, math.nan, floor, tolerance)
    quotients: dict[float, float] = {}
    for t in steps:
        quotients[t] = line.difference(t, forward)
        if not math.isfinite(quotients[t]):
            raise ValueError(f"the quantity is not finite at a relative step of {t:g}")
        for value in _extrapolated(quotients, t):
            new = _judge(slope, value, floor, tolerance)
            best = max(best, new, key=lambda c: (c.ok, -c.relative_error))
        if best.ok:
            break

    if best.ok:
        return best
    noise = line.rounding()
    if not forward and _is_kink(line, quotients, noise, tolerance):
        candidates = [*quotients.values(), *(side for t in quotients for side in line.sides(t))]
        found = (_judge(slope, value, floor, kink_tolerance, "kink") for value in candidates)
        best = min(found, key=lambda c: c.relative_error)
        if best.ok:
            return best
    excused = _within_rounding(line, slope, quotients, noise, tolerance)
    if excused is None and not forward:
        excused = _bent(line, slope, quotients, noise, tolerance)
    return excused or best


def _judge(slope: float, value: float, floor: float, tolerance: float, note: str = "") -> Comparison:
    if math.isnan(value):
        return Comparison(slope, value, math.inf, False, note)
    error, scale = abs(slope - value), max(abs(slope), abs(value))
    relative = error / scale if scale > 0 else 0.0
    if relative > tolerance and error <= tolerance * floor:
        return Comparison(slope, value, relative, True, "small beside the largest component")
    if scale == 0:
        note = "exactly zero"
    return Comparison(slope, value, relative, relative <= tolerance, note)


def _extrapolated(quotients: dict[float, float], t: float) -> list[float]:
    """The quotient of step ``t`` and what it gives with its neighbours when the error is of second order."""
    found = [quotients[t]]
    for other, value in quotients.items():
        if other != t and 1.5 < max(other / t, t / other) < 20:
            small, large = (quotients[t], value) if t < other else (value, quotients[t])
            found.append(small + (small - large) / (max(other / t, t / other) ** 2 - 1))
    return found


def _is_kink(line: _Line, quotients: dict[float, float], noise: float, tolerance: float) -> bool:
    """Whether left and right quotients stay apart as the step shrinks, above what rounding explains."""
    previous = None
    kink = False
    for t in sorted(quotients, reverse=True):
        left, right = line.sides(t)
        gap, uncertain = abs(right - left), 3 * DEVIATIONS * noise / (t * line.length)
        if gap <= uncertain or gap <= 10 * tolerance * max(abs(left), abs(right)):
            break
        kink = previous is not None and gap > 0.3 * previous  # a smooth quantity gives a tenth for a tenth of the step
        previous = gap
    return kink


def _bent(
    line: _Line, slope: float, quotients: dict[float, float], noise: float, tolerance: float
) -> Comparison | None:
    """A passing comparison if the derivative exists but has a corner, and both sides' limits agree with the gradient.

    The step that knows the limit best counts. It has to know it to a thousandth of what the slope is that far away.
    """
    known: list[tuple[float, float, float]] = []
    finer = None
    for t in sorted(quotients):
        left, right = line.difference(-t, True), line.difference(t, True)
        value = 0.5 * (left + right)
        uncertain = abs(right - left) + 4 * DEVIATIONS * noise / (t * line.length)
        change = 0.0 if finer is None else abs(value - finer)  # what both sides have in common as the step shrinks
        known.append((uncertain + change, value, max(map(abs, line.sides(t)))))
        finer = value
    uncertain, value, beside = min(known)
    if uncertain > KINK_TOLERANCE * beside or abs(slope - value) > tolerance * abs(value) + uncertain:
        return None
    scale = max(abs(slope), abs(value))
    return Comparison(slope, value, abs(slope - value) / scale if scale else 0.0, True, "kink")


def _within_rounding(
    line: _Line, slope: float, quotients: dict[float, float], noise: float, tolerance: float
) -> Comparison | None:
    """A passing comparison if the rounding of the quantity is all that separates the two, else ``None``.

    Only steps whose quotient is known to a thousandth count; if none is, the longest one (the least uncertain).
    """
    longest = max(quotients)
    for t in sorted(quotients, reverse=True):
        value, uncertain = quotients[t], DEVIATIONS * noise / (t * line.length)
        if t < longest and uncertain > KINK_TOLERANCE * abs(value):
            break
        if abs(slope - value) <= tolerance * abs(value) + uncertain:
            scale = max(abs(slope), abs(value))
            below = scale <= 2 * uncertain
            note = "below rounding" if below else f"known to {uncertain / scale:.0e} only (rounding)"
            return Comparison(slope, value, abs(slope - value) / scale if scale else 0.0, True, note)
    return None


def check(
    function: Callable[[np.ndarray], float],
    x: np.ndarray,
    gradient: np.ndarray,
    rng: np.random.Generator,
    *,
    of: str = "loss",
    wrt: str = "x",
    full: bool = False,
    directions: int = 3,
    tolerance: float = TOLERANCE,
    kink_tolerance: float = KINK_TOLERANCE,
    size: float | None = None,
    lower: np.ndarray | float | None = None,
    upper: np.ndarray | float | None = None,
    late: Callable[[], bool] = lambda: False,
) -> list[Row]:
    """Rows for one array: random directions and the largest component, or with ``full`` every component.

    ``function(x) -> float``; ``x`` and ``gradient`` of one shape, () included; ``size`` as in
    :func:`check_directional`. ``lower`` and ``upper`` (same shape or scalar) are never crossed: at a bound the
    differences look inwards. No row is begun once it is ``late``. Errors as :func:`check_directional`.
    """
    x, gradient = np.asarray(x, dtype=np.float64), np.asarray(gradient, dtype=np.float64)
    if x.size == 0:
        return []
    if gradient.shape != x.shape:
        raise ValueError(f"{wrt}: the gradient has shape {gradient.shape}, the value {x.shape}")
    size, inward = _room(x, size, lower, upper)
    rows = []
    for along, direction in _directions(x, gradient, rng, full, directions):
        if late():
            break
        turned = np.where(inward != 0, inward * np.abs(direction), direction)
        sign = np.sign(turned.flat[np.argmax(np.abs(turned))]) if np.count_nonzero(turned) == 1 else 1.0
        c = check_directional(
            function, gradient, x, turned,
            tolerance=tolerance, kink_tolerance=kink_tolerance, size=size, forward=bool(np.any(inward * turned)),
        )  # fmt: skip
        rows.append(Row(of, wrt, along, sign * c.gradient, sign * c.finite_difference, c.relative_error, c.ok, c.note))
    return rows


def rows_of(x: np.ndarray, full: bool, directions: int = 3) -> int:
    """Rows :func:`check` makes of an array."""
    return x.size if full or x.size <= 1 else directions + 1


def _directions(
    x: np.ndarray, gradient: np.ndarray, rng: np.random.Generator, full: bool, directions: int
) -> list[tuple[str, np.ndarray]]:
    """Names and unit vectors of what to look along; a scalar has one direction."""
    found = []
    if not full and x.size > 1:
        for k in range(directions):
            direction = rng.standard_normal(x.shape)
            found.append((f"random {k + 1}", direction / np.sqrt(np.sum(direction**2))))
    finite = np.where(np.isfinite(gradient), np.abs(gradient), np.inf)
    for flat in range(x.size) if full else [int(np.argmax(finite))]:
        unit = np.zeros(x.shape)
        unit.flat[flat] = 1.0
        index = ", ".join(str(int(i)) for i in np.unravel_index(flat, x.shape)) if x.ndim else ""
        found.append((f"[{index}]" if index else "", unit))
    return found


def _room(x: np.ndarray, size: float | None, lower, upper) -> tuple[float, np.ndarray]:
    """Size of a relative step of 1, and per element +1 or -1 where only that side is allowed, else 0."""
    size = size or float(np.max(np.abs(x))) or 1.0
    low = np.broadcast_to(-np.inf if lower is None else np.asarray(lower, dtype=np.float64), x.shape)
    high = np.broadcast_to(np.inf if upper is None else np.asarray(upper, dtype=np.float64), x.shape)
    reach = 2.5 * max(STEPS)
    span = float(np.min(high - low))
    if span <= 2 * reach * size:
        size = span / (2.5 * reach)
    if size <= 0:
        raise ValueError("the bounds leave no room to move")
    return size, np.where(x - reach * size < low, 1.0, np.where(x + reach * size > high, -1.0, 0.0))
