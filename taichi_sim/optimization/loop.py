"""The loop every method runs in: budget, best so far, records, halving of steps that cannot be simulated.

A method is a function of an :class:`Objective` and a good start; it calls the objective until it is satisfied or the
budget of evaluations is spent (the objective then ends it). What it does in between is its own business: adding a
method is adding a file with a :class:`Method` in it.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from taichi_sim.core.errors import RolloutError, StartError, unknown
from taichi_sim.core.registry import Parameter, Registry
from taichi_sim.optimization.curriculum import Stage, checked_curriculum, horizons
from taichi_sim.optimization.journal import Journal
from taichi_sim.optimization.problem import Point, Problem

__all__ = ["Method", "Objective", "Outcome", "Record", "methods", "minimise", "norm", "prepare"]

#: A step that cannot be simulated is halved this often before the method gives up.
HALVINGS = 30


@dataclass(frozen=True)
class Record:
    """What one evaluation was, for progress bars: ``loss`` is ``None`` if it was rejected (``note`` says why).

    ``iteration`` counts evaluations from 0, ``total`` is the budget; ``best`` is the best point so far, of the stage,
    ``best_iteration`` its number (-1 until there is one) and ``best_loss`` its loss (``None`` and NaN until there is
    one); ``grad_norm`` is that of the gradient with respect to scaled variables; ``seconds_left`` is at most what
    remains, ``None`` until something was simulated; ``replayed`` evaluations come from an interrupted run's journal.
    ``stage`` counts those of the curriculum from 0, ``horizon`` is the frames of this one (0: a whole rollout, there is
    no curriculum).
    """

    iteration: int
    total: int
    loss: float | None
    best_loss: float
    grad_norm: float | None
    seconds: float
    seconds_left: float | None
    replayed: bool
    best: Point | None
    note: str = ""
    best_iteration: int = -1
    stage: int = 0
    stages: int = 1
    horizon: int = 0


@dataclass(frozen=True)
class Method:
    """A way to choose the next point. ``run(objective, start, options)`` returns why it stopped, in a few words."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    run: Callable[["Objective", Point, Mapping[str, float]], str]


methods: Registry[Method] = Registry("method", "taichi_sim.optimization")


class Spent(Exception):
    """The budget of a stage is used up; ends a method from within."""


@dataclass
class Outcome:
    """Best point found and the way there; ``losses`` and ``grad_norms`` have one entry per evaluation.

    ``best`` is that of the last of the ``stages``, whose loss is that of a whole rollout.
    """

    start: Point
    best: Point
    best_iteration: int
    losses: list[float | None]
    grad_norms: list[float | None]
    seconds: float
    reason: str
    notes: list[str] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)

    @property
    def evaluations(self) -> int:
        return len(self.losses)


class Objective:
    """The loss as a method sees it: call it with scaled variables (n,) for a :class:`Point`.

    Points outside the bounds are moved onto them. Bad points (``point.bad``) carry no usable loss or gradient.
    One stage of a curriculum is one objective: ``first`` evaluations came before, ``stage`` is its number of how many,
    and ``ahead`` the work of those after it, in evaluations of this one.
    """

    def __init__(
        self, problem: Problem, budget: int, journal: Journal, callback: Callable[[Record], None] | None = None,
        first: int = 0, total: int | None = None, stage: tuple[int, int] = (0, 1), ahead: float = 0.0,
    ) -> None:  # fmt: skip
        self.problem = problem
        self.budget = budget
        self.journal = journal
        self.callback = callback
        self.first, self.total = first, budget if total is None else total
        self.stage, self.ahead = stage, ahead
        self.good: list[Point] = []
        self.lower, self.upper = problem.lower, problem.upper
        self.best: Point | None = None
        self.best_iteration = -1
        self.losses: list[float | None] = []
        self.grad_norms: list[float | None] = []
        self.notes: list[str] = []
        self.seconds = 0.0
        self._simulated: list[float] = []
        self._zero: set[str] = set()

    @property
    def used(self) -> int:
        """Evaluations made so far."""
        return len(self.losses)

    def __call__(self, z: np.ndarray) -> Point:
        """Evaluate at ``z``. Ends the method if the budget is spent."""
        if self.used >= self.budget:
            raise Spent
        z = np.clip(np.asarray(z, dtype=np.float64), self.lower, self.upper) + 0.0  # + 0.0: no negative zeros
        known = self.journal.get(z, self.problem.horizon)
        if known is None:
            began = time.perf_counter()
            point = self.problem.evaluate(z)
            seconds = time.perf_counter() - began
            self._simulated.append(seconds)
            self.journal.add(point, seconds)
        else:
            point, seconds = known
        self.seconds += seconds
        self._keep(point, seconds, replayed=known is not None)
        return point

    def towards(self, origin: Point, z: np.ndarray) -> Point | None:
        """Evaluate at ``z``; while that is bad, halve the step from ``origin``. ``None`` if nothing there is good."""
        for _ in range(HALVINGS):
            point = self(z)
            if not point.bad:
                return point
            z = origin.z + 0.5 * (point.z - origin.z)
        return None

    def _keep(self, point: Point, seconds: float, replayed: bool) -> None:
        index = self.first + self.used
        good = not point.bad
        if good:
            self.good.append(point)
        if good and (self.best is None or point.loss < self.best.loss):
            self.best, self.best_iteration = point, index
        self.losses.append(point.loss if good else None)
        self.grad_norms.append(norm(point.gradient) if good else None)
        note = "" if good else f"evaluation {index}: {point.bad}; step rejected and halved"
        if note and index > 0 and None not in self.losses[:-1]:
            self.notes.append(note)
        for path in self.problem.zero_gradients(point):
            if path not in self._zero and point.loss != 0:  # at a loss of squares that is 0 all is well
                self._zero.add(path)
                self.notes.append(self._zero_note(path, index))
        if self.callback is not None:
            left = None
            if self._simulated:  # the first one compiles
                left = (self.budget - self.used + self.ahead) * median(self._simulated[1:] or self._simulated)
            best = self.best.loss if self.best else math.nan
            self.callback(
                Record(
                    index, self.total, self.losses[-1], best, self.grad_norms[-1], seconds, left, replayed, self.best,
                    note, self.best_iteration, *self.stage, self.problem.horizon,
                )
            )  # fmt: skip

    def _zero_note(self, path: str, index: int) -> str:
        reasons = [n for n in getattr(self.problem.simulation, "notes", []) if path in n]
        note = f"evaluation {index}: the gradient with respect to {path} is exactly zero"
        return f"{note} ({reasons[-1]})" if reasons else note


