"""Every shape: volume, centre, inside, distance and outline agree with each other and with exact values."""

import numpy as np
import pytest

from taichi_sim.core.errors import SceneError
from taichi_sim.scene.shapes import Shape, check_shape, resolve_shape, shapes
from taichi_sim.scene.surface import moments
from taichi_sim.scene.winding import open_edges

BOX = {"kind": "box", "lower": [0, 0, 0], "upper": [1, 1, 1]}
SQUARE = {"kind": "box", "lower": [0, 0], "upper": [1, 1]}
LENS = 2 * 0.25 * np.arccos(0.5) - 0.25 * np.sqrt(0.75)  # two discs of radius .5, .5 apart
CASES = [
    (2, {"kind": "box", "center": [0.5, 1.0], "size": [1, 2]}, 2.0, (0.5, 1.0)),
    (3, BOX, 1.0, (0.5, 0.5, 0.5)),
    (2, {"kind": "sphere", "center": [1, 2], "radius": 0.5}, np.pi / 4, (1, 2)),
    (3, {"kind": "sphere", "center": [1, 2, 3], "radius": 0.5}, np.pi / 6, (1, 2, 3)),
    (2, {"kind": "capsule", "start": [0, 0], "end": [3, 4], "radius": 1}, 10 + np.pi, (1.5, 2)),
    (3, {"kind": "capsule", "start": [0, 0, 0], "end": [2, 2, 1], "radius": 1}, np.pi * (3 + 4 / 3), (1, 1, 0.5)),
    (3, {"kind": "cylinder", "start": [0, 0, 0], "end": [2, 2, 1], "radius": 1}, np.pi * 3, (1, 1, 0.5)),
    (2, {"kind": "ellipsoid", "center": [1, 2], "radii": [0.5, 1]}, np.pi / 2, (1, 2)),
    (3, {"kind": "ellipsoid", "center": [1, 2, 3], "radii": [0.5, 1, 0.3]}, np.pi / 5, (1, 2, 3)),
    (
        3,
        {"kind": "placed", "shape": BOX, "rotation": [0, 0, np.pi / 4], "position": [1, 0, 2]},
        1.0,
        (1, 0.5**0.5, 2.5),
    ),
    (2, {"kind": "placed", "shape": SQUARE, "rotation": np.pi / 4}, 1.0, (0, 0.5**0.5)),
    (2, {"kind": "polygon", "points": [[0, 0], [0, 1], [1, 1], [1, 0]]}, 1.0, (0.5, 0.5)),
    (2, {"kind": "polygon", "points": [[0, 0], [2, 0], [2, 1], [1, 1], [1, 2], [0, 2]]}, 3.0, (5 / 6, 5 / 6)),
    (2, {"kind": "union", "parts": [SQUARE, {"kind": "box", "lower": [0.5, 0], "upper": [2, 1]}]}, 2.0, (1, 0.5)),
    (
        2,
        {"kind": "union", "parts": [{"kind": "sphere", "center": [x, 0], "radius": 0.5} for x in (0, 0.5)]},
        np.pi / 2 - LENS,
        (0.25, 0),
    ),
    (
        3,
        {"kind": "union", "parts": [BOX, {"kind": "sphere", "center": [2, 0.5, 0.5], "radius": 0.5}]},
        1 + np.pi / 6,
        ((0.5 + np.pi / 3) / (1 + np.pi / 6), 0.5, 0.5),
    ),
    (
        2,
        {"kind": "difference", "base": SQUARE, "remove": [{"kind": "sphere", "center": [0.5, 0.5], "radius": 0.25}]},
        1 - np.pi / 16,
        (0.5, 0.5),
    ),
    (
        3,
        {"kind": "difference", "base": BOX, "remove": [{"kind": "plane", "point": [0, 0, 0.6], "normal": [0, 0, -1]}]},
        0.6,
        (0.5, 0.5, 0.3),
    ),
]
NAMES = [f"{table['kind']}-{dim}d-{number}" for number, (dim, table, _, _) in enumerate(CASES)]
EXACT = {"box", "sphere", "capsule", "cylinder", "ellipsoid", "placed", "polygon"}


def _probes(shape: Shape, count: int = 40_000) -> tuple[np.ndarray, float]:
    lower, upper = shape.bounds()
    lower, upper = lower - 0.1, upper + 0.1
    points = lower + (upper - lower) * np.random.default_rng(0).random((count, shape.dim))
    return points, float(np.prod(upper - lower))


@pytest.mark.parametrize(("dim", "table", "volume", "centre"), CASES, ids=NAMES)
def test_volume_and_centre(dim, table, volume, centre):
    shape = resolve_shape(table, dim)
    assert shape.volume == pytest.approx(volume, rel=1e-12 if table["kind"] in EXACT else 2e-5)
    assert shape.centre == pytest.approx(np.asarray(centre), abs=2e-5)


