"""Surfaces of simple shapes to draw: triangle meshes in 3-D, polygons in 2-D."""

import numpy as np

_BOX_FACES = np.array(
    [[0, 2, 1], [1, 2, 3], [4, 5, 6], [5, 7, 6], [0, 1, 4], [1, 5, 4], [2, 6, 3], [3, 6, 7], [0, 4, 2], [2, 4, 6],
     [1, 3, 5], [3, 7, 5]]
)  # fmt: skip


def box_mesh(lower, upper) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (8, 3) m and faces (12, 3) of an axis-aligned box, faces outward."""
    low, high = np.asarray(lower, float), np.asarray(upper, float)
    pick = np.array([[k & 1, k >> 1 & 1, k >> 2 & 1] for k in range(8)], bool)
    return np.where(pick, high, low), _BOX_FACES.copy()


def sphere_mesh(center, radius: float, around: int = 48) -> tuple[np.ndarray, np.ndarray]:
    """A sphere (m): rings of ``around`` vertices from the lowest to the highest."""
    angle = 2.0 * np.pi * np.arange(around) / around
    t = np.linspace(-np.pi / 2, np.pi / 2, around // 2 + 1)
    rings = [np.stack([c * np.cos(angle), c * np.sin(angle), np.full(around, s)], 1)
             for c, s in zip(np.cos(t), np.sin(t), strict=True)]  # fmt: skip
    k = np.arange(around)
    nxt = (k + 1) % around
    faces = []
    for a in around * np.arange(len(rings) - 1):
        b = a + around
        faces += [np.stack([a + k, a + nxt, b + nxt], 1), np.stack([a + k, b + nxt, b + k], 1)]
    return np.asarray(center, float) + radius * np.concatenate(rings), np.concatenate(faces)


def plane_mesh(point, normal, size: float) -> tuple[np.ndarray, np.ndarray]:
    """A square of side ``size`` (m) around ``point``."""
    n = np.asarray(normal, float) / np.linalg.norm(normal)
    a = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
    a /= np.linalg.norm(a)
    b = np.cross(n, a)
    corners = [(-a - b), (a - b), (a + b), (-a + b)]
    return np.asarray(point, float) + 0.5 * size * np.array(corners), np.array([[0, 1, 2], [0, 2, 3]])


def box_polygon(lower, upper) -> np.ndarray:
    """Corners (4, 2) m."""
    (x0, y0), (x1, y1) = lower, upper
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], float)


def disc_polygon(center, radius: float, around: int = 96) -> np.ndarray:
    """Corners (around, 2) m of a disc."""
    t = 2.0 * np.pi * np.arange(around) / around
    return np.asarray(center, float) + radius * np.stack([np.cos(t), np.sin(t)], axis=1)
