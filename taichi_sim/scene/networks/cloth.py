"""A parallelogram of cloth."""

from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.networks.network import NetworkKind, networks, whole_numbers
from taichi_sim.scene.shapes.shape import Context
from taichi_sim.solvers.particles.network import Network, cloth


def _build(values: dict[str, Any], dim: int, context: Context) -> Network:
    nu, nv = (int(n) for n in whole_numbers("cells", values["cells"]))
    u, v = values["side_u"], values["side_v"]
    if np.linalg.norm(np.cross(u, v)) <= 1e-9 * np.linalg.norm(u) * np.linalg.norm(v):
        raise ValueError("side_u and side_v must be two different directions")
    return cloth((nu, nv), values["corner"], u, v)


networks.add(
    NetworkKind(
        name="cloth",
        doc="a parallelogram with springs along its sides and diagonals, and bends along rows and columns",
        parameters=(
            Parameter("corner", "m", None, "a corner, before the pose", shape=(3,), differentiable=False),
            Parameter("side_u", "m", None, "from the corner to the next one", shape=(3,), differentiable=False),
            Parameter("side_v", "m", None, "from the corner to the other next one", shape=(3,), differentiable=False),
            Parameter(
                "cells", "1", None, "cells along side_u and side_v", shape=(2,), low=1, high=5000, differentiable=False
            ),
        ),
        build=_build,
        dims=(3,),
    )
)
