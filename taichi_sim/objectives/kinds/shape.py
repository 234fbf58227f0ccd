"""How far the particles are from a set of target points, m²: mean squared distance to the nearest.

``nearest``: mean over the particles of the squared distance to the nearest target point. ``chamfer`` adds the mean over
the target points of the squared distance to the nearest particle (Fan et al., CVPR 2017). Every particle counts the
same, whatever its mass. The derivative holds the pairs of nearest points fixed, which is exact wherever the nearest
point is unique.
"""

from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from taichi_sim.core.registry import Parameter
from taichi_sim.objectives.objective import Evaluation, Frame, ObjectiveKind, Values, objectives
from taichi_sim.objectives.tables import read_table


def _load(p: Values, folder: Path) -> Values:
    if bool(p["file"]) == bool(p["target"].size):
        raise ValueError(
            "objective 'shape': give target (points, dim), or a file that holds the points; one of the two"
        )
    target = read_table("objective 'shape'", folder / p["file"]) if p["file"] else p["target"]
    if target.ndim != 2 or not np.isfinite(target).all():
        raise ValueError(f"objective 'shape': target must be finite, of shape (points, dim), got shape {target.shape}")
    return {**p, "target": target, "file": ""}


def _to_nearest(points: np.ndarray, others: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Mean squared distance from ``points`` to the nearest of ``others``, and its gradient by both."""
    nearest = KDTree(others).query(points)[1]
    gap = points - others[nearest]
    by_points = 2.0 * gap / len(points)
    by_others = np.stack([np.bincount(nearest, -g, len(others)) for g in by_points.T], axis=1)
    return float(np.sum(gap * gap)) / len(points), by_points, by_others


def _rule(p: Values, frame: Frame) -> Evaluation:
    value, by_position, by_target = _to_nearest(frame.position, p["target"])
    if p["mode"] == "chamfer":
        back, from_target, to_position = _to_nearest(p["target"], frame.position)
        value, by_position, by_target = value + back, by_position + to_position, by_target + from_target
    return Evaluation(value, position=by_position, parameters={"target": by_target})


objectives.add(
    ObjectiveKind(
        name="shape",
        doc="mean squared distance to the nearest of a set of target points, m²; periodic sides do not fold it",
        parameters=(
            Parameter("target", "m", (), "target points", shape=("any", "dim")),
            Parameter(
                "file", "", "", "file to read the points from instead: .npy or .csv, one point a row", kind="file"
            ),
            Parameter(
                "mode",
                "",
                "chamfer",
                "both ways (chamfer), or only from the particles to the target (nearest)",
                kind="choice",
                choices=("chamfer", "nearest"),
            ),
        ),
        rule=_rule,
        example=lambda dim, rng: {
            "target": rng.normal(size=(6, dim)),
            "mode": "nearest" if rng.integers(2) else "chamfer",
        },
        load=_load,
        alone=True,
    )
)
