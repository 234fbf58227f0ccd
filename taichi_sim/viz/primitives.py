"""Surfaces of simple shapes, for obstacles: triangle meshes in 3-D, polygons in 2-D. Pure NumPy."""

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


def turned_mesh(profile, center, axis: int = 2, around: int = 48) -> tuple[np.ndarray, np.ndarray]:
    """A profile [(radius, height), …] (m) turned about an axis through ``center``, from bottom to top."""
    profile = np.asarray(profile, float)
    angle = 2.0 * np.pi * np.arange(around) / around
    rings = [np.stack([r * np.cos(angle), r * np.sin(angle), np.full(around, h)], axis=1) for r, h in profile]
    vertices = np.roll(np.concatenate(rings), (axis + 1) % 3, axis=1) + np.asarray(center, float)
    k = np.arange(around)
    nxt = (k + 1) % around
    faces = []
    for ring in range(len(profile) - 1):
        a, b = ring * around, (ring + 1) * around
        faces.append(np.stack([a + k, a + nxt, b + nxt], axis=1))
        faces.append(np.stack([a + k, b + nxt, b + k], axis=1))
    return vertices, np.concatenate(faces)


def sphere_mesh(center, radius: float, around: int = 48) -> tuple[np.ndarray, np.ndarray]:
    """A sphere (m)."""
    t = np.linspace(-np.pi / 2, np.pi / 2, around // 2 + 1)
    return turned_mesh(np.stack([radius * np.cos(t), radius * np.sin(t)], axis=1), center, around=around)


def cylinder_mesh(center, radius: float, height: float, axis: int = 2, around: int = 64):
    """A cylinder (m), ``center`` in the middle of its height."""
    h = height / 2
    return turned_mesh([(0, -h), (radius, -h), (radius, h), (0, h)], center, axis, around)


def capsule_mesh(center, radius: float, height: float, axis: int = 2, around: int = 48):
    """A capsule (m); ``height`` between the centres of its two half balls."""
    t = np.linspace(0, np.pi / 2, around // 4 + 1)
    cap = np.stack([radius * np.cos(t), radius * np.sin(t) + height / 2], axis=1)
    return turned_mesh(np.concatenate([cap[::-1] * (1, -1), cap]), center, axis, around)


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


def capsule_polygon(start, end, radius: float, around: int = 96) -> np.ndarray:
    """Outline (around + 2, 2) m of all points within ``radius`` of the segment ``start``..``end``."""
    a, b = np.asarray(start, float), np.asarray(end, float)
    turn = np.arctan2(*(b - a)[::-1])
    t = np.linspace(-np.pi / 2, np.pi / 2, around // 2 + 1) + turn
    arc = radius * np.stack([np.cos(t), np.sin(t)], axis=1)
    return np.concatenate([b + arc, a - arc])


def half_plane_polygon(point, normal, lower, upper) -> np.ndarray:
    """What lies behind the line through ``point`` with ``normal`` (outward), cut to the box ``lower``..``upper`` (m).

    (k, 2) corners; k is 0 when nothing of the box lies behind it.
    """
    p, n = np.asarray(point, float), np.asarray(normal, float)
    corners = box_polygon(lower, upper)
    side = (corners - p) @ n
    out = []
    for k in range(4):
        m = (k + 1) % 4
        if side[k] <= 0:
            out.append(corners[k])
        if (side[k] < 0) != (side[m] < 0) and side[k] != side[m]:
            out.append(corners[k] + (corners[m] - corners[k]) * side[k] / (side[k] - side[m]))
    return np.array(out).reshape(-1, 2)


def placed(vertices: np.ndarray, position, rotation, pivot) -> np.ndarray:
    """Vertices (n, dim) turned about ``pivot`` and moved by ``position`` (m).

    ``rotation``: an angle (rad) in 2-D, a rotation vector (axis × angle, rad) in 3-D.
    """
    vertices = np.asarray(vertices, float)
    pivot = np.asarray(pivot, float)
    if vertices.shape[1] == 2:
        c, s = np.cos(float(rotation)), np.sin(float(rotation))
        matrix = np.array([[c, -s], [s, c]])
    else:
        w = np.asarray(rotation, float)
        angle = float(np.linalg.norm(w))
        x, y, z = w / angle if angle > 0 else np.zeros(3)
        k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        matrix = np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * (k @ k)
    return (vertices - pivot) @ matrix.T + pivot + np.asarray(position, float)
