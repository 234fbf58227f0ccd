"""The loss: objectives evaluated on frames, and what they send back into the adjoint."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.drives import Quantified
from taichi_sim.compile.family import State
from taichi_sim.compile.quantity import Quantity
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

    def _active(self, terms: list[Term], f: int) -> list[tuple[Term, float]]:
        return [(t, self.frame_dt if t.running else 1.0) for t in terms if f > 0 and (t.running or f == self.last)]

    def frame(self, term: Term, env: int, f: int, state: dict[str, np.ndarray], sensed: Sequence[State] = ()) -> Frame:
        """What ``term`` sees; ``state`` holds x, v, rest, mass (envs, particles, …), activation (envs, frames, A),
        ``sensed`` of every environment what observables see, where sensors are read."""
        p = term.particles
        return Frame(
            time=f * self.frame_dt,
            index=f,
            position=state["x"][env, p].astype(np.float64),
            velocity=state["v"][env, p].astype(np.float64),
            rest=state["rest"][env, p],
            activation=state["activation"][env, max(f - 1, 0), term.actuators],
            frame_dt=self.frame_dt,
            mass=state["mass"][env, p],
            chosen=term.chosen,
            sensors={name: np.asarray(q.value(sensed[env], points)) for name, (q, points) in term.sensors.items()},
        )

    def measure(
        self,
        terms: list[Term],
        f: int,
        state: dict[str, np.ndarray],
        values: Values,
        sensed: Sequence[State] = (),
    ) -> dict[str, np.ndarray]:
        """(envs,) contribution of each term at frame ``f``, without its weight."""
        out = {}
        for term, share in self._active(terms, f):
            envs = range(state["x"].shape[0])
            found = [self._evaluate(term, env, f, state, values, sensed).value for env in envs]
            out[term.name] = share * np.asarray(found)
        return out

    def _evaluate(
        self, term: Term, env: int, f: int, state: dict[str, np.ndarray], values: Values, sensed: Sequence[State]
    ) -> Evaluation:
        try:
            frame = self.frame(term, env, f, state, sensed)
            return term.kind.evaluate(term.parameters.at(values, env), frame)
        except ValueError as error:
            where = f" in environment {env}" if len(state["x"]) > 1 else ""
            raise ValueError(f"objectives.{term.name}{where}: {error}") from error.__cause__  # the user's own error

    def seed(
        self,
        terms: list[tuple[Term, np.ndarray]],
        f: int,
        state: dict[str, np.ndarray],
        values: Values,
        gradient: Values,
        sensed: Sequence[State] = (),
    ) -> Bars | None:
        """Adjoints of frame ``f`` for terms with cotangents (envs,); parameters' gradients go into ``gradient``."""
        bars = None
        cotangents = {t.name: c for t, c in terms}
        if f == self.last:  # where a sweep begins
            self.without_derivative = set(cotangents)
        for term, share in self._active([t for t, _ in terms], f):
            if bars is None:
                x, v, rest, mass, activation = (
                    np.zeros(state[key].shape) for key in ("x", "v", "rest", "mass", "activation")
                )
                bars = Bars(x, v, rest, mass, activation)
            for env in range(state["x"].shape[0]):
                scale = share * float(cotangents[term.name][env])
                e = self._evaluate(term, env, f, state, values, sensed)
                if e.parameters or e.sensors or any(getattr(e, name) is not None for name in INPUTS):
                    self.without_derivative.discard(term.name)
                p = term.particles
                for target, part in (
                    (bars.x, e.position),
                    (bars.v, e.velocity),
                    (bars.rest, e.rest),
                    (bars.mass, e.mass),
                ):
                    if part is not None:
                        target[env, p] += scale * part
                for name, bar in e.sensors.items():
                    self._send_back(bars.sensed, *term.sensors[name], env, sensed, scale * bar)
                if e.activation is not None:
                    bars.activation[env, f - 1, term.actuators] += scale * e.activation
                term.parameters.collect(gradient, values, env, {k: scale * v for k, v in e.parameters.items()})
        return bars

    def _send_back(
        self, total: State, quantity: Quantity, points: np.ndarray, env: int, sensed: Sequence[State], bar: np.ndarray
    ) -> None:
        """Add to the adjoints of what a sensor has read."""
        assert quantity.vjp is not None
        for key, mine in quantity.vjp(sensed[env], points, bar).items():
            if key not in total:
                total[key] = np.zeros((len(sensed), *sensed[env][key].shape))
            total[key][env, points] += mine