@pytest.mark.parametrize(("dim", "table", "volume", "centre"), CASES, ids=NAMES)
def test_inside_is_what_the_volume_says(dim, table, volume, centre):
    shape = resolve_shape(table, dim)
    points, room = _probes(shape)
    inside = shape.contains(points)
    share = volume / room
    assert inside.mean() == pytest.approx(share, abs=4 * np.sqrt(share / len(points)))
    lower, upper = shape.bounds()
    assert np.all((points[inside] >= lower) & (points[inside] <= upper))
    reached = np.minimum(points[inside] - lower, upper - points[inside]).min()
    assert reached < 0.05 * (upper - lower).max()  # the bounds are no larger than needed


@pytest.mark.parametrize(("dim", "table", "volume", "centre"), CASES, ids=NAMES)
def test_distance_has_the_sign_of_inside_and_never_too_large(dim, table, volume, centre):
    shape = resolve_shape(table, dim)
    points, _ = _probes(shape, 4000)
    distance = shape.signed_distance(points)
    assert np.array_equal(distance <= 0, shape.contains(points))
    # walking less than the distance in any direction does not change the side
    way = np.random.default_rng(1).normal(size=points.shape)
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    moved = points + 0.999 * np.abs(distance)[:, None] * way
    assert np.array_equal(shape.contains(moved), shape.contains(points))
    if table["kind"] in EXACT:  # the gradient has length one: walking the distance down it reaches the boundary
        step = 1e-6
        slope = np.stack(
            [(shape.signed_distance(points + step * e) - shape.signed_distance(points - step * e)) for e in np.eye(dim)]
        ).T / (2 * step)
        length = np.linalg.norm(slope, axis=1)
        assert np.median(length) == pytest.approx(1, abs=1e-6)
        smooth = np.abs(length - 1) < 1e-6
        assert smooth.mean() > 0.98
        foot = points[smooth] - distance[smooth, None] * slope[smooth]
        assert np.abs(shape.signed_distance(foot)).max() < 1e-4


@pytest.mark.parametrize(("dim", "table", "volume", "centre"), CASES, ids=NAMES)
def test_spread_is_that_of_the_points_inside(dim, table, volume, centre):
    shape = resolve_shape(table, dim)
    points, room = _probes(shape)
    arm = points[shape.contains(points)] - np.asarray(centre)
    sampled = np.einsum("ni,nj->ij", arm, arm) * room / len(points)
    exact = shape.spread()
    assert np.array_equal(exact, exact.T) or np.abs(exact - exact.T).max() < 1e-15
    assert sampled == pytest.approx(exact, abs=0.02 * np.trace(exact))


