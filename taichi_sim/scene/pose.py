"""Rotations and their derivatives: an angle in 2-D, a rotation vector (axis times angle) in 3-D."""

import numpy as np


def _cross_matrix(r: np.ndarray) -> np.ndarray:
    return np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])


def rotation_matrix(rotation: float | np.ndarray, dim: int) -> np.ndarray:
    """Rotation matrix (dim, dim) of an angle, rad, counterclockwise (2-D), or of a rotation vector (3,), rad (3-D).

    3-D: Rodrigues' formula, I + a K + b K² with a = sin θ/θ, b = (1 − cos θ)/θ².
    """
    if dim == 2:
        angle = float(np.asarray(rotation).reshape(()))
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, -s], [s, c]])
    r = np.asarray(rotation, dtype=float).reshape(3)
    a, b, _, _ = _coefficients(float(r @ r))
    K = _cross_matrix(r)
    return np.eye(3) + a * K + b * (K @ K)


def _coefficients(square: float) -> tuple[float, float, float, float]:
    """a, b of Rodrigues' formula and their derivatives with respect to θ, divided by θ, from θ²."""
    if square < 1e-3:
        s = square
        return (
            1 - s / 6 * (1 - s / 20 * (1 - s / 42)),
            0.5 - s / 24 * (1 - s / 30 * (1 - s / 56)),
            -1 / 3 + s / 30 * (1 - s / 28 * (1 - s / 54)),
            -1 / 12 + s / 180 * (1 - 3 * s / 112),
        )
    angle = np.sqrt(square)
    a, b = np.sin(angle) / angle, (1 - np.cos(angle)) / square
    return a, b, (np.cos(angle) - a) / square, (a - 2 * b) / square


def rotation_vector(matrix: np.ndarray) -> np.ndarray:
    """The rotation vector (3,) of a rotation matrix (3, 3), its angle at most π: by the largest part of the quaternion,
    so that no angle is special."""
    trace = float(np.trace(matrix))
    squares = np.array([trace, *(2 * np.diag(matrix) - trace)])  # 4 q² − 1
    odd = np.array([matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]])
    # rows of 4 q qᵀ
    products = np.empty((4, 4))
    products[0, 0], products[0, 1:], products[1:, 0] = squares[0] + 1, odd, odd
    products[1:, 1:] = matrix + matrix.T + (1 - trace) * np.eye(3)
    row = products[int(np.argmax(squares))]
    quaternion = row / np.linalg.norm(row) * (1.0 if row[0] >= 0 else -1.0)
    sine = float(np.linalg.norm(quaternion[1:]))
    if sine < 1e-150:
        return np.zeros(3)
    return 2 * np.arctan2(sine, quaternion[0]) / sine * quaternion[1:]


def rotation_vjp(rotation: float | np.ndarray, bar: np.ndarray, dim: int) -> np.ndarray:
    """Gradient with respect to ``rotation`` (() in 2-D, (3,) in 3-D) from ``bar`` (dim, dim) = dL/dR; smooth at 0."""
    if dim == 2:
        angle = float(np.asarray(rotation).reshape(()))
        c, s = np.cos(angle), np.sin(angle)
        return np.asarray(np.sum(bar * np.array([[-s, -c], [c, -s]])))
    r = np.asarray(rotation, dtype=float).reshape(3)
    a, b, a_slope, b_slope = _coefficients(float(r @ r))
    K = _cross_matrix(r)
    result = np.empty(3)
    for axis in range(3):
        E = _cross_matrix(np.eye(3)[axis])
        slope = a * E + b * (E @ K + K @ E) + r[axis] * (a_slope * K + b_slope * (K @ K))
        result[axis] = np.sum(bar * slope)
    return result


def spin(angular_velocity: float | np.ndarray, arm: np.ndarray) -> np.ndarray:
    """Velocity (n, dim) of points at ``arm`` (n, dim) from the centre: ω × r."""
    if arm.shape[1] == 2:
        return float(np.asarray(angular_velocity).reshape(())) * np.column_stack([-arm[:, 1], arm[:, 0]])
    return np.cross(np.asarray(angular_velocity, dtype=float).reshape(3), arm)


def spin_vjp(angular_velocity: float | np.ndarray, arm: np.ndarray, bar: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradients with respect to ω (() or (3,)) and the arm (n, dim) from ``bar`` (n, dim), that of ω × r."""
    if arm.shape[1] == 2:
        rate = float(np.asarray(angular_velocity).reshape(()))
        turned = np.column_stack([-arm[:, 1], arm[:, 0]])
        return np.asarray(np.sum(turned * bar)), rate * np.column_stack([bar[:, 1], -bar[:, 0]])
    rate = np.asarray(angular_velocity, dtype=float).reshape(3)
    return np.cross(arm, bar).sum(axis=0), np.cross(bar, rate)
