"""Pictures show what is there, where it is, and are the same bytes every time."""

import math
import time

import numpy as np
import pytest
from surfaces import box_mesh, box_polygon, disc_polygon, plane_mesh, sphere_mesh

from taichi_sim import runtime
from taichi_sim.viz.camera import Camera2D, Camera3D, Orbit
from taichi_sim.viz.picture import COOL, WARM, Marker, Mesh, Picture, Polygon
from taichi_sim.viz.renderer import Renderer, nice

RED, GREEN = (0.85, 0.1, 0.1), (0.1, 0.7, 0.1)
FRONT = Camera3D((0.0, -5.0, 0.0), (0.0, 0.0, 0.0), fov=40.0)  # x right, z up


def bare(points, **more) -> Picture:
    """A 3-D picture without floor and text, seen from the front."""
    more = {"camera": FRONT, "floor_visible": False, "colors": RED, "radius": 0.1, **more}
    return Picture(3, np.asarray(points, float).reshape(-1, 3), **more)


def render(picture: Picture, width: int = 240, height: int = 180, samples: int = 2) -> np.ndarray:
    with Renderer(width, height, samples) as renderer:
        return renderer.render(picture).astype(int)


def reddish(image: np.ndarray) -> np.ndarray:
    return image[..., 0] > image[..., 1] + 40


def greenish(image: np.ndarray) -> np.ndarray:
    return image[..., 1] > image[..., 0] + 40


def pixel(x: float, depth: float, size: int, focal_of: int = 180, fov: float = 40.0) -> float:
    return size / 2 + focal_of / (2 * math.tan(math.radians(fov) / 2)) * x / depth


