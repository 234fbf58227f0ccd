"""Attitudes as the solver stores them (an angle in 2-D, a quaternion w x y z in 3-D), on the host, with adjoints."""

import numpy as np

from taichi_sim.scene.pose import rotation_vjp


def attitude(rotation: np.ndarray, dim: int) -> np.ndarray:
    """(1,) or (4,) from an angle or a rotation vector (3,)."""
    if dim == 2:
        return np.reshape(rotation, 1).astype(float)
    half = 0.5 * np.asarray(rotation, float)
    angle = float(np.linalg.norm(half))
    return np.array([np.cos(angle), *(np.sinc(angle / np.pi) * half)])


def attitude_vjp(rotation: np.ndarray, bar: np.ndarray, dim: int) -> np.ndarray:
    """Gradient by ``rotation`` from that by :func:`attitude`."""
    if dim == 2:
        return np.reshape(bar, np.shape(rotation))
    half = 0.5 * np.asarray(rotation, float)
    squared = float(half @ half)
    sinc = float(np.sinc(np.sqrt(squared) / np.pi))
    slope = -1 / 3 + squared / 30 if squared < 1e-6 else (np.cos(np.sqrt(squared)) - sinc) / squared
    return 0.5 * (sinc * bar[1:] + (slope * (half @ bar[1:]) - sinc * bar[0]) * half)


def combine(dim: int, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Attitudes ``q`` (n, 1 or 4), seen from the attitudes ``p``."""
    if dim == 2:
        return p + q
    u, v = p[:, 1:], q[:, 1:]
    scalar = p[:, 0] * q[:, 0] - np.einsum("ni,ni->n", u, v)
    return np.concatenate([scalar[:, None], p[:, :1] * v + q[:, :1] * u + np.cross(u, v)], axis=1)


def matrices(attitudes: np.ndarray, dim: int) -> np.ndarray:
    """Rotation matrices (n, dim, dim) of attitudes (n, 1) or (n, 4) (quaternions of any length)."""
    if dim == 2:
        c, s = np.cos(attitudes[:, 0]), np.sin(attitudes[:, 0])
        return np.stack([np.stack([c, -s], axis=1), np.stack([s, c], axis=1)], axis=1)
    w, v = attitudes[:, 0], attitudes[:, 1:]
    s = 2.0 / np.sum(attitudes**2, axis=1)
    inner = v[:, :, None] * v[:, None, :] + w[:, None, None] * _skew(v)
    return np.eye(3) + s[:, None, None] * (inner - np.sum(v**2, axis=1)[:, None, None] * np.eye(3))


def matrices_vjp(attitudes: np.ndarray, bar: np.ndarray, dim: int) -> np.ndarray:
    """Gradient by ``attitudes`` from that by :func:`matrices`, (n, dim, dim)."""
    if dim == 2:
        return np.stack([rotation_vjp(a[0], b, 2).reshape(1) for a, b in zip(attitudes, bar, strict=True)])
    w, v = attitudes[:, 0], attitudes[:, 1:]
    s = 2.0 / np.sum(attitudes**2, axis=1)
    trace = np.einsum("nii->n", bar)
    twist = _axial(bar)
    inner = np.einsum("ni,nij,nj->n", v, bar, v) + w * np.einsum("ni,ni->n", v, twist) - np.sum(v**2, axis=1) * trace
    both = np.einsum("nij,nj->ni", bar + bar.transpose(0, 2, 1), v)
    v_bar = s[:, None] * (w[:, None] * twist + both - 2.0 * trace[:, None] * v)
    out = np.concatenate([(s * np.einsum("ni,ni->n", v, twist))[:, None], v_bar], axis=1)
    return out - (s**2 * inner)[:, None] * attitudes


def _skew(v: np.ndarray) -> np.ndarray:
    zero = np.zeros(len(v))
    x, y, z = v.T
    return np.stack([np.stack(row, axis=1) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))], axis=1)


def _axial(bar: np.ndarray) -> np.ndarray:
    """Adjoint of :func:`_skew`."""
    return np.stack([bar[:, 2, 1] - bar[:, 1, 2], bar[:, 0, 2] - bar[:, 2, 0], bar[:, 1, 0] - bar[:, 0, 1]], axis=1)


def spin_matrices(spin: np.ndarray, dim: int) -> np.ndarray:
    """Affine velocities (n, dim, dim) of angular velocities (n, 1) or (n, 3)."""
    if dim == 2:
        return spin[:, :, None] * np.array([[0.0, -1.0], [1.0, 0.0]])
    return _skew(spin)


def spin_matrices_vjp(bar: np.ndarray, dim: int) -> np.ndarray:
    """Gradient by the angular velocities."""
    return (bar[:, 1, 0] - bar[:, 0, 1])[:, None] if dim == 2 else _axial(bar)


def lift(moments: np.ndarray) -> np.ndarray:
    """Inertia matrices (n, 3, 3) of moments (n, 1) (about z; the others are 0) or (n, 6) (xx yy zz xy xz yz)."""
    out = np.zeros((len(moments), 3, 3))
    if moments.shape[1] == 1:
        out[:, 2, 2] = moments[:, 0]
        return out
    for column, (i, j) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))):
        out[:, i, j] = out[:, j, i] = moments[:, column]
    return out


def lift_vjp(bar: np.ndarray, count: int) -> np.ndarray:
    """Gradient by the moments, (n, count)."""
    if count == 1:
        return bar[:, 2, 2][:, None]
    both = bar + bar.transpose(0, 2, 1)
    diagonal = [bar[:, i, i] for i in range(3)]
    return np.stack([*diagonal, both[:, 0, 1], both[:, 0, 2], both[:, 1, 2]], axis=1)
