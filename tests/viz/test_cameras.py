"""Cameras frame what they are asked to; orbits turn the way they say."""

import numpy as np
import pytest

from taichi_sim.viz.camera import Camera2D, Camera3D, Orbit, view_bounds


def projected(camera: Camera3D, points: np.ndarray, aspect: float) -> np.ndarray:
    """Points in the picture, -1..1 across and along."""
    right, up, forward = camera.basis()
    q = points - np.asarray(camera.position)
    half = np.tan(np.radians(camera.fov) / 2) * (q @ forward)
    return np.stack([q @ right / (half * aspect), q @ up / half], axis=1)


@pytest.mark.parametrize(("azimuth", "elevation"), [(-60, 22), (0, 0), (130, 60), (10, -30), (0, 89)])
@pytest.mark.parametrize("aspect", [0.6, 16 / 9])
def test_fit_sees_all_corners_and_wastes_little(azimuth, elevation, aspect):
    low, high = np.array([-1.0, 2.0, 0.0]), np.array([0.5, 2.2, 3.0])
    camera = Camera3D.fit(low, high, azimuth, elevation, aspect=aspect)
    corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    seen = np.abs(projected(camera, corners, aspect)).max()
    assert 0.85 < seen <= 0.921


def test_orbit_there_and_back():
    orbit = Orbit((0.1, 0.2, 0.3), 2.0, 30.0, 20.0)
    again = Orbit.of(orbit.camera())
    assert (again.distance, again.azimuth, again.elevation) == pytest.approx((2.0, 30.0, 20.0))
    assert orbit.turned(170.0, 100.0).azimuth == pytest.approx(-160.0)
    assert orbit.turned(0.0, 100.0).elevation == 89.0
    assert orbit.zoomed(2.0).distance == pytest.approx(1.0)
    front = Orbit((0, 0, 0), 1.0, -90.0, 0.0).camera()  # from -y: x to the right, z up
    right, up, _ = front.basis()
    assert right == pytest.approx([1, 0, 0]) and up == pytest.approx([0, 0, 1])
    moved = Orbit((0, 0, 0), 1.0, -90.0, 0.0).panned(0.5, 0.0)
    assert moved.target[0] > 0 and moved.target[1:] == pytest.approx((0, 0))


def test_looking_straight_down_is_defined():
    right, up, forward = Camera3D((0, 0, 2), (0, 0, 0)).basis()
    assert forward == pytest.approx([0, 0, -1])
    assert abs(right @ up) < 1e-12 and np.linalg.norm(right) == pytest.approx(1)


def test_flat_fit_keeps_margin_and_room_for_the_caption():
    camera = Camera2D.fit((0, 0), (2, 1), aspect=4 / 3, margin=0.05, head=0.1)
    top, bottom = camera.center[1] + camera.height / 2, camera.center[1] - camera.height / 2
    assert top - 1.0 >= 0.15 * camera.height - 1e-9 and -bottom >= 0.05 * camera.height - 1e-9
    half = camera.height * 4 / 3 / 2
    assert camera.center[0] - half <= -0.05 * camera.height + 1e-9


def test_view_bounds_follow_the_rollout_within_the_walls():
    positions = np.array([[[0.2, 0.2, 0.3]], [[0.6, 0.3, np.nan]], [[0.6, 0.4, 0.5]]])
    low, high = view_bounds(positions, (0, 0, 0), (1, 1, 1))
    assert low[2] == 0.0 and low[0] == pytest.approx(0.2 - 0.06) and high[0] == pytest.approx(0.66)
    with pytest.raises(ValueError, match="no finite"):
        view_bounds(np.full((2, 3), np.nan))


def test_bounds_that_are_none_are_refused():
    for low, high in (((0, 0), (1, 1)), ((0, 0, 0), (1, 1, -1)), ((0, 0, np.nan), (1, 1, 1))):
        with pytest.raises(ValueError, match="bounds"):
            Camera3D.fit(low, high)
    with pytest.raises(ValueError, match="fov"):
        Camera3D((0, 0, 1), (0, 0, 0), fov=0).basis()
