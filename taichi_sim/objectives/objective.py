"""Objectives: a value at one frame and its derivative with respect to everything it was computed from.

A rule judges all environments at once: arrays have a leading axis of environments, or none where there is one frame.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.core.errors import RolloutError, unknown
from taichi_sim.core.given import Values, complete
from taichi_sim.core.registry import Parameter, Registry

#: What the value may be differentiated by, besides the parameters of the objective.
INPUTS = ("position", "velocity", "rest", "activation", "mass")


@dataclass
class Frame:
    """What an objective sees at one frame: the particles of its body or region, in body order.

    ``time`` in s; ``index`` of the frame; ``position`` in m, ``velocity`` in m/s and ``rest`` (positions at time 0, m),
    each (particles, dim); ``activation`` of the objective's actuators, (actuators,); ``frame_dt`` in s; ``mass`` in kg,
    (particles,). Positions are continuous: through a periodic side they go on, they do not come back on the other one.
    ``chosen`` is what the kind's ``choose`` found in the scene as built, ``None`` outside of a scene. ``sensors`` is
    what the scene's sensors read, by name (those the kind ``senses``).

    A rule may get the frames of all environments as one: every array then has their axis in front, ``lead`` (envs,).
    """

    time: float
    index: int
    position: np.ndarray
    velocity: np.ndarray
    rest: np.ndarray
    activation: np.ndarray
    frame_dt: float
    mass: np.ndarray
    chosen: Any = None
    sensors: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.position.shape[-1]

    @property
    def lead(self) -> tuple[int, ...]:
        """Axes in front of those of one environment: none, or (envs,)."""
        return self.position.shape[:-2]

    def of(self, env: int) -> "Frame":
        """One environment's of several."""
        sensors = {name: read[env] for name, read in self.sensors.items()}
        return replace(self, sensors=sensors, **{name: getattr(self, name)[env] for name in INPUTS})


@dataclass
class Evaluation:
    """Value of an objective and its derivatives, each with the shape of what it is by; ``None`` means zero.

    Of the frames of all environments as one the value is (envs,), and every derivative has that axis in front.
    """

    value: float | np.ndarray
    position: np.ndarray | None = None
    velocity: np.ndarray | None = None
    activation: np.ndarray | None = None
    parameters: dict[str, np.ndarray] = field(default_factory=dict)
    rest: np.ndarray | None = None
    mass: np.ndarray | None = None
    sensors: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class ObjectiveKind:
    """One kind of objective.

    ``rule(params, frame) -> Evaluation`` gets every declared parameter (reals as float64 arrays). It counts axes from
    the last: what is differentiable and what the frame holds may have one of environments in front (both or neither).
    A rule that is called ``alone`` gets one environment at a time; one of a kind that is ``blind`` gets no particles,
    which costs nothing at the frames only it looks at. ``default_when`` is
    ``"final"`` (the value at the last frame) or ``"running"`` (the sum of value · frame_dt over the frames);
    ``allowed`` lists which of the two make sense. ``example(dim, rng)`` gives parameters for the conformance tests.
    ``load(params, folder)``, where a kind has one, reads what the parameters name in files. ``choose(params, rest)``,
    where a kind has one, makes a choice among particles that must not change with values, or the value would jump: it
    is made once, for the scene as built (``rest``: positions (particles, dim) of the start), and is ``frame.chosen``.
    ``senses(params)``, where a kind has one, names the sensors that it reads, * allowed.
    """

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    rule: Callable[[Values, Frame], Evaluation]
    example: Callable[[int, np.random.Generator], Values]
    default_when: str = "final"
    allowed: tuple[str, ...] = ("final", "running")
    load: Callable[[Values, Path], Values] | None = None
    choose: Callable[[Values, np.ndarray], Any] | None = None
    senses: Callable[[Values], str] | None = None
    alone: bool = False
    blind: bool = False

    def prepare(self, params: Mapping[str, Any], folder: str | Path = ".") -> Values:
        """All parameters, defaults filled in and files (relative to ``folder``) read.

        Raises ``ValueError`` for an unknown, missing or misshapen parameter, or a file that cannot be read.
        """
        filled = complete(f"objective {self.name!r}", self.parameters, params)
        return self.load(filled, Path(folder)) if self.load else filled

    def evaluate(self, params: Mapping[str, Any], frame: Frame) -> Evaluation:
        """Value and derivatives at ``frame``.

        Raises ``ValueError`` for parameters that do not fit, ``RolloutError`` if the frame is not finite.
        """
        return self.evaluate_all(params, frame, ())

    def evaluate_all(self, params: Mapping[str, Any], frame: Frame, each: Iterable[str]) -> Evaluation:
        """The same of all environments of ``frame`` at once, where ``params`` that ``each`` has of its own have their
        axis in front."""
        if not self.blind or frame.position.size:
            _check_frame(frame)
        each = set(each)
        filled = self.prepare({name: value[0] if name in each else value for name, value in params.items()})
        for p in self.parameters:
            if "dim" in p.shape and filled[p.name].size and filled[p.name].shape[-1] != frame.dim:
                raise ValueError(
                    f"objective {self.name!r}: {p.name} has {filled[p.name].shape[-1]} components, "
                    f"the scene has {frame.dim} dimensions"
                )
        what, lead = f"objective {self.name!r}", frame.lead
        shared = {p.name for p in self.parameters if p.kind == "real" and p.differentiable} if lead else set()
        filled |= {name: np.asarray(params[name], np.float64) for name in each}
        filled |= {name: np.broadcast_to(filled[name], (*lead, *np.shape(filled[name]))) for name in shared - each}
        if not (self.alone and lead):
            return checked(what, self.rule(filled, frame), frame)
        found = []
        for env in range(lead[0]):
            own = frame.of(env)
            mine = {name: filled[name][env] for name in shared | each}
            found.append(checked(what, self.rule({**filled, **mine}, own), own))
        return _stacked(found, frame)


