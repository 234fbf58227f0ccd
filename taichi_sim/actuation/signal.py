"""Signals: activation as a function of time, with hand-written derivatives.

A signal kind gives a *raw* value per frame; one output stage, the same for all kinds, keeps it within ``limits`` in the
way ``squash`` says. The activation of frame ``f`` is the value at ``f * frame_dt`` and is held during the frame.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from taichi_sim.core.errors import unknown
from taichi_sim.core.given import Values, complete
from taichi_sim.core.registry import Parameter, Registry

#: Parameters every signal has besides its own.
OUTPUT = (
    Parameter(
        "squash",
        "",
        "none",
        "how the raw value is kept within the limits: tanh, sigmoid (smooth), clip, or none",
        kind="choice",
        choices=("none", "tanh", "clip", "sigmoid"),
    ),
    Parameter(
        "limits",
        "1",
        (-np.inf, np.inf),
        "lowest and highest activation; infinite: the squash's own range (tanh, clip -1..1, sigmoid 0..1, none: any)",
        shape=(2,),
    ),
)


@dataclass(frozen=True)
class SignalKind:
    """One kind of signal.

    ``raw(params, times) -> (frames,)`` and ``raw_vjp(params, times, bar) -> {name: gradient}`` get every declared
    parameter (reals as float64 arrays) and ``times`` in s, shape (frames,); the gradients have the parameters' shapes.
    ``example(times, rng)`` gives parameters for the conformance tests. ``load(params, folder)``, where a kind has one,
    reads what the parameters name in files.
    """

    name: str
    doc: str
    own: tuple[Parameter, ...]
    raw: Callable[[Values, np.ndarray], np.ndarray]
    raw_vjp: Callable[[Values, np.ndarray, np.ndarray], dict[str, np.ndarray]]
    example: Callable[[np.ndarray, np.random.Generator], Values]
    load: Callable[[Values, Path], Values] | None = None
    parameters: tuple[Parameter, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", self.own + OUTPUT)

    def prepare(self, params: Mapping[str, Any], folder: str | Path = ".") -> Values:
        """All parameters, defaults filled in and files (relative to ``folder``) read.

        Raises ``ValueError`` for an unknown, missing or misshapen parameter, or a file that cannot be read.
        """
        filled = complete(f"signal {self.name!r}", self.parameters, params)
        return self.load(filled, Path(folder)) if self.load else filled

    def value(self, params: Mapping[str, Any], times: np.ndarray) -> np.ndarray:
        """Activation per frame, shape (frames,), after the output stage. ``times`` in s, shape (frames,).

        Raises ``ValueError`` for parameters that do not fit each other, the frames, or are not finite.
        """
        filled = self.prepare(params)
        output = squash(self._raw(filled, _times(times)), filled["squash"], filled["limits"])
        return output.value

    def vjp(self, params: Mapping[str, Any], times: np.ndarray, bar: np.ndarray) -> dict[str, np.ndarray]:
        """Gradient of ``sum(bar * value)`` for every parameter that has one, in the parameter's own shape."""
        filled = self.prepare(params)
        times = _times(times)
        bar = np.asarray(bar, np.float64)
        if bar.shape != times.shape:
            raise ValueError(f"signal {self.name!r}: the adjoint has shape {bar.shape}, expected {times.shape}")
        output = squash(self._raw(filled, times), filled["squash"], filled["limits"])
        gradient = self.raw_vjp(filled, times, bar * output.slope)
        gradient["limits"] = np.array([np.sum(bar * output.by_low), np.sum(bar * output.by_high)])
        return gradient

    def _raw(self, filled: Values, times: np.ndarray) -> np.ndarray:
        raw = self.raw(filled, times)
        if not np.isfinite(raw).all():
            bad = int(np.flatnonzero(~np.isfinite(raw))[0])
            raise ValueError(f"signal {self.name!r} is not finite at t = {times[bad]:g} s; check its parameters")
        return raw


@dataclass(frozen=True)
class Squashed:
    """Output stage at each frame: value, and its derivative by the raw value, the lower and the upper limit."""

    value: np.ndarray
    slope: np.ndarray
    by_low: np.ndarray
    by_high: np.ndarray


def squash(raw: np.ndarray, how: str, limits: np.ndarray) -> Squashed:
    """Keep ``raw`` within ``limits``, shape (2,).

    ``tanh``: middle + half range * tanh(raw). ``sigmoid``: low + range / (1 + exp(-raw)). ``clip``: cut off. ``none``:
    as it is, cut off only where limits are given. Cutting off is not smooth: the derivative used is 1 within the limits
    *and on them*, so that a design starting on a limit can leave it, and 0 outside.

    Raises ``ValueError`` unless low < high, and for a smooth squash with only one finite limit.
    """
    low, high = float(limits[0]), float(limits[1])
    if not low < high:
        raise ValueError(f"limits = [{low:g}, {high:g}]: the first must be below the second")
    given = np.isfinite(limits)
    if how in ("tanh", "sigmoid") and given.sum() == 1:
        raise ValueError(f"limits = [{low:g}, {high:g}]: squash {how!r} needs two finite limits, or none")
    if how != "none" and not given.any():
        low, high = (0.0, 1.0) if how == "sigmoid" else (-1.0, 1.0)
    if how in ("tanh", "sigmoid"):
        share = expit(raw if how == "sigmoid" else 2.0 * raw)  # tanh(x) = 2 expit(2 x) - 1
        steepness = 1.0 if how == "sigmoid" else 2.0
        value = low + (high - low) * share
        slope = steepness * (high - low) * share * expit(-steepness * raw)
        by_low, by_high = 1.0 - share, share
    elif how in ("clip", "none"):
        below, above = raw < low, raw > high
        value = np.clip(raw, low, high)
        slope = (~(below | above)).astype(np.float64)
        by_low, by_high = below.astype(np.float64), above.astype(np.float64)
    else:
        raise ValueError(unknown("squash", how, OUTPUT[0].choices))
    return Squashed(value, slope, by_low * given[0], by_high * given[1])


def _times(times: np.ndarray) -> np.ndarray:
    times = np.asarray(times, np.float64)
    if times.ndim != 1 or not np.isfinite(times).all():
        raise ValueError(f"times must be a finite array of shape (frames,), got shape {times.shape}")
    return times


def knots(what: str, times: np.ndarray, values: np.ndarray, least: int) -> None:
    """Check the knots of an interpolating signal.

    Raises ``ValueError`` unless ``times`` and ``values`` are lists of one length >= ``least`` and times increase.
    """
    if times.ndim != 1 or values.ndim != 1 or times.size != values.size:
        raise ValueError(f"signal {what!r}: times has {times.size} entries, values has {values.size}; give one each")
    if times.size < least:
        raise ValueError(f"signal {what!r}: needs at least {least} knots, got {times.size}")
    steps = np.diff(times)
    if not (steps > 0).all():
        bad = int(np.flatnonzero(~(steps > 0))[0])
        raise ValueError(
            f"signal {what!r}: times must increase, but times[{bad + 1}] = {times[bad + 1]:g} follows {times[bad]:g}"
        )


signals: Registry[SignalKind] = Registry("signal", "taichi_sim.actuation.signals")
