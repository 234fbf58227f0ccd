"""The loss: objectives evaluated on frames, and what they send back into the adjoint."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.drives import Quantified
from taichi_sim.compile.family import State
from taichi_sim.compile.quantity import Quantity, add_vjp
from taichi_sim.objectives.objective import INPUTS, Evaluation, Frame, ObjectiveKind


@dataclass(frozen=True)
class Term:
    """One objective: what it measures, on which particles and actuators (columns), its weight and when it counts.

    ``chosen`` is what its kind's ``choose`` found in the scene as built; ``sensors`` are those it reads.
    """

    name: str
    kind: ObjectiveKind
    parameters: Quantified
    particles: np.ndarray
    actuators: np.ndarray
    weight: float
    running: bool
    chosen: Any = None
    sensors: dict[str, tuple[Quantity, np.ndarray]] = field(default_factory=dict)

    @property
    def reads(self) -> set[str]:
        """What of FELT its sensors need."""
        return {name for quantity, _ in self.sensors.values() for name in quantity.reads}


@dataclass
class Bars:
    """Adjoints one frame adds, each (envs, …) in body order; ``sensed`` those of what sensors have read."""

    x: np.ndarray
    v: np.ndarray
    rest: np.ndarray
    mass: np.ndarray
    activation: np.ndarray
    sensed: State = field(default_factory=dict)


class Judge:
    """Evaluates terms over ``frames``; ``last`` is the one at which a rollout ends."""

    def __init__(self, terms: list[Term], frames: int, frame_dt: float) -> None:
        self.terms, self.last, self.frame_dt = terms, frames, frame_dt
        #: Terms that gave no derivative at any frame of the last sweep backwards.
        self.without_derivative: set[str] = set()

    def looks_at(self, terms: list[Term]) -> list[int]:
        """Frames needed by ``terms``: all of them if one is running, else the last."""
        return list(range(1, self.last + 1)) if any(t.running for t in terms) else [self.last]

    def blind(self, terms: Iterable[Term], f: int) -> bool:
        """Whether none of ``terms`` sees a particle at frame ``f``."""
        return all(term.kind.blind for term in self.active(terms, f))

    def active(self, terms: Iterable[Term], f: int) -> list[Term]:
        """Those of ``terms`` that look at frame ``f``."""
        return [t for t in terms if f > 0 and (t.running or f == self.last)]

    def _shares(self, terms: Iterable[Term], f: int) -> list[tuple[Term, float]]:
        return [(t, self.frame_dt if t.running else 1.0) for t in self.active(terms, f)]

    def frame(self, term: Term, f: int, state: State, sensed: State) -> Frame:
        """What ``term`` sees of all environments; ``state`` holds x, v, rest, mass (envs, particles, …), activation
        (envs, frames, A), ``sensed`` what observables see, where sensors are read. Without x and v if it is blind."""
        points, seen = (term.particles[:0], ("rest", "rest")) if term.kind.blind else (term.particles, ("x", "v"))
        x, v, rest, mass = (np.take(state[key], points, axis=1) for key in (*seen, "rest", "mass"))
        return Frame(
            time=f * self.frame_dt,
            index=f,
            position=x.astype(np.float64, copy=False),
            velocity=v.astype(np.float64, copy=False),
            rest=rest,
            activation=np.take(state["activation"][:, max(f - 1, 0)], term.actuators, axis=1),
            frame_dt=self.frame_dt,
            mass=mass,
            chosen=term.chosen,
            sensors={name: np.asarray(q.value(sensed, points)) for name, (q, points) in term.sensors.items()},
        )

    def measure(
        self,
        terms: list[Term],
        f: int,
        state: dict[str, np.ndarray],
        values: Values,
        sensed: State | None = None,
    ) -> dict[str, np.ndarray]:
        """(envs,) contribution of each term at frame ``f``, without its weight."""
        return {
            term.name: np.asarray(share * self._evaluate(term, f, state, values, sensed or {}).value)
            for term, share in self._shares(terms, f)
        }

    def _evaluate(self, term: Term, f: int, state: State, values: Values, sensed: State) -> Evaluation:
        frame = self.frame(term, f, state, sensed)
        try:
            return term.kind.evaluate_all(term.parameters.of_all(values), frame, term.parameters.differentiable)
        except ValueError as error:
            self._blame(term, frame, values)
            raise ValueError(f"objectives.{term.name}: {error}") from error.__cause__  # the user's own error

    def _blame(self, term: Term, frame: Frame, values: Values) -> None:
        """Raise the error of the first environment that has one by itself."""
        for env in range(frame.lead[0] if frame.lead[0] > 1 else 0):
            try:
                term.kind.evaluate(term.parameters.at(values, env), frame.of(env))
            except ValueError as error:
                raise ValueError(f"objectives.{term.name} in environment {env}: {error}") from error.__cause__

    def seed(
        self,
        terms: list[tuple[Term, np.ndarray]],
        f: int,
        state: dict[str, np.ndarray],
        values: Values,
        gradient: Values,
        sensed: State | None = None,
    ) -> Bars | None:
        """Adjoints of frame ``f`` for terms with cotangents (envs,); parameters' gradients go into ``gradient``."""
        bars = None
        cotangents = {t.name: c for t, c in terms}
        if f == self.last:  # where a sweep begins
            self.without_derivative = set(cotangents)
        for term, share in self._shares([t for t, _ in terms], f):
            if bars is None:  # x and v have the shape of rest
                x, v, rest, mass, activation = (
                    np.zeros(state[key].shape) for key in ("rest", "rest", "rest", "mass", "activation")
                )
                bars = Bars(x, v, rest, mass, activation)
            scale = share * cotangents[term.name]
            e = self._evaluate(term, f, state, values, sensed or {})
            if e.parameters or e.sensors or any(getattr(e, name) is not None for name in INPUTS):
                self.without_derivative.discard(term.name)
            for target, part in ((bars.x, e.position), (bars.v, e.velocity), (bars.rest, e.rest), (bars.mass, e.mass)):
                if part is not None:
                    target[:, term.particles] += _scaled(scale, part)
            for name, bar in e.sensors.items():
                quantity, points = term.sensors[name]
                add_vjp(bars.sensed, quantity, sensed or {}, points, _scaled(scale, bar))
            if e.activation is not None:
                bars.activation[:, f - 1, term.actuators] += _scaled(scale, e.activation)
            term.parameters.collect_all(gradient, values, {k: _scaled(scale, v) for k, v in e.parameters.items()})
        return bars


def _scaled(scale: np.ndarray, bar: np.ndarray) -> np.ndarray:
    """Adjoints (envs, …) times ``scale`` (envs,)."""
    return scale.reshape(-1, *(1 for _ in bar.shape[1:])) * bar