def _stacked(found: list[Evaluation], frame: Frame) -> Evaluation:
    """Evaluations of every environment as one."""
    result = Evaluation(np.array([e.value for e in found]))
    for name in INPUTS:
        parts = [getattr(e, name) for e in found]
        if any(part is not None for part in parts):
            zero = np.zeros(getattr(frame, name).shape[1:])
            setattr(result, name, np.stack([zero if part is None else part for part in parts]))
    for name in {name for e in found for name in e.sensors}:
        zero = np.zeros(frame.sensors[name].shape[1:])
        result.sensors = {**result.sensors, name: np.stack([e.sensors.get(name, zero) for e in found])}
    for name in {name for e in found for name in e.parameters}:
        result.parameters[name] = np.stack([np.asarray(e.parameters[name]) for e in found])
    return result


def _check_frame(frame: Frame) -> None:
    shape = frame.position.shape
    if len(shape) < 2 or shape[-2] < 1:
        raise ValueError(f"an objective needs at least one particle, got positions of shape {shape}")
    for name in ("position", "velocity"):
        array = getattr(frame, name)
        if array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, position has {shape}")
        if not _finite(array):
            bad = int(np.argwhere(~np.isfinite(array).all(axis=-1))[0, -1])
            raise RolloutError(f"{name} of particle {bad} is not finite at t = {frame.time:g} s (frame {frame.index})")
    for name, read in frame.sensors.items():
        if not _finite(read):
            raise RolloutError(f"sensor {name!r} is not finite at t = {frame.time:g} s (frame {frame.index})")


def checked(what: str, evaluation: Evaluation, frame: Frame) -> Evaluation:
    """``evaluation`` with float64 derivatives.

    Raises ``ValueError`` naming ``what`` if a number is not finite or a derivative has not the shape it must have.
    """
    at = f"at t = {frame.time:g} s"
    value = _numbers(what, "value", evaluation.value)
    fits = value.shape == frame.lead if frame.lead else value.size == 1
    if not fits or not np.isfinite(value).all():
        number = f"a finite number for each of {frame.lead[0]} environments" if frame.lead else "one finite number"
        raise ValueError(f"{what}: the value must be {number}, got {evaluation.value!r} {at}")
    result = Evaluation(value if frame.lead else float(value.reshape(())), parameters=evaluation.parameters)
    for name in INPUTS:
        derivative = getattr(evaluation, name)
        if derivative is None:
            continue
        derivative = _numbers(what, f"derivative by {name}", derivative)
        expected = getattr(frame, name).shape
        if derivative.shape != expected:
            raise ValueError(f"{what}: the derivative by {name} has shape {derivative.shape}, must be {expected}")
        if not _finite(derivative):
            raise ValueError(f"{what}: the derivative by {name} is not finite {at}")
        setattr(result, name, derivative)
    result.sensors = {name: _by_sensor(what, name, bar, frame) for name, bar in evaluation.sensors.items()}
    return result


def _by_sensor(what: str, name: str, bar: Any, frame: Frame) -> np.ndarray:
    if name not in frame.sensors:
        raise ValueError(f"{what} returned a derivative by {unknown('sensor', str(name), frame.sensors)}")
    bar = _numbers(what, f"derivative by sensor {name!r}", bar)
    if bar.shape != frame.sensors[name].shape:
        expected = frame.sensors[name].shape
        raise ValueError(f"{what}: the derivative by sensor {name!r} has shape {bar.shape}, must be {expected}")
    if not _finite(bar):
        raise ValueError(f"{what}: the derivative by sensor {name!r} is not finite at t = {frame.time:g} s")
    return bar


def _finite(array: np.ndarray) -> bool:
    """Whether all numbers are finite; the sum tells it without a second array, unless it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.sum(array))) or bool(np.isfinite(array).all())


def _numbers(what: str, name: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what}: the {name} must be made of numbers, got {value!r:.60}") from None


objectives: Registry[ObjectiveKind] = Registry("objective", "taichi_sim.objectives.kinds")
