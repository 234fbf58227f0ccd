"""Shapes as Python calls: each returns the table a scene file would hold.

``Box(lower=[0, 0], upper=[1, 1])`` is ``{"kind": "box", "lower": [0, 0], "upper": [1, 1]}``; kinds added later are
written as such a table, or with :func:`shape`.
"""

from os import PathLike
from typing import Any

from taichi_sim.scene.schema import Real, ShapeTable

Table = dict[str, Any]


def shape(kind: str, **parameters: Any) -> Table:
    """A shape of any registered ``kind``; parameters that are None are left out."""
    return {"kind": kind, **{name: value for name, value in parameters.items() if value is not None}}


def Box(*, lower: Real = None, upper: Real = None, center: Real = None, size: Real = None) -> Table:
    """Box with sides along the axes, m: from ``lower`` and ``upper`` or from ``center`` and ``size``."""
    return shape("box", lower=lower, upper=upper, center=center, size=size)


def Sphere(center: Real, radius: float) -> Table:
    """Ball, in 2-D a disc, m."""
    return shape("sphere", center=center, radius=radius)


def Capsule(start: Real, end: Real, radius: float) -> Table:
    """Everything within ``radius`` of the line from ``start`` to ``end``, m."""
    return shape("capsule", start=start, end=end, radius=radius)


def Cylinder(start: Real, end: Real, radius: float) -> Table:
    """Round rod with flat ends, m (3-D)."""
    return shape("cylinder", start=start, end=end, radius=radius)


def Ellipsoid(center: Real, radii: Real) -> Table:
    """Ball with half axes ``radii`` along the coordinates, in 2-D an ellipse, m."""
    return shape("ellipsoid", center=center, radii=radii)


def Polygon(points: Real) -> Table:
    """Area inside a closed line through ``points`` (k, 2), m (2-D)."""
    return shape("polygon", points=points)


def Plane(point: Real, normal: Real) -> Table:
    """Everything behind the plane through ``point`` (m) that ``normal`` points away from."""
    return shape("plane", point=point, normal=normal)


def MeshFile(file: "str | PathLike[str]", *, scale: float | None = None, **parameters: Any) -> Table:
    """Solid inside the surface in a mesh file (3-D); ``scale`` in metres per file unit."""
    return shape("mesh", file=str(file), scale=scale, **parameters)


def Placed(shape: ShapeTable, *, rotation: Real = None, position: Real = None) -> Table:
    """A shape turned by ``rotation`` (rad; in 3-D a rotation vector) about the origin, then moved by ``position``."""
    given = {"rotation": rotation, "position": position}
    return {"kind": "placed", "shape": shape, **{name: value for name, value in given.items() if value is not None}}


def Union(*parts: ShapeTable) -> Table:
    """Everything inside any of ``parts``."""
    return shape("union", parts=list(parts))


def Difference(base: ShapeTable, *remove: ShapeTable) -> Table:
    """``base`` with the others cut out of it."""
    return shape("difference", base=base, remove=list(remove))
