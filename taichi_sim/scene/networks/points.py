"""Any network: points, and what joins them."""

from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.networks.network import NetworkKind, networks, whole_numbers
from taichi_sim.scene.shapes.shape import Context
from taichi_sim.solvers.particles.network import Network


def _build(values: dict[str, Any], dim: int, context: Context) -> Network:
    edges = whole_numbers("edges", values["edges"])
    twice = np.sort(edges, axis=1)
    _, first, count = np.unique(twice, axis=0, return_index=True, return_counts=True)
    if (count > 1).any():
        i = int(first[np.argmax(count > 1)])
        raise ValueError(f"edge {i} = {tuple(edges[i].tolist())} is there twice; give it once, twice as stiff")
    bends = whole_numbers("bends", values["bends"]) if "bends" in values else np.zeros((0, 3), np.int64)
    return Network(values["points"], edges, bends, np.zeros((0, 2), np.int64))


networks.add(
    NetworkKind(
        name="points",
        doc="points and what joins them, as given",
        parameters=(
            Parameter("points", "m", None, "places before the pose", shape=("any", "dim"), differentiable=False),
            Parameter(
                "edges", "1", None, "two points a spring, counted from 0", shape=("any", 2), differentiable=False
            ),
            Parameter(
                "bends", "1", (), "three points a bend, it is at the middle one", shape=("any", 3), differentiable=False
            ),
        ),
        build=_build,
    )
)
