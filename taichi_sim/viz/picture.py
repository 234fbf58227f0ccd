"""What a picture shows, as plain data: no simulation, no Taichi."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from taichi_sim.viz.camera import Camera2D, Camera3D

#: Gentle colours of bodies (sRGB, 0..1), by their order in the scene.
PALETTE = (
    (0.29, 0.53, 0.76),
    (0.45, 0.67, 0.42),
    (0.66, 0.53, 0.75),
    (0.88, 0.70, 0.38),
    (0.37, 0.66, 0.66),
    (0.80, 0.52, 0.58),
)
OBSTACLE = (0.50, 0.53, 0.58)
WARM = (0.93, 0.31, 0.16)  # activation +1
COOL = (0.10, 0.72, 0.86)  # activation -1
IDLE = (0.86, 0.86, 0.88)  # activation 0, mixed with the colour of the body
TARGET = (0.92, 0.24, 0.36)


class Mesh(NamedTuple):
    """A triangle surface (3-D): vertices (v, 3) m, faces (f, 3) whole numbers, colour sRGB 0..1."""

    vertices: np.ndarray
    faces: np.ndarray
    color: Sequence[float] = OBSTACLE


class Polygon(NamedTuple):
    """A filled, simple polygon (2-D): points (k, 2) m in order, either way round; colour sRGB 0..1."""

    points: np.ndarray
    color: Sequence[float] = OBSTACLE


class Marker(NamedTuple):
    """A point to look at (a target): position (dim,) m, radius m; a ring in 2-D, a small ball in 3-D."""

    position: Sequence[float]
    radius: float
    color: Sequence[float] = TARGET


class Line(NamedTuple):
    """A polyline (a trail): points (k, dim) m, width m, colour sRGB 0..1."""

    points: np.ndarray
    width: float
    color: Sequence[float] = (0.35, 0.37, 0.42)


@dataclass
class Picture:
    """One picture. y is up in 2-D and z in 3-D.

    points (n, dim) m · colors (n, 3) or (3,) sRGB 0..1, default the first of :data:`PALETTE` · radius m, one or (n,):
    half the particle spacing looks right; default from the bounds and n · activation (n,) in -1..1 or ``None``, NaN
    for particles that no actuator drives · meshes, obstacles: :class:`Mesh` in 3-D, :class:`Polygon` in 2-D, or equal
    tuples · lower, upper (dim,) m: walls of the domain · floor m: height of the ground, default the lower wall,
    ``floor_visible=False`` for none (3-D) · camera: :class:`Camera3D` or :class:`Camera2D`, default sees the domain,
    or the points where there is none · caption: lines of text, the first one larger · smooth 0..1: how much the
    shading of neighbouring particles is blended into one surface (3-D).
    """

    dim: int
    points: np.ndarray
    colors: np.ndarray | Sequence[float] | None = None
    radius: float | np.ndarray | None = None
    activation: np.ndarray | None = None
    meshes: Sequence[Mesh | Polygon | tuple] = ()
    obstacles: Sequence[Mesh | Polygon | tuple] = ()
    lower: Sequence[float] | np.ndarray | None = None
    upper: Sequence[float] | np.ndarray | None = None
    camera: Camera2D | Camera3D | None = None
    caption: str = ""
    floor: float | None = None
    floor_visible: bool = True
    markers: Sequence[Marker | tuple] = ()
    lines: Sequence[Line | tuple] = ()
    smooth: float = 0.7
    legend: bool = field(default=True)  # a small scale of the activation colours, where there is activation

    def checked(self) -> "Resolved":
        """Arrays of the right shape and type, defaults filled in. Raises ``ValueError`` naming what does not fit."""
        if self.dim not in (2, 3):
            raise ValueError(f"picture: dim must be 2 or 3, got {self.dim!r}")
        points = np.asarray(self.points, np.float32)
        if points.ndim != 2 or points.shape[1] != self.dim:
            raise ValueError(f"picture: points must have shape (particles, {self.dim}), got {points.shape}")
        n = len(points)
        colors = np.asarray(PALETTE[0] if self.colors is None else self.colors, np.float32)
        if colors.shape not in ((3,), (n, 3)):
            raise ValueError(f"picture: colors must have shape (3,) or ({n}, 3), got {colors.shape}")
        activation = None
        if self.activation is not None:
            activation = np.asarray(self.activation, np.float32)
            if activation.shape != (n,):
                raise ValueError(f"picture: activation must have shape ({n},), got {activation.shape}")
        lower, upper = self._bounds(points)
        radius = self.radius
        if radius is None:  # half of the spacing, were the points spread evenly through a tenth of the bounds
            radius = 0.5 * (0.1 * float(np.prod(np.maximum(upper - lower, 1e-6))) / max(n, 1)) ** (1.0 / self.dim)
        radius = np.asarray(radius, np.float32)
        if radius.shape not in ((), (n,)) or not (np.isfinite(radius) & (radius > 0)).all():
            raise ValueError(f"picture: radius must be positive, one number or shape ({n},)")
        colors = np.broadcast_to(np.clip(colors, 0.0, 1.0), (n, 3))
        if activation is not None:
            colors = activated(colors, activation)
        points, colors, radius = (np.ascontiguousarray(a) for a in (points, colors, np.broadcast_to(radius, (n,))))
        return Resolved(points, colors, radius, lower, upper)

    def _bounds(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        finite = points[np.isfinite(points).all(axis=1)].astype(float)
        low = finite.min(axis=0) if len(finite) else np.zeros(self.dim)
        high = finite.max(axis=0) if len(finite) else np.ones(self.dim)
        low = low if self.lower is None else np.asarray(self.lower, float)
        high = high if self.upper is None else np.asarray(self.upper, float)
        if low.shape != (self.dim,) or high.shape != (self.dim,) or not (high >= low).all():
            raise ValueError(f"picture: lower and upper must have shape ({self.dim},) with lower <= upper")
        return low, high


class Resolved(NamedTuple):
    """A checked picture: points (n, dim), colours (n, 3) with activation mixed in, radius (n,), bounds (dim,)."""

    points: np.ndarray
    colors: np.ndarray
    radius: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def activated(colors: np.ndarray, activation: np.ndarray) -> np.ndarray:
    """Colours (n, 3) of driven particles: paler than their body, towards :data:`WARM` for activation > 0 and
    :data:`COOL` for < 0. NaN (no actuator) leaves the colour as it is. Mixed as light, so that mixtures stay clear."""
    driven = ~np.isnan(activation)[:, None]
    a = np.clip(np.nan_to_num(activation, nan=0.0), -1.0, 1.0)[:, None]
    weight = np.abs(a) ** 0.75
    base = np.asarray(colors, np.float32) ** 2.2
    base = base + 0.55 * (np.array(IDLE) ** 2.2 - base)
    ends = np.where(a > 0, np.array(WARM), np.array(COOL)) ** 2.2
    mixed = (base + weight * (ends - base)) ** (1 / 2.2)
    return np.where(driven, mixed, colors).astype(np.float32)


def palette(index: int) -> tuple[float, float, float]:
    """Colour of the body at this place of the scene."""
    return PALETTE[index % len(PALETTE)]
