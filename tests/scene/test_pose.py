"""Rotations, spins and profiles, and their gradients against central differences."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from taichi_sim.scene.pose import rotation_matrix, rotation_vjp, spin, spin_vjp
from taichi_sim.scene.profiles import interpolate, is_profile
from taichi_sim.scene.schema import Profile

VECTORS = [
    np.zeros(3),
    np.array([1e-9, 0, 0]),
    np.array([0.02, -0.01, 0.0218]),  # just below the switch to the series
    np.array([0.02, -0.01, 0.0225]),  # and just above
    np.array([0.3, -1.2, 0.7]),
    np.array([0.0, np.pi, 0.0]),
    np.array([3.0, 4.0, -2.0]),
]


def _slope(function, at, step=1e-6):
    at = np.asarray(at, dtype=float)
    result = np.empty(at.shape)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += step
        down[index] -= step
        result[index] = (function(up) - function(down)) / (2 * step)
    return result


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_rotation_vector(vector):
    assert rotation_matrix(vector, 3) == pytest.approx(Rotation.from_rotvec(vector).as_matrix(), abs=1e-14)
    bar = np.random.default_rng(0).normal(size=(3, 3))
    slope = _slope(lambda r: float(np.sum(bar * rotation_matrix(r, 3))), vector)
    assert rotation_vjp(vector, bar, 3) == pytest.approx(slope, abs=1e-8)


def test_angle():
    assert rotation_matrix(np.pi / 2, 2) @ [1, 0] == pytest.approx([0, 1])
    bar = np.random.default_rng(0).normal(size=(2, 2))
    slope = _slope(lambda r: float(np.sum(bar * rotation_matrix(r, 2))), 0.7)
    assert rotation_vjp(0.7, bar, 2) == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("dim", [2, 3])
def test_spin(dim):
    rng = np.random.default_rng(1)
    arm, bar = rng.normal(size=(2, 5, dim))
    rate = rng.normal(size=() if dim == 2 else 3)
    if dim == 2:
        assert spin(2.0, np.array([[1.0, 0.0]])) == pytest.approx(np.array([[0.0, 2.0]]))
    rate_bar, arm_bar = spin_vjp(rate, arm, bar)
    assert rate_bar == pytest.approx(_slope(lambda r: float(np.sum(bar * spin(r, arm))), rate), abs=1e-8)
    assert arm_bar == pytest.approx(_slope(lambda a: float(np.sum(bar * spin(rate, a))), arm), abs=1e-8)


def test_profile():
    table = {"axis": "y", "points": [0.0, 1.0, 3.0], "values": [[0.0, 1.0], [2.0, 1.0], [2.0, 5.0]]}
    struct = Profile(**table)
    rest = np.array([[9.0, y] for y in (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0)])
    expected = np.array([[0, 1], [0, 1], [1, 1], [2, 1], [2, 3], [2, 5], [2, 5]], dtype=float)
    for profile in (table, struct):
        assert is_profile(profile)
        assert interpolate(profile, rest) == pytest.approx(expected)
    one = {"axis": "x", "points": [0.5], "values": [[1.0, 2.0]]}
    assert interpolate(one, rest) == pytest.approx(np.tile([1.0, 2.0], (7, 1)))
    assert not is_profile(np.zeros(2)) and not is_profile([0.0, 1.0]) and not is_profile({"axis": "x"})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"axis": "w"}, "axis of a profile"),
        ({"axis": "z"}, "in 2-D"),
        ({"points": [0.0, 0.0, 1.0]}, "must increase"),
        ({"points": [0.0, 1.0]}, "one vector a point"),
        ({"values": [[0.0], [1.0], [2.0]]}, "in 2-D"),
    ],
)
def test_profile_mistakes(change, said):
    table = {"axis": "y", "points": [0.0, 1.0, 3.0], "values": [[0.0, 1.0], [2.0, 1.0], [2.0, 5.0]], **change}
    with pytest.raises(ValueError, match=said):
        interpolate(table, np.zeros((2, 2)))