def norm(vector: np.ndarray) -> float:
    """Euclidean length, the same bits for any number of threads."""
    return math.sqrt(float(np.sum(vector * vector)))


def prepare(name: str, iterations: int, options: Mapping[str, Any] | None) -> tuple[Method, dict[str, float]]:
    """The method called ``name`` and its options with defaults filled in.

    Raises ``ValueError`` naming what is unknown or out of range, with the nearest name for a typo.
    """
    method = methods.get(name)
    if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
        raise ValueError(f"iterations must be a whole number of at least 1, got {iterations!r}")
    known = {p.name: p for p in method.parameters}
    chosen = {p.name: p.default for p in method.parameters}
    for name, value in (options or {}).items():
        if name not in known:
            raise ValueError(unknown(f"option of {method.name}", name, known))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{method.name}: {name} = {value!r}: must be a number")
        if problem := known[name].check(value):
            raise ValueError(f"{method.name}: {name} = {value!r}: {problem}")
        chosen[name] = float(value)
    return method, chosen


def minimise(
    problem: Problem,
    method: str = "adam",
    iterations: int = 40,
    *,
    options: Mapping[str, Any] | None = None,
    journal: Journal | None = None,
    callback: Callable[[Record], None] | None = None,
    curriculum: Sequence[int] | None = None,
    begun: Callable[[Point], Sequence[str]] | None = None,
) -> Outcome:
    """Minimise ``problem`` in at most ``iterations`` evaluations of loss and gradient, the start included.

    The best point seen is returned, whatever the method did afterwards. ``curriculum`` lists growing horizons (frames)
    that come before the whole rollout (see :mod:`taichi_sim.optimization.curriculum`). ``begun`` is called with the
    start of every stage, once evaluated, and returns notes. Raises ``ValueError`` for an unknown method or option,
    :class:`RolloutError` if the start itself cannot be simulated, :class:`StartError` if it cannot even begin.
    """
    chosen, numbers = prepare(method, iterations, options)
    ends = checked_curriculum(curriculum, iterations)
    plan = horizons(ends, problem.simulation.frames if ends else 0)  # type: ignore[attr-defined]
    journal = Journal(None, {}) if journal is None else journal
    stages: list[Objective] = []
    reason, used = "", 0
    starts: list[np.ndarray] = [problem.start]
    for number, horizon in enumerate(plan):
        if horizon:
            problem.until(horizon)
        budget = (iterations - used) // (len(plan) - number)
        later = plan[number + 1 :]
        ahead = (iterations - used - budget) * float(np.mean(later)) / horizon if later else 0.0
        objective = Objective(problem, budget, journal, callback, used, iterations, (number, len(plan)), ahead)
        stages.append(objective)
        start = _begin(objective, starts)
        if begun is not None:
            objective.notes += begun(start)
        try:
            reason = chosen.run(objective, start, numbers)
        except Spent:
            reason = "budget used"
        starts = [point.z for point in sorted(objective.good, key=lambda point: point.loss)]
        used += objective.used
    return _outcome(stages, plan, reason)


def _begin(objective: Objective, starts: Sequence[np.ndarray]) -> Point:
    """The first of ``starts`` that can be simulated: the start of a stage is the best there is so far, and what runs
    for some frames need not run for more."""
    point = None
    try:
        for z in starts:
            point = objective(z)
            if not point.bad:
                return point
    except Spent:
        pass
    assert point is not None
    which = f", of the stage of {point.horizon} frames," if point.horizon else ""
    kind = StartError if point.mistaken else RolloutError
    raise kind(f"the start of the optimisation{which} cannot be used: {point.bad}")


def _outcome(stages: Sequence[Objective], plan: Sequence[int], reason: str) -> Outcome:
    last = stages[-1]
    assert last.best is not None
    found = [
        Stage(horizon, one.first, one.used, one.best_iteration, one.best.loss if one.best else math.nan)
        for horizon, one in zip(plan, stages, strict=True)
    ]
    return Outcome(
        stages[0].good[0], last.best, last.best_iteration,
        [loss for one in stages for loss in one.losses], [norm for one in stages for norm in one.grad_norms],
        sum(one.seconds for one in stages), reason, [note for one in stages for note in one.notes], found,
    )  # fmt: skip
