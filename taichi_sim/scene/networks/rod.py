"""A straight rod or string."""

from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.networks.network import NetworkKind, networks
from taichi_sim.scene.shapes.shape import Context
from taichi_sim.solvers.particles.network import Network, rod


def _build(values: dict[str, Any], dim: int, context: Context) -> Network:
    start, end = values["start"], values["end"]
    if np.array_equal(start, end):
        raise ValueError("start and end must be two different places")
    along = np.linspace(0.0, 1.0, int(values["segments"]) + 1)[:, None]
    return rod(start + along * (end - start))


networks.add(
    NetworkKind(
        name="rod",
        doc="points on a line, each joined to the next one, with a bend at each between",
        parameters=(
            Parameter("start", "m", None, "first point, before the pose", shape=("dim",), differentiable=False),
            Parameter("end", "m", None, "last point", shape=("dim",), differentiable=False),
            Parameter("segments", "1", 10, "number of springs", kind="int", low=1, high=1e6, differentiable=False),
        ),
        build=_build,
    )
)
