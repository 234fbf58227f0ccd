"""Cameras: where a picture is taken from, and how to frame a box."""

import math
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Camera3D:
    """A pinhole camera. ``position``, ``target`` in m, ``up`` a direction, ``fov`` the vertical angle in degrees."""

    position: tuple[float, float, float]
    target: tuple[float, float, float]
    up: tuple[float, float, float] = (0.0, 0.0, 1.0)
    fov: float = 35.0

    def basis(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Unit vectors right, up, forward. Raises ``ValueError`` when they are not defined."""
        forward = np.asarray(self.target, float) - np.asarray(self.position, float)
        if not np.isfinite(forward).all() or np.linalg.norm(forward) == 0.0:
            raise ValueError(f"camera: position {self.position} and target {self.target} must be two different points")
        if not 1.0 <= self.fov <= 150.0:
            raise ValueError(f"camera: fov must be between 1 and 150 degrees, got {self.fov}")
        forward = forward / np.linalg.norm(forward)
        right = np.cross(forward, np.asarray(self.up, float))
        if not np.linalg.norm(right) > 1e-9:  # looking along `up`: any horizontal direction will do
            right = np.cross(forward, np.roll(np.asarray(self.up, float), 1))
        if not np.linalg.norm(right) > 1e-9:
            raise ValueError(f"camera: up {self.up} must be a direction")
        right = right / np.linalg.norm(right)
        return right, np.cross(right, forward), forward

    @staticmethod
    def fit(lower, upper, azimuth: float = -60.0, elevation: float = 22.0, fov: float = 35.0, aspect: float = 4 / 3):
        """Camera that sees the whole box ``lower``..``upper`` (m); see :meth:`Orbit.fit`."""
        return Orbit.fit(lower, upper, azimuth, elevation, fov, aspect).camera()


@dataclass(frozen=True)
class Orbit:
    """A camera that circles a target: ``azimuth`` and ``elevation`` in degrees, ``distance`` in m, z up."""

    target: tuple[float, float, float]
    distance: float
    azimuth: float = -60.0
    elevation: float = 22.0
    fov: float = 35.0

    @staticmethod
    def fit(lower, upper, azimuth: float = -60.0, elevation: float = 22.0, fov: float = 35.0, aspect: float = 4 / 3):
        """Orbit around the box ``lower``..``upper`` (m), as near as it can be with all eight corners in the picture."""
        low, high = np.asarray(lower, float), np.asarray(upper, float)
        if low.shape != (3,) or high.shape != (3,) or not np.isfinite([low, high]).all() or not (high >= low).all():
            raise ValueError(f"camera: bounds must be two finite points with lower <= upper, got {lower} and {upper}")
        centre = 0.5 * (low + high)
        orbit = Orbit(_triple(centre), 1.0, azimuth, elevation, fov)
        right, up, forward = orbit.camera().basis()
        corners = np.array([[(low, high)[(c >> a) & 1][a] for a in range(3)] for c in range(8)]) - centre
        tangent = math.tan(math.radians(fov) / 2) * 0.92
        across = np.maximum(np.abs(corners @ right) / aspect, np.abs(corners @ up)) / tangent
        return replace(orbit, distance=max(float((across - corners @ forward).max()), 1e-6))

    @staticmethod
    def of(camera: Camera3D) -> "Orbit":
        """The orbit on which ``camera`` stands."""
        away = np.asarray(camera.position, float) - np.asarray(camera.target, float)
        distance = float(np.linalg.norm(away))
        azimuth = math.degrees(math.atan2(away[1], away[0]))
        elevation = math.degrees(math.asin(max(-1.0, min(1.0, away[2] / distance))))
        return Orbit(camera.target, distance, azimuth, elevation, camera.fov)

    def camera(self) -> Camera3D:
        """The camera at this place of the orbit."""
        a, e = math.radians(self.azimuth), math.radians(self.elevation)
        away = np.array([math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)])
        return Camera3D(_triple(np.asarray(self.target) + self.distance * away), self.target, fov=self.fov)

    def turned(self, azimuth: float, elevation: float) -> "Orbit":
        """Moved around the target by these angles (degrees); the elevation stays within ±89."""
        return replace(
            self,
            azimuth=(self.azimuth + azimuth + 180.0) % 360.0 - 180.0,
            elevation=max(-89.0, min(89.0, self.elevation + elevation)),
        )

    def zoomed(self, factor: float) -> "Orbit":
        """Nearer to the target by ``factor`` (> 1 is nearer)."""
        return replace(self, distance=max(self.distance / factor, 1e-6))

    def panned(self, across: float, along: float) -> "Orbit":
        """Target moved in the picture plane, in fractions of the picture's height."""
        right, up, _ = self.camera().basis()
        size = 2.0 * self.distance * math.tan(math.radians(self.fov) / 2)
        return replace(self, target=_triple(np.asarray(self.target) + size * (across * right + along * up)))


@dataclass(frozen=True)
class Camera2D:
    """A flat view: ``center`` (m) in the middle of the picture, ``height`` (m) from its bottom to its top."""

    center: tuple[float, float]
    height: float

    @staticmethod
    def fit(lower, upper, aspect: float = 4 / 3, margin: float = 0.05, head: float = 0.0) -> "Camera2D":
        """Camera that sees the box ``lower``..``upper`` (m) with a margin, and ``head`` more room on top for a caption.

        ``aspect`` is width / height of the picture, ``margin`` and ``head`` are fractions of its height.
        """
        low, high = np.asarray(lower, float), np.asarray(upper, float)
        if low.shape != (2,) or high.shape != (2,) or not np.isfinite([low, high]).all() or not (high >= low).all():
            raise ValueError(f"camera: bounds must be two finite points with lower <= upper, got {lower} and {upper}")
        size = high - low
        tall = float(size[1]) / (1.0 - 2.0 * margin - head)
        height = max(tall, float(size[0]) / (aspect - 2.0 * margin), 1e-9)
        return Camera2D((float(low[0] + high[0]) / 2, float(low[1] + high[1] + head * height) / 2), height)

    def zoomed(self, factor: float) -> "Camera2D":
        """Nearer by ``factor`` (> 1 is nearer)."""
        return replace(self, height=max(self.height / factor, 1e-9))

    def panned(self, across: float, along: float) -> "Camera2D":
        """Moved in fractions of the picture's height."""
        x, y = self.center
        return replace(self, center=(x + across * self.height, y + along * self.height))


def view_bounds(positions: np.ndarray, lower=None, upper=None, margin: float = 0.15) -> tuple[np.ndarray, np.ndarray]:
    """Box (m) that holds every position (..., dim) of a rollout, padded, within the domain ``lower``..``upper``.

    For one fixed camera over a whole video: ``Camera3D.fit(*view_bounds(rollout.position, lower, upper))``. The floor
    (lowest value of the last axis) of the domain is kept in the box when it is near.
    """
    flat = np.asarray(positions, float).reshape(-1, np.shape(positions)[-1])
    flat = flat[np.isfinite(flat).all(axis=1)]
    if not len(flat):
        raise ValueError("camera: no finite position to look at")
    low, high = flat.min(axis=0), flat.max(axis=0)
    size = max(float((high - low).max()), 1e-9)
    low, high = low - margin * size, high + margin * size
    if lower is not None:
        low = np.maximum(low, np.asarray(lower, float))
        if low[-1] - np.asarray(lower, float)[-1] < size:
            low[-1] = np.asarray(lower, float)[-1]
    if upper is not None:
        high = np.minimum(high, np.asarray(upper, float))
    return low, np.maximum(low, high)


def _triple(vector: np.ndarray) -> tuple[float, float, float]:
    return float(vector[0]), float(vector[1]), float(vector[2])
