"""Spheres (in 2-D discs), capsules and cylinders."""

from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.shapes.shape import Context, Shape, ShapeKind, Surface, shapes

#: Corners of a drawn circle.
SEGMENTS = 48


class Sphere(Shape):
    """The points within ``radius`` of ``center``."""

    kind = "sphere"

    def __init__(self, center: np.ndarray, radius: float) -> None:
        self.center, self.radius = np.asarray(center, dtype=float), float(radius)
        self.dim = len(self.center)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return self.center - self.radius, self.center + self.radius

    def moments(self) -> tuple[float, np.ndarray]:
        volume = np.pi * self.radius**2 if self.dim == 2 else 4 / 3 * np.pi * self.radius**3
        return float(volume), self.center.copy()

    def spread(self) -> np.ndarray:
        return self.volume * self.radius**2 / (self.dim + 2) * np.eye(self.dim)

    def signed_distance(self, points: np.ndarray) -> np.ndarray:
        return np.linalg.norm(points - self.center, axis=1) - self.radius

    def surface(self, lower: np.ndarray | None = None, upper: np.ndarray | None = None) -> Surface:
        if self.dim == 2:
            return Surface.of_loops([self.center + self.radius * _circle()])
        angle = np.linspace(0, np.pi, SEGMENTS // 2 + 1)
        profile = np.column_stack([np.sin(angle), -np.cos(angle)]) * self.radius
        return _turned(profile, self.center, np.array([0.0, 0.0, 1.0]))


class Capsule(Shape):
    """The points within ``radius`` of the line between ``start`` and ``end``."""

    kind = "capsule"

    def __init__(self, start: np.ndarray, end: np.ndarray, radius: float) -> None:
        self.start, self.end, self.radius = np.asarray(start, dtype=float), np.asarray(end, dtype=float), float(radius)
        self.dim = len(self.start)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.minimum(self.start, self.end) - self.radius, np.maximum(self.start, self.end) + self.radius

    def moments(self) -> tuple[float, np.ndarray]:
        length, r = float(np.linalg.norm(self.end - self.start)), self.radius
        volume = 2 * r * length + np.pi * r**2 if self.dim == 2 else np.pi * r**2 * (length + 4 / 3 * r)
        return float(volume), (self.start + self.end) / 2

    def spread(self) -> np.ndarray:
        """The middle (a rectangle or cylinder) and two half discs or balls, moved out by half the length."""
        axis = self.end - self.start
        length, r = float(np.linalg.norm(axis)), self.radius
        half = length / 2
        if self.dim == 2:
            middle, cap, reach = 2 * r * length, np.pi * r**2 / 2, 4 * r / (3 * np.pi)
        else:
            middle, cap, reach = np.pi * r**2 * length, 2 / 3 * np.pi * r**3, 3 * r / 8
        ends = (
            2 * cap * r**2 / (self.dim + 2)
        )  # of both caps, in every direction, about the middles of their flat sides
        along = middle * length**2 / 12 + ends + 2 * cap * half * (2 * reach + half)
        across = middle * r**2 / (self.dim + 1) + ends
        return _about_axis(axis / length, along, across)

    def signed_distance(self, points: np.ndarray) -> np.ndarray:
        axis = self.end - self.start
        along = np.clip((points - self.start) @ axis / (axis @ axis), 0.0, 1.0)
        return np.linalg.norm(points - self.start - along[:, None] * axis, axis=1) - self.radius

    def surface(self, lower: np.ndarray | None = None, upper: np.ndarray | None = None) -> Surface:
        axis = self.end - self.start
        length = float(np.linalg.norm(axis))
        if self.dim == 2:
            half = np.linspace(-np.pi / 2, np.pi / 2, SEGMENTS // 2 + 1)
            along, across = axis / length, np.array([-axis[1], axis[0]]) / length
            cap = np.cos(half)[:, None] * along + np.sin(half)[:, None] * across
            return Surface.of_loops([np.concatenate([self.end + self.radius * cap, self.start - self.radius * cap])])
        angle = np.linspace(0, np.pi / 2, SEGMENTS // 4 + 1)
        round_end = np.column_stack([np.cos(angle), np.sin(angle)]) * self.radius
        top, bottom = round_end.copy(), round_end[::-1] * [1, -1]
        top[:, 1] += length / 2
        bottom[:, 1] -= length / 2
        return _turned(np.concatenate([bottom, top]), (self.start + self.end) / 2, axis / length)


class Cylinder(Shape):
    """The points within ``radius`` of the axis from ``start`` to ``end``, between the planes through its ends."""

    kind = "cylinder"
    dim = 3

    def __init__(self, start: np.ndarray, end: np.ndarray, radius: float) -> None:
        self.start, self.end, self.radius = np.asarray(start, dtype=float), np.asarray(end, dtype=float), float(radius)
        self.length = float(np.linalg.norm(self.end - self.start))
        self.axis = (self.end - self.start) / self.length

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        reach = self.radius * np.sqrt(np.maximum(1 - self.axis**2, 0.0))
        return np.minimum(self.start, self.end) - reach, np.maximum(self.start, self.end) + reach

    def moments(self) -> tuple[float, np.ndarray]:
        return float(np.pi * self.radius**2 * self.length), (self.start + self.end) / 2

    def spread(self) -> np.ndarray:
        return self.volume * _about_axis(self.axis, self.length**2 / 12, self.radius**2 / 4)

    def signed_distance(self, points: np.ndarray) -> np.ndarray:
        from_middle = points - (self.start + self.end) / 2
        along = from_middle @ self.axis
        beyond = np.column_stack(
            [
                np.linalg.norm(from_middle - along[:, None] * self.axis, axis=1) - self.radius,
                np.abs(along) - self.length / 2,
            ]
        )
        return np.linalg.norm(np.maximum(beyond, 0.0), axis=1) + np.minimum(beyond.max(axis=1), 0.0)

    def surface(self, lower: np.ndarray | None = None, upper: np.ndarray | None = None) -> Surface:
        r, half = self.radius, self.length / 2
        profile = np.array([[0, -half], [r, -half], [r, half], [0, half]])
        return _turned(profile, (self.start + self.end) / 2, self.axis)


def _about_axis(axis: np.ndarray, along: float, across: float) -> np.ndarray:
    """The symmetric matrix (dim, dim) with eigenvalue ``along`` for the unit vector ``axis``, else ``across``."""
    return across * np.eye(len(axis)) + (along - across) * np.outer(axis, axis)


def _circle() -> np.ndarray:
    angle = 2 * np.pi * np.arange(SEGMENTS) / SEGMENTS
    return np.column_stack([np.cos(angle), np.sin(angle)])


def _turned(profile: np.ndarray, center: np.ndarray, axis: np.ndarray) -> Surface:
    """Surface of revolution of ``profile`` (m, 2) = (radius, height), bottom to top, about ``axis`` through
    ``center``."""
    profile = np.where(np.abs(profile) < 1e-12 * np.abs(profile).max(), 0.0, profile)  # poles exactly on the axis
    side = np.eye(3)[np.argmin(np.abs(axis))]
    across = np.cross(axis, side)
    across /= np.linalg.norm(across)
    other = np.cross(axis, across)
    rings = _circle() @ np.stack([across, other])
    vertices = center + profile[:, None, :1] * rings[None] + (profile[:, 1:] * axis)[:, None]
    ring, step = np.meshgrid(np.arange(len(profile) - 1), np.arange(SEGMENTS), indexing="ij")
    a, b = ring * SEGMENTS + step, ring * SEGMENTS + (step + 1) % SEGMENTS
    quads = np.stack([a, b, b + SEGMENTS, a + SEGMENTS], axis=-1).reshape(-1, 4)
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    flat = vertices.reshape(-1, 3)
    corner = flat[faces]
    area = np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1)
    return Surface(flat, faces[area > 1e-12 * area.max()])


def _parameter(name: str, doc: str) -> Parameter:
    if name == "radius":
        return Parameter(name, "m", None, doc, low=0.0, low_open=True, differentiable=False)
    return Parameter(name, "m", None, doc, shape=("dim",), differentiable=False)


def _apart(values: dict[str, Any], dim: int) -> list[tuple[str, str]]:
    return [("end", "must differ from start")] if np.array_equal(values["start"], values["end"]) else []


def _sphere(values: dict[str, Any], dim: int, context: Context) -> Shape:
    return Sphere(values["center"], values["radius"])


def _capsule(values: dict[str, Any], dim: int, context: Context) -> Shape:
    return Capsule(values["start"], values["end"], values["radius"])


def _cylinder(values: dict[str, Any], dim: int, context: Context) -> Shape:
    return Cylinder(values["start"], values["end"], values["radius"])


_ENDS = (_parameter("start", "one end of the axis"), _parameter("end", "other end of the axis"))
shapes.add(
    ShapeKind(
        "sphere",
        "ball; in 2-D a disc",
        (_parameter("center", "middle"), _parameter("radius", "radius")),
        _sphere,
    )
)
shapes.add(
    ShapeKind(
        "capsule",
        "everything within a radius of a line between two points",
        (*_ENDS, _parameter("radius", "radius of the sides and of the round ends")),
        _capsule,
        verify=_apart,
    )
)
shapes.add(
    ShapeKind(
        "cylinder",
        "round rod with flat ends",
        (*_ENDS, _parameter("radius", "radius")),
        _cylinder,
        dims=(3,),
        verify=_apart,
    )
)