@pytest.mark.parametrize(("dim", "table", "volume", "centre"), CASES, ids=NAMES)
def test_outline_is_closed_and_encloses_the_volume(dim, table, volume, centre):
    outline = resolve_shape(table, dim).surface()
    if dim == 2:
        area = 0.0
        for loop in outline.loops:
            a, b = loop, np.roll(loop, -1, axis=0)
            area += float((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum() / 2)
        assert outline.faces.shape == (len(outline.vertices), 2)
        assert area == pytest.approx(volume, rel=5e-3)
        return
    assert (
        len(open_edges(np.unique(outline.vertices, axis=0, return_inverse=True)[1].reshape(-1)[outline.faces])[0]) == 0
    )
    assert moments(outline.vertices, outline.faces)[0] == pytest.approx(volume, rel=2e-2)


def test_a_hole_is_drawn_clockwise():
    table = {"kind": "difference", "base": SQUARE, "remove": [{"kind": "sphere", "center": [0.5, 0.5], "radius": 0.25}]}
    loops = resolve_shape(table, 2).surface().loops
    assert len(loops) == 2
    areas = sorted((a[:, 0] * np.roll(a[:, 1], -1) - a[:, 1] * np.roll(a[:, 0], -1)).sum() / 2 for a in loops)
    assert areas == pytest.approx([-np.pi / 16, 1], rel=2e-3)


def test_plane_is_half_of_everything():
    plane = resolve_shape({"kind": "plane", "point": [0, 1], "normal": [0, 2]}, 2)
    assert plane.signed_distance(np.array([[5.0, 3.0], [0.0, -1.0]])) == pytest.approx([2.0, -2.0])
    drawn = plane.surface(np.zeros(2), np.array([2.0, 4.0]))
    assert np.ptp(drawn.loops[0], axis=0) == pytest.approx([2, 1])
    tilted = resolve_shape({"kind": "plane", "point": [0, 0, 0], "normal": [1, 1, 1]}, 3)
    corners = tilted.surface(-np.ones(3), np.ones(3)).vertices
    assert len(corners) == 6 and np.abs(corners).max() == pytest.approx(1)
    assert tilted.signed_distance(corners) == pytest.approx(np.zeros(6), abs=1e-12)


def test_two_polygons_share_an_edge_without_doubling_or_losing_points():
    left = resolve_shape({"kind": "polygon", "points": [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]}, 2)
    right = resolve_shape({"kind": "polygon", "points": [[0.5, 0], [1, 0], [1, 1], [0.5, 1]]}, 2)
    points = np.stack(np.meshgrid(np.linspace(0.1, 0.9, 9), np.linspace(0.1, 0.9, 9)), axis=-1).reshape(-1, 2)
    points[:9, 0] = 0.5
    assert np.all(left.contains(points).astype(int) + right.contains(points) == 1)


@pytest.mark.parametrize(
    ("dim", "table", "said"),
    [
        (2, 3, "must be a table"),
        (2, {}, "must be one of box, capsule"),
        (2, {"kind": "bx"}, "did you mean 'box'?"),
        (2, {"kind": "cylinder"}, "exists in 3-D only"),
        (3, {"kind": "polygon"}, "exists in 2-D only"),
        (2, {"kind": "box", "lower": [0, 0]}, "either lower and upper, or center and size"),
        (2, {**SQUARE, "size": [1, 1]}, "either lower and upper, or center and size"),
        (2, {"kind": "box", "lower": [0, 0], "uper": [1, 1]}, "did you mean 'upper'?"),
        (2, {"kind": "box", "lower": [0, 0], "upper": [1, 0]}, "greater than lower"),
        (2, {"kind": "box", "lower": [0, 0, 0], "upper": [1, 1, 1]}, "must be 2 numbers, has shape (3,)"),
        (2, {"kind": "box", "lower": ["0", 0], "upper": [1, 1]}, "must be 2 numbers"),
        (2, {"kind": "sphere", "center": [0, float("nan")], "radius": 1}, "must be finite"),
        (2, {"kind": "sphere", "center": [0, 0], "radius": 0}, "must be > 0 m"),
        (2, {"kind": "sphere", "center": [0, 0], "radius": True}, "must be a number"),
        (2, {"kind": "sphere", "center": [0, 0]}, "is missing"),
        (2, {"kind": "capsule", "start": [1, 1], "end": [1, 1], "radius": 1}, "must differ from start"),
        (2, {"kind": "plane", "point": [0, 0], "normal": [0, 0]}, "must not be zero"),
        (2, {"kind": "polygon", "points": [[0, 0], [1, 0]]}, "at least three points"),
        (2, {"kind": "polygon", "points": [[0, 0], [1, 1], [1, 0], [0, 1]]}, "crosses or touches itself"),
        (2, {"kind": "polygon", "points": [[0, 0], [2, 0], [1, 0], [1, 1]]}, "crosses or touches itself"),
        (2, {"kind": "polygon", "points": [[0, 0], [1, 0], [1, 1], [0, 0]]}, "the last point repeats the first"),
        (2, {"kind": "placed"}, "shape.shape: is missing"),
        (3, {"kind": "placed", "shape": SQUARE}, "must be 3 numbers"),
        (3, {"kind": "ellipsoid", "center": [0, 0, 0], "radii": [1, 1, 0]}, "must be > 0 m"),
        (3, {"kind": "mesh", "file": "x.stl", "stretch": [1, 0, 1]}, "no such file"),
        (2, {"kind": "union", "parts": []}, "at least one shape"),
        (2, {"kind": "union", "parts": [SQUARE, {"kind": "sphere"}]}, "shape.parts[1].center: is missing"),
        (2, {"kind": "union", "parts": [{"kind": "plane", "point": [0, 0], "normal": [0, 1]}]}, "no volume"),
        (3, {"kind": "mesh", "file": "nowhere.stl"}, "no such file"),
        (3, {"kind": "mesh", "file": "x.stl", "repair": 1}, "must be true or false"),
    ],
)
def test_mistakes_are_named(dim, table, said):
    with pytest.raises(SceneError) as error:
        resolve_shape(table, dim)
    assert said in str(error.value)
    assert said in "\n".join(problem.line() for problem in check_shape(table, dim))


def test_all_mistakes_of_a_table_at_once():
    table = {"kind": "sphere", "center": [0], "radius": -1, "colour": 2}
    assert len(check_shape(table, 2)) == 3


def test_a_plane_is_no_body_and_nothing_left_is_an_error():
    assert check_shape({"kind": "plane", "point": [0, 0], "normal": [0, 1]}, 2) == []
    problems = check_shape({"kind": "plane", "point": [0, 0], "normal": [0, 1]}, 2, bounded=True)
    assert "no volume" in problems[0].message
    gone = {"kind": "difference", "base": SQUARE, "remove": [{"kind": "box", "lower": [-1, -1], "upper": [2, 2]}]}
    with pytest.raises(ValueError, match="nothing is left"):
        _ = resolve_shape(gone, 2).volume


def test_tables_completed_with_defaults_read_the_same():
    table = {"kind": "box", "lower": np.zeros(2), "upper": np.ones(2), "center": np.array([]), "size": np.array([])}
    assert check_shape(table, 2) == []
    assert resolve_shape(table, 2).volume == 1


@pytest.mark.parametrize("kind", list(shapes), ids=lambda kind: kind.name)
def test_every_kind_declares_units_and_meaning(kind):
    assert kind.doc and kind.parameters
    for parameter in kind.parameters:
        assert parameter.doc and not parameter.differentiable
        assert parameter.unit or parameter.kind != "real"
