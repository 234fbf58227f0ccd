"""Attitudes on the host, with adjoints: an angle (…, 1) in 2-D, a quaternion w x y z (…, 4) in 3-D.

Any number of leading axes. Quaternions count as their direction: their length does not matter.
"""

import numpy as np


def unturned(dim: int) -> np.ndarray:
    """The attitude of the world."""
    return np.zeros(1) if dim == 2 else np.array([1.0, 0.0, 0.0, 0.0])


def attitude(rotation: np.ndarray, dim: int) -> np.ndarray:
    """Attitude of an angle () or (1,), or of rotation vectors (…, 3), rad."""
    if dim == 2:
        return np.reshape(rotation, 1).astype(float)
    half = 0.5 * np.asarray(rotation, float)
    angle = np.linalg.norm(half, axis=-1, keepdims=True)
    return np.concatenate([np.cos(angle), np.sinc(angle / np.pi) * half], axis=-1)


def attitude_vjp(rotation: np.ndarray, bar: np.ndarray, dim: int) -> np.ndarray:
    """Gradient by ``rotation`` (one) from that by :func:`attitude`."""
    if dim == 2:
        return np.reshape(bar, np.shape(rotation))
    half = 0.5 * np.asarray(rotation, float)
    squared = float(half @ half)
    sinc = float(np.sinc(np.sqrt(squared) / np.pi))
    slope = -1 / 3 + squared / 30 if squared < 1e-6 else (np.cos(np.sqrt(squared)) - sinc) / squared
    return 0.5 * (sinc * bar[1:] + (slope * (half @ bar[1:]) - sinc * bar[0]) * half)


def inverse(q: np.ndarray, dim: int) -> np.ndarray:
    """Inverse of unit attitudes; linear, and its own adjoint."""
    return -q if dim == 2 else q * np.array([1.0, -1.0, -1.0, -1.0])


def combine(p: np.ndarray, q: np.ndarray, dim: int) -> np.ndarray:
    """Attitudes ``q``, seen from the attitudes ``p``."""
    if dim == 2:
        return p + q
    u, v = p[..., 1:], q[..., 1:]
    scalar = p[..., 0] * q[..., 0] - np.sum(u * v, axis=-1)
    return np.concatenate([scalar[..., None], p[..., :1] * v + q[..., :1] * u + np.cross(u, v)], axis=-1)


def combine_vjp(p: np.ndarray, q: np.ndarray, bar: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Gradient by ``p`` and ``q`` from that by :func:`combine`. (Multiplication by a unit quaternion turns; its
    transpose is multiplication by the inverse.)"""
    if dim == 2:
        return bar, bar
    return combine(bar, inverse(q, 3), 3), combine(inverse(p, 3), bar, 3)


def matrices(attitudes: np.ndarray, dim: int) -> np.ndarray:
    """Rotation matrices (…, dim, dim)."""
    if dim == 2:
        c, s = np.cos(attitudes[..., 0]), np.sin(attitudes[..., 0])
        return np.stack([np.stack([c, -s], axis=-1), np.stack([s, c], axis=-1)], axis=-2)
    w, v = attitudes[..., 0, None, None], attitudes[..., 1:]
    s = 2.0 / np.sum(attitudes**2, axis=-1)[..., None, None]
    return np.eye(3) + s * (
        v[..., :, None] * v[..., None, :] + w * skew(v) - np.sum(v**2, axis=-1)[..., None, None] * np.eye(3)
    )


def matrices_vjp(attitudes: np.ndarray, bar: np.ndarray, dim: int) -> np.ndarray:
    """Gradient by ``attitudes`` from that by :func:`matrices`, (…, dim, dim)."""
    if dim == 2:
        c, s = np.cos(attitudes[..., 0]), np.sin(attitudes[..., 0])
        slope = c * (bar[..., 1, 0] - bar[..., 0, 1]) - s * (bar[..., 0, 0] + bar[..., 1, 1])
        return slope[..., None]
    w, v = attitudes[..., 0], attitudes[..., 1:]
    s = 2.0 / np.sum(attitudes**2, axis=-1)
    trace = np.einsum("...ii->...", bar)
    twist = skew_vjp(bar)
    both = np.einsum("...ij,...j->...i", bar + np.swapaxes(bar, -1, -2), v)
    inner = 0.5 * np.sum(v * both, axis=-1) + w * np.sum(v * twist, axis=-1) - np.sum(v**2, axis=-1) * trace
    v_bar = s[..., None] * (w[..., None] * twist + both - 2.0 * trace[..., None] * v)
    out = np.concatenate([(s * np.sum(v * twist, axis=-1))[..., None], v_bar], axis=-1)
    return out - (s**2 * inner)[..., None] * attitudes


def skew(v: np.ndarray) -> np.ndarray:
    """Matrices (…, 3, 3) of the cross product with vectors (…, 3)."""
    zero = np.zeros(v.shape[:-1])
    x, y, z = np.moveaxis(v, -1, 0)
    return np.stack([np.stack(row, axis=-1) for row in ((zero, -z, y), (z, zero, -x), (-y, x, zero))], axis=-2)


def skew_vjp(bar: np.ndarray) -> np.ndarray:
    """Gradient by the vectors."""
    odd = bar - np.swapaxes(bar, -1, -2)
    return np.stack([odd[..., 2, 1], odd[..., 0, 2], odd[..., 1, 0]], axis=-1)


def spin_matrices(spin: np.ndarray, dim: int) -> np.ndarray:
    """Affine velocities (…, dim, dim) of angular velocities (…, 1) or (…, 3)."""
    if dim == 2:
        return spin[..., None] * np.array([[0.0, -1.0], [1.0, 0.0]])
    return skew(spin)


def spin_matrices_vjp(bar: np.ndarray, dim: int) -> np.ndarray:
    """Gradient by the angular velocities."""
    return (bar[..., 1, 0] - bar[..., 0, 1])[..., None] if dim == 2 else skew_vjp(bar)


def lift(moments: np.ndarray) -> np.ndarray:
    """Inertia matrices (…, 3, 3) of moments (…, 1) (about z; the others are 0) or (…, 6) (xx yy zz xy xz yz)."""
    out = np.zeros((*moments.shape[:-1], 3, 3))
    if moments.shape[-1] == 1:
        out[..., 2, 2] = moments[..., 0]
        return out
    for column, (i, j) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))):
        out[..., i, j] = out[..., j, i] = moments[..., column]
    return out


def lift_vjp(bar: np.ndarray, count: int) -> np.ndarray:
    """Gradient by the moments, (…, count)."""
    if count == 1:
        return bar[..., 2, 2][..., None]
    both = bar + np.swapaxes(bar, -1, -2)
    diagonal = [bar[..., i, i] for i in range(3)]
    return np.stack([*diagonal, both[..., 0, 1], both[..., 0, 2], both[..., 1, 2]], axis=-1)
