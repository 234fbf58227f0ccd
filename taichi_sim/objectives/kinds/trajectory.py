"""Recorded motion of markers: mean squared distance between markers on the body and data, m².

A marker is glued to the particles nearest to its rest point, and moves with their mean: marker(t) = rest point +
mean(position - rest). It therefore starts exactly at its rest point, also where it stands off the body. Which particles
carry it is decided once, by the scene as it is built, and stays when values change, so that the value is smooth in
them. Of particles equally near those with the lowest index are taken.

Data are interpolated linearly in time. Where a marker has no data (NaN, or before the first or after the last time) it
does not count.
"""

from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from taichi_sim.core.registry import Parameter
from taichi_sim.objectives.objective import Evaluation, Frame, ObjectiveKind, Values, objectives
from taichi_sim.objectives.tables import read_table

_WHAT = "objective 'trajectory'"

#: Distances that differ by less than this share are equal: rounding does not choose between them.
TIE = 1e-6


def _load(p: Values, folder: Path) -> Values:
    markers, times, data = p["markers"], p["times"], p["data"]
    if markers.size == 0:
        raise ValueError(f"{_WHAT}: markers is empty; give at least one rest point")
    if bool(p["file"]) == bool(data.size):
        raise ValueError(f"{_WHAT}: give times and data, or a file that holds them; one of the two")
    if p["file"]:
        table = read_table(_WHAT, folder / p["file"])
        if table.ndim != 2 or table.shape[1] != 1 + markers.size:
            raise ValueError(
                f"{_WHAT}: {p['file']} has shape {table.shape}; {len(markers)} markers need {1 + markers.size} columns"
                ": time in s, then the coordinates of each marker"
            )
        times, data = table[:, 0], table[:, 1:].reshape(-1, *markers.shape)
    if data.shape != (times.size, *markers.shape) or times.ndim != 1:
        raise ValueError(
            f"{_WHAT}: data has shape {data.shape}; {times.size} times and {len(markers)} markers need "
            f"{(times.size, *markers.shape)}"
        )
    if not np.isfinite(times).all() or not (np.diff(times) > 0).all():
        raise ValueError(f"{_WHAT}: times must be finite and increase")
    return {**p, "times": times, "data": data, "file": ""}


def _blend(p: Values, frame: Frame) -> list[tuple[int, float]]:
    """Rows of the data and their weights at the frame's time; none outside the data."""
    times = p["times"]
    slack = 1e-6 * frame.frame_dt  # the clock of the rollout and of the data may differ by rounding
    if not times[0] - slack <= frame.time <= times[-1] + slack:
        return []
    row = int(np.clip(np.searchsorted(times, frame.time, side="right") - 1, 0, max(times.size - 2, 0)))
    if abs(frame.time - times[row]) <= slack:
        return [(row, 1.0)]
    if abs(frame.time - times[row + 1]) <= slack:
        return [(row + 1, 1.0)]
    share = float((frame.time - times[row]) / (times[row + 1] - times[row]))
    return [(row, 1.0 - share), (row + 1, share)]


def _carriers(p: Values, rest: np.ndarray) -> list[np.ndarray]:
    """Indices of the particles of ``rest`` (particles, dim) that carry each marker, in increasing order."""
    markers, count, radius = p["markers"], int(p["count"]), float(p["radius"])
    if markers.shape[1] != rest.shape[1]:
        return []  # evaluating says so
    tree = KDTree(rest)
    if radius == 0.0:
        if not 1 <= count <= len(rest):
            raise ValueError(f"{_WHAT}: count = {count} must be from 1 to the number of particles, {len(rest)}")
        return [_nearest(tree, rest, marker, count) for marker in markers]
    groups = [np.array(sorted(group), np.int64) for group in tree.query_ball_point(markers, radius * (1.0 + TIE))]
    for marker, group in enumerate(groups):
        if group.size == 0:
            away = tree.query(markers[marker])[0]
            raise ValueError(
                f"{_WHAT}: radius = {radius:g} m: no particle so near markers[{marker}]; the nearest is at {away:.3g} m"
            )
    return groups


def _nearest(tree: KDTree, rest: np.ndarray, marker: np.ndarray, count: int) -> np.ndarray:
    """The ``count`` particles nearest to a marker (dim,); among those as far as the last one the index decides."""
    last = float(np.max(tree.query(marker, k=count)[0]))
    near = np.array(sorted(tree.query_ball_point(marker, last * (1.0 + TIE))), np.int64)
    tied = np.linalg.norm(rest[near] - marker, axis=1) >= last * (1.0 - TIE)
    order = np.argsort(tied, kind="stable")  # those surely nearer first, each part by index
    return np.sort(near[order[:count]])


def _compare(p: Values, frame: Frame) -> tuple[np.ndarray, np.ndarray, list[tuple[int, float]], list[np.ndarray]]:
    """Residuals (markers, dim), zero where there are no data; which markers have data; rows of data; particles."""
    rows = _blend(p, frame)
    groups = _carriers(p, frame.rest) if frame.chosen is None else frame.chosen
    if not rows:
        return np.zeros(p["markers"].shape), np.zeros(p["markers"].shape[:-1], bool), rows, groups
    recorded = np.sum([weight * p["data"][..., row, :, :] for row, weight in rows], axis=0)
    of = [np.take(frame.position, g, axis=-2) - np.take(frame.rest, g, axis=-2) for g in groups]
    moved = np.stack([np.mean(away, axis=-2) for away in of], axis=-2)
    residual = p["markers"] + moved - recorded
    seen = np.isfinite(residual).all(axis=-1)
    return np.where(seen[..., None], residual, 0.0), seen, rows, groups


def _rule(p: Values, frame: Frame) -> Evaluation:
    residual, seen, rows, groups = _compare(p, frame)
    bar = 2.0 * residual / np.maximum(seen.sum(axis=-1), 1)[..., None, None]
    by_position = np.zeros_like(frame.position, np.float64)
    for m, group in enumerate(groups):
        by_position[..., group, :] += bar[..., m : m + 1, :] / group.size
    by_data = np.zeros(p["data"].shape)
    for row, weight in rows:
        by_data[..., row, :, :] = -weight * bar
    return Evaluation(
        np.sum(residual * bar, axis=(-2, -1)) / 2.0,
        position=by_position,
        rest=-by_position,
        parameters={"markers": bar, "data": by_data},
    )


def _example(dim: int, rng: np.random.Generator) -> Values:
    data = rng.normal(size=(4, 3, dim))
    data[1, 2, 0] = np.nan
    return {"markers": rng.normal(size=(3, dim)), "times": [0.0, 0.2, 0.5, 1.1], "data": data, "count": 1}


objectives.add(
    ObjectiveKind(
        name="trajectory",
        doc="mean squared distance of markers on the body to recorded motion, m²",
        parameters=(
            Parameter("markers", "m", None, "where each marker is at time 0", shape=("any", "dim")),
            Parameter("times", "s", (), "increasing times of the data", shape=("any",), differentiable=False),
            Parameter("data", "m", (), "markers over time, NaN where not seen", shape=("any", "any", "dim")),
            Parameter(
                "file", "", "", "file to read both from instead: .npy or .csv, a row: time, markers", kind="file"
            ),
            Parameter("count", "", 4, "how many particles nearest at first carry a marker", kind="int", low=1),
            Parameter("radius", "m", 0.0, "if not 0: all particles this near carry it", low=0.0, differentiable=False),
        ),
        rule=_rule,
        example=_example,
        default_when="running",
        load=_load,
        choose=_carriers,
    )
)
