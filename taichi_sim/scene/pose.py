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
