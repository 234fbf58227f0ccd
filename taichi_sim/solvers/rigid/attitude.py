"""Attitudes on the host: an angle (1,) in 2-D, a quaternion w x y z (4,) in 3-D, of any length."""

import numpy as np


def attitude_matrix(dim: int, attitude: np.ndarray) -> np.ndarray:
    """Rotation matrix (dim, dim)."""
    if dim == 2:
        c, s = np.cos(attitude[0]), np.sin(attitude[0])
        return np.array([[c, -s], [s, c]])
    w, x, y, z = np.asarray(attitude) / np.linalg.norm(attitude)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def combine(dim: int, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Attitude ``q``, seen from the attitude ``p``."""
    if dim == 2:
        return np.asarray(p) + np.asarray(q)
    u, v = np.asarray(p)[1:], np.asarray(q)[1:]
    return np.array([p[0] * q[0] - u @ v, *(p[0] * v + q[0] * u + np.cross(u, v))])


def relative_attitude(dim: int, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Attitude that leads from ``p`` to ``q``: ``q = combine(p, result)``; of unit length."""
    if dim == 2:
        return np.asarray(q) - np.asarray(p)
    out = combine(3, np.asarray(p) * [1.0, -1.0, -1.0, -1.0], q)
    return out / np.linalg.norm(out)


def quaternion(vector: np.ndarray) -> np.ndarray:
    """Quaternion of a rotation vector (3,), rad."""
    angle = np.linalg.norm(vector)
    return np.array([np.cos(0.5 * angle), *(0.5 * np.sinc(0.5 * angle / np.pi) * np.asarray(vector))])