def block(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform((0.2, 0.3, 0.0), (0.8, 0.7, 0.4), (n, 3))


def test_a_sphere_is_where_perspective_puts_it_and_as_large(f32):
    x, z, r = 0.8, -0.5, 0.3
    image = render(bare([[x, 0, z]], radius=r), samples=4)
    rows, cols = np.nonzero(reddish(image))
    focal = 90 / math.tan(math.radians(20))
    # outline of a sphere in perspective: an ellipse; its extreme columns
    zz = 25 - r * r
    left, right = ((x * 5 + s * r * math.sqrt(x * x + zz)) / zz * focal + 120 for s in (-1, 1))
    assert cols.min() == pytest.approx(left, abs=1.5) and cols.max() + 1 == pytest.approx(right, abs=1.5)
    assert rows.mean() == pytest.approx(90 - focal * z / 5, abs=2.0)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_nearer_one_is_seen_whatever_the_order(f32, order):
    points, colors = np.array([[0, -1, 0], [0, 1, 0]])[list(order)], np.array([RED, GREEN])[list(order)]
    image = render(bare(points, colors=colors, radius=0.5))
    assert reddish(image)[90, 120] and not greenish(image).any()


def test_meshes_hide_and_are_hidden_and_cut_into_particles(f32):
    vertices, faces = box_mesh((-0.5, -0.2, -0.5), (0.5, 0.2, 0.5))
    mesh = Mesh(vertices, faces, GREEN)
    behind, before = bare([[0, 1, 0]], meshes=[mesh]), bare([[0, -1, 0]], meshes=[mesh])
    assert not reddish(render(behind)).any()
    image = render(before)
    assert reddish(image)[90, 120] and greenish(image).sum() > 1000
    rows, cols = np.nonzero(greenish(render(bare(np.zeros((0, 3)), obstacles=[mesh]))))
    assert cols.min() == pytest.approx(pixel(-0.5, 4.8, 240), abs=1.5)
    assert rows.min() == pytest.approx(180 - pixel(0.5, 4.8, 180), abs=1.5)
    half = render(bare([[0, -0.2, 0]], meshes=[mesh], radius=0.3))  # half of the ball sticks out of the front
    assert reddish(half).sum() == pytest.approx(math.pi * (0.3 * 90 / math.tan(math.radians(20)) / 4.8) ** 2, rel=0.05)


def test_a_plane_that_passes_under_the_camera_is_drawn_to_the_edge(f32):
    vertices, faces = plane_mesh((0, 0, -1), (0, 0, 1), 40.0)
    image = render(bare(np.zeros((0, 3)), meshes=[(vertices, faces, GREEN)]))
    assert greenish(image)[-1].all() and greenish(image)[100].all() and not greenish(image)[80].any()


def test_shadow_and_occlusion_darken_the_floor_where_they_should(f32):
    camera = Camera3D((0.0, -0.01, 6.0), (0.0, 0.0, 0.0))  # from above: x right, y up
    bounds = {"lower": (-1, -1, 0), "upper": (1, 1, 1), "camera": camera, "floor_visible": True}
    empty = render(Picture(3, np.zeros((0, 3)), **bounds))
    ball = Picture(3, np.array([[0.0, 0.0, 0.6]]), colors=RED, radius=0.25, **bounds)
    image = render(ball)
    share = image.sum(axis=2) / empty.sum(axis=2)
    dark = (share < 0.8) & ~reddish(image)
    rows, _ = np.nonzero(dark)
    assert dark.sum() > 100
    focal = 90 / math.tan(math.radians(17.5))
    assert rows.mean() < 90 - 0.15 * focal / 6  # the light travels towards +y, up in this picture
    assert abs(share[150:170, 20:40].mean() - 1.0) < 0.02  # far away nothing changes
    box = Picture(3, np.zeros((0, 3)), obstacles=[box_mesh((-0.3, -0.3, 0), (0.3, 0.3, 0.8))], **bounds)
    share = render(box).sum(axis=2) / empty.sum(axis=2)
    front = round(90 + 0.34 * focal / 6)  # just before the box, on the side of the light
    assert share[front, 110:130].mean() < 0.97 < share[front + 40, 110:130].mean()


def test_activation_colours_only_what_is_driven(f32):
    points = [[-1, 0, 0], [0, 0, 0], [1, 0, 0]]
    image = render(bare(points, colors=(0.5, 0.5, 0.5), radius=0.3, activation=np.array([1.0, np.nan, -1.0])))
    centre = [image[90, round(pixel(x, 4.7, 240))] for x in (-1, 0, 1)]
    assert centre[0][0] > centre[0][2] + 60  # warm
    assert np.ptp(centre[1]) < 25  # untouched grey
    assert centre[2][2] > centre[2][0] + 60  # cool
    flat = Picture(
        2, [[0.3, 0.5], [0.7, 0.5]], radius=0.1, activation=np.array([1.0, -1.0]), lower=(0, 0), upper=(1, 1)
    )
    image = render(flat, 200, 200)
    assert np.abs(image[100, 60] / 255 - WARM).max() < 0.12 or np.abs(image[100, 64] / 255 - WARM).max() < 0.12
    assert np.abs(image[100, 140] / 255 - COOL).max() < 0.12 or np.abs(image[100, 136] / 255 - COOL).max() < 0.12


def scenes() -> list[Picture]:
    points = block(3000)
    activation = np.where(points[:, 0] > 0.5, np.sin(9 * points[:, 1]), np.nan)
    walls = {"lower": (0, 0, 0), "upper": (1, 1, 0.6)}
    solid = Picture(
        3, points, RED, 0.012, activation, obstacles=[sphere_mesh((0.85, 0.2, 0.1), 0.1)], caption="a\nb", **walls
    )
    flat = Picture(
        2,
        points[:, :2],
        GREEN,
        0.01,
        activation,
        obstacles=[(disc_polygon((0.2, 0.2), 0.1),)],
        lower=(0, 0),
        upper=(1, 1),
    )
    return [solid, flat]  # fmt: skip


def test_pictures_are_the_same_bytes_in_every_runtime():
    """f64 on one thread, f32 on two, there twice, by a renderer that outlives the restart between."""
    with Renderer(320, 240) as renderer:
        seen = []
        for precision, threads in (("f64", 1), ("f32", 2), ("f32", 2)):
            runtime.start(precision, threads=threads)
            seen.append([renderer.render(picture).tobytes() for picture in scenes()])
    assert all(s == seen[0] for s in seen)
    assert seen[0][0] != seen[0][1]


def test_the_order_of_particles_does_not_matter(f32):
    points = block(2000)
    assert (render(bare(points)) == render(bare(points[::-1]))).all()


def test_flat_pictures_have_y_up_and_true_areas(f32):
    camera = Camera2D((0.5, 0.5), 1.0)
    size = {"lower": (0, 0), "upper": (1, 1), "camera": camera}
    empty = render(Picture(2, np.zeros((0, 2)), **size), 200, 200)
    square = Polygon(box_polygon((0.1, 0.6), (0.3, 0.9)), GREEN)
    image = render(Picture(2, np.zeros((0, 2)), obstacles=[square], **size), 200, 200)
    rows, cols = np.nonzero(greenish(image))
    assert (rows.min(), rows.max(), cols.min(), cols.max()) == pytest.approx((20, 79, 20, 59), abs=1)
    ring = np.concatenate([disc_polygon((0.5, 0.3), 0.2), disc_polygon((0.5, 0.3), 0.1)[::-1]])  # not convex
    image = render(Picture(2, np.zeros((0, 2)), obstacles=[(ring, GREEN)], **size), 200, 200)
    assert greenish(image).sum() == pytest.approx(math.pi * (40**2 - 20**2), rel=0.06)
    assert not greenish(image)[140, 100]
    axis = (np.arange(40) + 0.5) / 100
    block_ = np.stack(np.meshgrid(axis + 0.3, axis + 0.1), axis=-1).reshape(-1, 2)  # 0.4 x 0.4 m, spacing 0.01
    image = render(Picture(2, block_, RED, 0.005, **size), 200, 200)
    rows, cols = np.nonzero(reddish(image))
    assert len(rows) == pytest.approx(80 * 80, rel=0.06)  # filled, no holes, hardly larger than the body
    assert rows.mean() == pytest.approx(200 - 60, abs=1) and cols.mean() == pytest.approx(100, abs=1)
    assert (image[5:15, 5:15] == empty[5:15, 5:15]).all()


def test_obstacles_that_move_are_drawn_again(f32):
    with Renderer(120, 120) as renderer:
        size = {"lower": (0, 0), "upper": (1, 1)}
        images = [
            renderer.render(Picture(2, np.zeros((0, 2)), obstacles=[(disc_polygon((x, 0.5), 0.1), GREEN)], **size))
            for x in (0.3, 0.7, 0.3)
        ]
    assert (images[0] != images[1]).any() and (images[0] == images[2]).all()


def test_markers_lines_captions_and_empty_scenes(f32):
    for dim in (2, 3):
        size = {"lower": (0,) * dim, "upper": (1,) * dim}
        empty = render(Picture(dim, np.zeros((0, dim)), **size))
        for more in (
            {"markers": [Marker((0.5,) * dim, 0.05)]},
            {"lines": [(np.linspace([0.4] * dim, [0.6] * dim, 2), 0.02, (0, 0, 0))]},
            {"caption": "crawler\n" + "a very long line " * 40},
        ):
            assert (render(Picture(dim, np.zeros((0, dim)), **size, **more)) != empty).any(axis=2).sum() > 20, more


def test_particles_that_are_not_finite_are_left_out(f32):
    points = np.array([[0.0, 0, 0], [np.nan, 0, 0], [np.inf, 0, 0]])
    assert (render(bare(points)) == render(bare(points[:1]))).all()
    flat = {"lower": (0, 0), "upper": (1, 1), "radius": 0.1}
    assert (render(Picture(2, [[0.5, 0.5], [np.nan, 0.1]], **flat)) == render(Picture(2, [[0.5, 0.5]], **flat))).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dim": 4}, "dim"),
        ({"points": np.zeros((5, 2))}, r"points must have shape \(particles, 3\)"),
        ({"colors": np.zeros((4, 3))}, "colors"),
        ({"activation": np.zeros(4)}, "activation"),
        ({"radius": 0.0}, "radius"),
        ({"radius": np.ones(4)}, "radius"),
        ({"lower": (0, 0)}, "lower"),
        ({"camera": Camera2D((0, 0), 1)}, "Camera3D"),
        ({"camera": Camera3D((0, 0, 0), (0, 0, 0))}, "two different points"),
        ({"meshes": [(np.zeros((3, 3)), np.array([[0, 1, 3]]), RED)]}, "mesh 0"),
        ({"meshes": [(np.full((3, 3), np.nan), np.array([[0, 1, 2]]), RED)]}, "finite"),
        ({"obstacles": [(np.zeros((4, 2)), GREEN)]}, "mesh 0"),
    ],
)
def test_what_does_not_fit_is_named(f32, change, words):
    with pytest.raises(ValueError, match=words):
        render(Picture(**{"dim": 3, "points": np.zeros((5, 3)), **change}))


def test_sizes_are_checked():
    for width, height, samples in ((0, 10, 1), (64, 1e9, 1), (64, 64, 9), (64.5, 64, 1)):
        with pytest.raises(ValueError, match="whole number between"):
            Renderer(width, height, samples)
    assert [nice(x) for x in (0.13, 0.2, 0.99, 7.0)] == pytest.approx([0.1, 0.2, 0.5, 5.0])


def test_thirty_thousand_particles_at_five_pictures_a_second_on_two_cores(f32):
    points = block(30_000)
    picture = Picture(3, points, RED, 0.006, np.sin(9 * points[:, 0]), lower=(0, 0, 0), upper=(1, 1, 0.6))
    picture.camera = Orbit.fit((0.1, 0.2, 0), (0.9, 0.8, 0.4)).camera()  # the body fills the picture
    with Renderer(640, 480) as renderer:
        renderer.render(picture)
        used = []
        for _ in range(5):
            start = time.process_time()
            renderer.render(picture)
            used.append(time.process_time() - start)
    assert sorted(used)[1] < 2 * 0.2  # CPU seconds of both cores
