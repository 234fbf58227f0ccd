"""Solids from mesh files."""

from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.distance import Triangles
from taichi_sim.scene.mesh import Mesh, load_mesh, place
from taichi_sim.scene.pose import rotation_matrix
from taichi_sim.scene.shapes.shape import Context, Nothing, Shape, ShapeKind, Surface, shapes


class MeshShape(Shape):
    """The solid inside a triangle surface. ``file`` and ``unit`` (what the file calls its unit) are for messages."""

    kind = "mesh"
    dim = 3
    costly = True

    def __init__(self, mesh: Mesh, file: str = "mesh", scale: float = 1.0, unit: str | None = None) -> None:
        self.mesh, self.file, self.scale, self.unit = mesh, file, scale, unit
        self.notes = mesh.notes

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return self.mesh.bounds

    def moments(self) -> tuple[float, np.ndarray]:
        return self.mesh.volume, self.mesh.centre.copy()

    def spread(self) -> np.ndarray:
        return self.mesh.spread.copy()

    def contains(self, points: np.ndarray) -> np.ndarray:
        return self.mesh.contains(points)

    def signed_distance(self, points: np.ndarray) -> np.ndarray:
        return self.mesh.signed_distance(points)

    @property
    def triangles(self) -> Triangles:
        """The surface prepared for distance queries."""
        return self.mesh.triangles

    def surface(self, lower: np.ndarray | None = None, upper: np.ndarray | None = None) -> Surface:
        return Surface(self.mesh.corners, np.concatenate([self.mesh.faces, self.mesh.fan]))


def _build(values: dict[str, Any], dim: int, context: Context) -> Shape:
    if not context.reading:
        return Nothing(3)
    path = values["file"]
    mesh, unit = load_mesh(path, values["repair"])
    scale = values["scale"] * values["stretch"]
    placed = place(mesh, scale, rotation_matrix(values["rotation"], 3), values["position"])
    return MeshShape(placed, path.name, values["scale"], unit)


def _verify(values: dict[str, Any], dim: int) -> list[tuple[str, str]]:
    return [] if np.all(values["stretch"]) else [("stretch", "must not be zero along any axis")]


shapes.add(
    ShapeKind(
        name="mesh",
        doc="solid inside the surface in a mesh file (stl, obj, ply, off, glb, …)",
        parameters=(
            Parameter("file", "", None, "mesh file", kind="file", differentiable=False),
            Parameter("scale", "m", 1.0, "metres per file unit", low=0.0, low_open=True, differentiable=False),
            Parameter(
                "stretch",
                "1",
                1.0,
                "factor along each axis of the file; negative: mirrored",
                (3,),
                differentiable=False,
            ),
            Parameter("rotation", "rad", 0.0, "turn about the file's origin", shape=(3,), differentiable=False),
            Parameter("position", "m", 0.0, "where the file's origin goes", shape=(3,), differentiable=False),
            Parameter("repair", "", False, "fill holes of the surface", kind="flag", differentiable=False),
        ),
        build=_build,
        dims=(3,),
        verify=_verify,
    )
)
