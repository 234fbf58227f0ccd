"""The edges of a triangle mesh."""

from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.mesh import read_mesh
from taichi_sim.scene.networks.network import NetworkKind, networks
from taichi_sim.scene.shapes.shape import Context
from taichi_sim.solvers.particles.network import Network, mesh


def _build(values: dict[str, Any], dim: int, context: Context) -> Network:
    vertices, faces, _ = read_mesh(Path(context.file(str(values["file"]))))
    points, number = np.unique(vertices, axis=0, return_inverse=True)  # files may hold a corner once a triangle
    faces = np.asarray(number).reshape(-1)[faces]
    faces = faces[(faces != np.roll(faces, 1, axis=1)).all(axis=1)]
    used = np.unique(faces)
    renumber = np.zeros(len(points), np.int64)
    renumber[used] = np.arange(len(used))
    return mesh(points[used] * float(values["scale"]), renumber[faces], bending=bool(values["cross"]))


networks.add(
    NetworkKind(
        name="mesh",
        doc="a spring along every edge of the triangles in a mesh file (stl, obj, ply, off, glb, …)",
        parameters=(
            Parameter("file", "", None, "mesh file", kind="file", differentiable=False),
            Parameter("scale", "m", 1.0, "metres per file unit", low=0.0, low_open=True, differentiable=False),
            Parameter(
                "cross", "", True, "springs across shared edges, against bending", kind="flag", differentiable=False
            ),
        ),
        build=_build,
        dims=(3,),
        reads=True,
    )
)
