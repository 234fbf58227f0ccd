"""How gradients spread over nearby starts, and how far their mean is from the trend.

Through long or stiff contact a gradient may be exact and yet say nothing of where the loss goes: each start has its
own. Value and gradient are taken at starts perturbed at random, each an environment of one simulation. The trend is the
slope of a linear regression of the values on the perturbations: what the gradient of the loss smoothed by them would be
(Suh et al., "Do differentiable simulators give better policy gradients?", ICML 2022, compare the two).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taichi_sim.core.errors import RolloutError
from taichi_sim.core.given import real_numbers
from taichi_sim.optimization.problem import Block, block

__all__ = ["PathSpread", "SpreadReport", "gradient_spread", "regress"]

#: Standard deviation of a perturbation that is not given, in units of the design variable.
SHARE = 0.01
#: Samples a regression needs for each number that is perturbed.
SAMPLES_EACH = 2


@dataclass(frozen=True)
class PathSpread:
    """Gradients by one quantity over the samples, in its units: ``mean`` and standard deviation ``sd`` of its shape.

    ``slope`` is the regression's, ``slope_error`` its standard error; both ``None`` where there were too few samples.
    ``perturbation`` is the standard deviation of the quantity itself, as it was drawn.
    """

    path: str
    perturbation: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    slope: np.ndarray | None
    slope_error: np.ndarray | None

    @property
    def size(self) -> float:
        """Length of the mean gradient."""
        return _length(self.mean)

    @property
    def spread(self) -> float:
        """Root of the summed variances: to be held against :attr:`size`."""
        return _length(self.sd)

    @property
    def bias(self) -> float:
        """Length of mean minus slope; NaN without a slope."""
        return math.nan if self.slope is None else _length(self.mean - self.slope)

    @property
    def cosine(self) -> float:
        """Of the angle between mean and slope; NaN without a slope, or where one is zero."""
        if self.slope is None or not self.size or not _length(self.slope):
            return math.nan
        return float(np.sum(self.mean * self.slope)) / (self.size * _length(self.slope))

    @property
    def exceeds(self) -> bool:
        """Whether gradients differ more among each other than their mean is long."""
        return self.spread > self.size

    def to_dict(self) -> dict[str, Any]:
        """Plain values; ``None`` for what there is not."""
        arrays = {name: getattr(self, name) for name in ("perturbation", "mean", "sd", "slope", "slope_error")}
        numbers = {name: getattr(self, name) for name in ("size", "spread", "bias", "cosine")}
        return {
            "wrt": self.path,
            **{name: None if value is None else np.asarray(value).tolist() for name, value in arrays.items()},
            **{name: value if math.isfinite(value) else None for name, value in numbers.items()},
        }


@dataclass(frozen=True)
class SpreadReport:
    """What :func:`gradient_spread` found: ``rows``, one a path, over ``samples`` starts and ``horizon`` frames; mean
    and standard deviation of the values of ``of``; ``missing`` says why there are no slopes, where there are none."""

    of: str
    samples: int
    horizon: int
    value: float
    value_sd: float
    rows: list[PathSpread]
    missing: str = ""

    @property
    def doubts(self) -> list[str]:
        """A sentence for every quantity whose gradients spread by more than their mean."""
        return [
            f"the gradient with respect to {row.path} spreads by {row.spread:.3g} around a mean of {row.size:.3g} over "
            f"{self.samples} nearby starts ({self.horizon} frames): one gradient says little about the trend; a "
            "shorter horizon (a curriculum), softer or more damped contact, or the mean of several helps"
            for row in self.rows
            if row.exceeds
        ]

    @property
    def notes(self) -> list[str]:
        """What should be known: :attr:`doubts`, and why there is no slope."""
        return [*self.doubts, *filter(None, [self.missing])]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        about = {name: getattr(self, name) for name in ("of", "samples", "horizon", "value", "value_sd")}
        return {**about, "spread": [row.to_dict() for row in self.rows], "notes": self.notes}


def gradient_spread(
    scene: Any,
    of: str = "loss",
    wrt: "str | Iterable[str] | None" = None,
    around: Mapping[str, Any] | None = None,
    samples: int = 50,
    seed: int = 0,
    *,
    at: Mapping[str, Any] | None = None,
    horizon: int | None = None,
    precision: str = "f64",
    arch: str = "cpu",
    memory: str | int = "500MB",
    threads: int | None = None,
) -> SpreadReport:
    """Value and gradient of a scalar over ``samples`` starts drawn around the scene's.

    ``of`` and ``wrt`` as in :meth:`Simulation.value_and_grad`. ``around`` gives standard deviations by path (in the
    quantity's unit, a number or an array); what is in ``wrt`` and not there is perturbed by 1 % of a unit of the design
    variable. Both are drawn from normal distributions and kept within their bounds. ``at`` replaces values of the scene
    in the middle, ``horizon`` ends rollouts earlier (frames). Costs one gradient of as many environments as
    ``samples``.

    Raises ``ValueError`` for mistakes, :class:`RolloutError` if a start cannot be simulated, or has no finite gradient.
    """
    from taichi_sim.scene.paths import match
    from taichi_sim.scene.schema import Scene
    from taichi_sim.simulation import Simulation

    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 2:
        raise ValueError(f"samples must be a whole number of at least 2, got {samples!r}")
    scene = scene if hasattr(scene, "to_dict") else Scene.load(scene)
    with Simulation(
        scene, precision=precision, arch=arch, envs=samples, memory=memory, seed=seed, threads=threads
    ) as sim:
        if horizon is not None:
            sim.horizon = horizon
        for path, value in (at or {}).items():
            sim.set(path, value)
        patterns = [wrt] if isinstance(wrt, str) else [d.path for d in sim.design] if wrt is None else list(wrt)
        known = list(sim.parameters())
        paths = list(dict.fromkeys(path for pattern in patterns for path in match(known, pattern)))
        if not paths:
            raise ValueError("the scene has no [[design]] entry: say with respect to what (wrt)")
        given = {path: sd for pattern, sd in (around or {}).items() for path in match(known, pattern)}
        drawn = _draw(sim, paths, given, samples, np.random.default_rng(seed))
        for path, values in drawn.items():
            sim.set(path, values)
        values, gradients = sim.value_and_grad(of, paths)
        frames = sim.horizon
    return _report(of, frames, np.asarray(values), drawn, gradients)


def _draw(
    sim: Any, paths: Iterable[str], given: Mapping[str, Any], samples: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """(samples, …) values of everything that is perturbed, by path."""
    scales: dict[str, tuple[Block, float]] = {}
    variables = _variables(sim, [*paths, *given])
    for path, variable in variables.items():
        share = SHARE
        if path in given:
            sd = real_numbers(f"around: {path}", given[path])
            if not np.all(np.isfinite(sd) & (sd > 0)) or sd.shape not in ((), variable.value.shape):
                raise ValueError(
                    f"around: {path} = {given[path]!r}: must be a standard deviation > 0, a number or an array of "
                    f"shape {variable.value.shape}"
                )
            variable, share = replace(variable, scale="linear", step=sd), 1.0
        scales[path] = block(variable), share
    return {
        path: np.stack([scale.to_value(share * z) for z in rng.standard_normal((samples, scale.value.size))])
        for path, (scale, share) in scales.items()
    }


def _variables(sim: Any, paths: Iterable[str]) -> dict[str, Any]:
    """Each path as a design variable of one environment, whether it is one of the scene or not."""
    from taichi_sim.scene.paths import design_variables
    from taichi_sim.scene.schema import Design
    from taichi_sim.simulation import DesignVariable

    known = sim.scene.copy()
    own = {d.path for d in sim.design}
    known.design += [Design(path=path) for path in dict.fromkeys(paths) if path not in own]
    declared = {d.path: d for d in design_variables(known)}
    found = {}
    for path in dict.fromkeys(paths):
        d, value = declared[path], sim.get(path)[0]
        lower, upper = (np.broadcast_to(bound, value.shape) for bound in (d.lower, d.upper))
        found[path] = DesignVariable(path, value, lower, upper, d.scale, 0.0, d.step)
    return found


def _report(
    of: str, horizon: int, values: np.ndarray, drawn: Mapping[str, np.ndarray], gradients: Mapping[str, np.ndarray]
) -> SpreadReport:
    """Statistics of values (samples,) and gradients (samples, …) at the starts ``drawn``."""
    samples = len(values)
    whole = np.isfinite(values)
    for gradient in gradients.values():
        whole &= np.isfinite(gradient).reshape(samples, -1).all(axis=1)
    if whole.sum() < samples:
        raise RolloutError(f"{of} or its gradient is not finite at {samples - int(whole.sum())} of {samples} starts")
    slopes, missing = regress(values, drawn), ""
    if slopes is None:
        numbers = sum(x[0].size for x in drawn.values())
        missing = (
            f"no slope: {numbers} perturbed numbers need at least {SAMPLES_EACH * (numbers + 1)} samples for a "
            f"regression, there are {samples}"
        )
    rows = []
    for path, gradient in gradients.items():
        slope, error = (None, None) if slopes is None else slopes[path]
        sd = gradient.std(axis=0, ddof=1)
        rows.append(PathSpread(path, drawn[path].std(axis=0, ddof=1), gradient.mean(axis=0), sd, slope, error))
    return SpreadReport(of, samples, horizon, float(values.mean()), float(values.std(ddof=1)), rows, missing)


def regress(values: np.ndarray, drawn: Mapping[str, np.ndarray]) -> dict[str, tuple[np.ndarray, np.ndarray]] | None:
    """Slope of ``values`` (samples,) by everything drawn (samples, …) and its standard error, by path; ``None`` for too
    few samples."""
    samples = len(values)
    columns = np.concatenate([x.reshape(samples, -1) for x in drawn.values()], axis=1)
    columns = columns - columns.mean(axis=0)
    size = columns.std(axis=0)
    size[size == 0] = 1.0  # held at a bound: its slope is 0
    if samples < SAMPLES_EACH * (columns.shape[1] + 1):
        return None
    scaled = columns / size
    slope, _, rank, _ = np.linalg.lstsq(scaled, values - values.mean(), rcond=None)
    residual = values - values.mean() - scaled @ slope
    variance = float(residual @ residual) / max(1, samples - 1 - int(rank))
    error = np.sqrt(variance * np.diag(np.linalg.pinv(scaled.T @ scaled)))
    out, at = {}, 0
    for path, x in drawn.items():
        part, shape = slice(at, at + x[0].size), x.shape[1:]
        out[path] = (slope / size)[part].reshape(shape), (error / size)[part].reshape(shape)
        at = part.stop
    return out


def _length(array: np.ndarray) -> float:
    return math.sqrt(float(np.sum(np.square(array))))
