"""Shapes at rest, rolling, and in heaps."""

import numpy as np
import pytest
from assembly import WORLD, Assembly
from rigid_case import build, run
from shape_case import PLANE, SPACE, G, add, meshes

from taichi_sim.solvers.rigid.colliders import box

UP = [np.cos(np.pi / 4), 0.0, np.sin(np.pi / 4), 0.0]  # x of the body along -z of the world


def settle(a, steps, dim=3):
    a.gravity[-1] = -G
    solver = build(a, steps, also=SPACE if dim == 3 else PLANE)
    run(solver, steps)
    view = solver.store.view
    return solver, view("position")[steps], np.abs(view("velocity")[steps]).max(), np.abs(view("spin")[steps]).max()


def floor(dim=3, **values):
    a = Assembly(dim)
    a.values |= values
    a.wall([0.0] * (dim - 1) + [1.0], 0.0)
    return a


@pytest.mark.parametrize(
    ("kind", "state", "height", "contacts"),
    [
        ("c", {}, 0.06, 2),
        ("y", {}, 0.1, 2),
        ("y", {"rotation": UP}, 0.08, 6),
    ],
)
def test_on_a_plane(f64, kind, state, height, contacts):
    """Lying or standing, it sinks by its weight over the stiffness of its contacts, and stays."""
    a = floor()
    add(a, kind, 1.0, [0.0, 0.0, height], **state)
    solver, x, v, w = settle(a, 600)
    assert x[0, 2] == pytest.approx(height - G / (contacts * 1e5), abs=1e-7)
    assert np.abs(x[0, :2]).max() < 1e-6 and v < 1e-6 and w < 1e-5
    gaps = solver.store.view("contact")[: solver.store.view("taped_count")[599, 0, 0], 9]
    assert (gaps < 0).sum() == contacts


@pytest.mark.parametrize("pair", ["cc", "yy", "cy", "yc"])
def test_one_across_another(f64, pair):
    """The upper across the lower, which does not move: they touch where their lines cross; a capsule on a cylinder
    also with the place between its ends that lies there."""
    a = Assembly(3)
    half = {"c": 0.06, "y": 0.1}
    add(a, pair[0], 1.0, [0.0, 0.0, 0.0], fixed=True)
    turn = [np.cos(np.pi / 4), 0.0, 0.0, np.sin(np.pi / 4)]
    add(a, pair[1], 1.0, [0.0, 0.0, half[pair[0]] + half[pair[1]]], rotation=turn)
    _solver, x, v, w = settle(a, 300)
    assert x[1, 2] == pytest.approx(half[pair[0]] + half[pair[1]] - G / (1e5 * (1 + (pair in ("cy", "yc")))), abs=1e-6)
    assert np.abs(x[1, :2]).max() < 1e-6 and v < 1e-6 and w < 1e-6


@pytest.mark.parametrize("kind", ["c", "y"])
def test_side_by_side(f64, kind):
    """Two lie parallel on the floor and carry a third."""
    r = {"c": 0.06, "y": 0.1}[kind]
    a = floor(friction=0.8)
    for y in (-1.02 * r, 1.02 * r):
        add(a, kind, 1.0, [0.0, y, r])
    add(a, kind, 1.0, [0.0, 0.0, r + np.sqrt(4 - 1.02**2) * r])
    _solver, x, v, _w = settle(a, 800)
    assert v < 1e-3
    assert np.abs(x[:, 2] - [r, r, r + np.sqrt(4 - 1.02**2) * r]).max() < 2e-3 * r


@pytest.mark.parametrize(("hollow", "share"), [(False, 2 / 3), (True, 1 / 2)])
def test_a_cylinder_rolls(f64, hollow, share):
    """2/3 g sin θ, and 1/2 where all its mass is in its skin; .5 %."""
    slope = np.radians(20)
    a = floor()
    turn = [np.cos(np.pi / 4), 0.0, 0.0, np.sin(np.pi / 4)]  # its axis along y
    b = a.cylinder(1.0, 0.1, 0.15, [0.0, 0.0, 0.1 - G * np.cos(slope) / 2e5], rotation=turn)
    if hollow:
        a.bodies[b].inertia[0] = 0.1**2
    a.gravity[0], a.gravity[2] = G * np.sin(slope), -G * np.cos(slope)
    solver = build(a, 600, also=SPACE)
    run(solver, 600)
    v = solver.store.view("velocity")[:, 0]
    assert v[600, 0] - v[300, 0] == pytest.approx(0.3 * share * G * np.sin(slope), rel=5e-3)
    assert np.abs(v[:, 1]).max() < 1e-9


def edge(turn, axis):
    """Attitude of a cube on an edge along an axis of its own, x (0) or y (1), after ``turn`` about z."""
    c, s = np.cos(np.pi / 8), np.sin(np.pi / 8)
    stand = np.array([c, s, 0, 0]) if axis == 0 else np.array([c, 0, s, 0])
    z = np.array([np.cos(turn / 2), 0, 0, np.sin(turn / 2)])
    w = z[0] * stand[0] - z[1:] @ stand[1:]
    return np.append(w, z[0] * stand[1:] + stand[0] * z[1:] + np.cross(z[1:], stand[1:]))


def test_edges_meet(f64):
    """A cube dropped edge first on the edge of another that crosses it is thrown back or held there, not let through;
    the one impulse acts where the edges cross."""
    a = Assembly(3)
    a.values |= {"friction": 0.0, "damping": 0.0, "stiffness": 1e4}
    d = 0.1 * np.sqrt(2)
    a.box(1.0, [0.1] * 3, [0.0, 0.0, 0.0], rotation=edge(0.0, 0), velocity=[0.0, 0.0, 0.5])
    a.box(1.0, [0.1] * 3, [0.0, 0.0, 2 * d + 0.005], rotation=edge(0.0, 1), velocity=[0.0, 0.0, -0.5])
    solver = build(a, 100, also=SPACE)
    run(solver, 100)
    view = solver.store.view
    v = view("velocity")[100]
    assert v[0, 2] < -0.2 and v[1, 2] > 0.2  # bounced (what is lost is the step's)
    assert np.abs(v.sum(axis=0)).max() < 1e-12
    assert np.abs(view("spin")[100]).max() < 1e-9
    assert view("position")[:, 1, 2].min() - view("position")[:, 0, 2].max() > 2 * d - 0.02


def test_crossed_edges_rest(f64):
    """A beam lies across the edges of two others, which are held: edge on edge, twice, beside two faces' borders."""
    a = Assembly(3)
    d = 0.1 * np.sqrt(2)
    for x in (-0.3, 0.3):  # ridges along y
        a.add(WORLD, box([0.1, 0.3, 0.1]), [x, 0.0, 0.0], np.array([[d, 0, d], [0, 0.1, 0], [-d, 0, d]]) @ np.diag(
            [5.0, 10.0, 5.0]))  # fmt: skip
    a.box(1.0, [0.5, 0.05, 0.05], [0.02, 0.0, d + 0.05])
    _solver, x, v, w = settle(a, 600)
    assert x[0, 2] == pytest.approx(d + 0.05 - G / 4e5, abs=5e-6) and v < 1e-5 and w < 1e-4


def test_a_turned_cube_on_a_cube(f64):
    """Turned by 45°, no vertex of one lies over a face of the other's inside: their edges cross eight times."""
    a = floor(stiffness=1e6)
    a.box(1.0, [0.1] * 3, [0.0, 0.0, 0.1])
    a.box(1.0, [0.1] * 3, [0.0, 0.0, 0.3], rotation=[np.cos(np.pi / 8), 0, 0, np.sin(np.pi / 8)])
    _solver, x, v, w = settle(a, 600)
    assert x[1, 2] == pytest.approx(0.3, abs=1e-4) and np.abs(x[:, :2]).max() < 1e-5 and v < 1e-5 and w < 1e-4


@pytest.mark.parametrize(("kind", "on"), [("l", "plane"), ("m", "plane"), ("l", "l")])
def test_a_mesh_falls_and_rests(f64, kind, on):
    """On the floor, or on the upright of an L that is held: it overlaps with what it lies on by less than .1 %."""
    a = floor() if on == "plane" else Assembly(3)
    points = meshes()["lm".index(kind)].collider.points
    place = np.array([0.0, 0.0, 0.01 - points[:, 2].min()])
    if on == "l":
        add(a, "l", 1.0, [0.0, 0.0, 0.0], fixed=True)
        place += [-0.0375, 0.0, points[:, 2].max()]  # centre of mass over the upright
    add(a, kind, 1.0, place)
    solver, x, v, _w = settle(a, 500)
    count = solver.store.view("taped_count")[499, 0, 0]
    deepest = -solver.store.view("contact")[:count, 9].min()
    print(kind, on, "overlap", deepest, "height", x[-1, 2] - place[2] + 0.01, "speed", v, "contacts", count)
    assert 0.0 < deepest < 1e-3 * np.ptp(points, axis=0).max() and v < 5e-3
    if kind == "l":
        assert x[-1, 2] - place[2] + 0.01 == pytest.approx(0.0, abs=2e-4)


def test_a_polygon_rests_and_polygons_stack(f64):
    angle = np.pi / 6 + np.pi / 3 * np.arange(6)
    corners = 0.1 * np.column_stack([np.cos(angle), np.sin(angle)])  # two corners at the top, two at the bottom
    turned = corners @ np.array([[0.0, 1.0], [-1.0, 0.0]])
    a = floor(2, stiffness=1e6)
    h = 0.1 * np.cos(np.pi / 6)
    for i in range(3):
        a.polygon(1.0, turned, [0.0, h * (2 * i + 1)])
    _solver, x, v, w = settle(a, 600, 2)
    assert np.abs(x[:, 0]).max() < 1e-6 and v < 1e-6 and w < 1e-5
    assert np.abs(x[:, 1] - h * (2 * np.arange(3) + 1)).max() < 1e-4


def heap(count, steps, h=2e-3):
    rng = np.random.default_rng(0)
    a = floor(friction=0.6, stiffness=2e4, damping=5.0, stiction=1e-3, dt=h)
    for normal in ([1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]):
        a.wall(normal, -0.4)
    kinds = "sbcy"
    for i in range(count):
        place = [0.26 * (i % 3 - 1), 0.26 * (i // 3 % 3 - 1), 0.2 + 0.3 * (i // 9)]
        add(a, kinds[i % 4], 1.0, place, rotation=rng.normal(0, 1, 4), velocity=rng.normal(0, 0.3, 3))
    a.gravity[-1] = -G
    return a


def energies(solver, steps):
    view = solver.store.view
    out = []
    for k in steps:
        v, w = solver.synchronous_velocity(k)
        q = view("rotation")[k]
        u = np.cross(-q[:, 1:], w) * 2  # ω in body axes: w + 2 s u×w + 2 u×(u×w), with the inverse turn
        body = w + q[:, :1] * u + np.cross(-q[:, 1:], u)
        m, I = view("mass"), view("inertia")[:, :3]
        out.append(0.5 * (m @ (v * v).sum(1) + (I * body**2).sum()) + G * (m @ view("position")[k][:, 2]))
    return np.array(out)


@pytest.mark.parametrize("count", [12, pytest.param(100, marks=pytest.mark.slow)])
def test_a_heap_comes_to_rest(f64, count):
    """Bodies of all simple kinds in a bin: energy does not grow (but for what contacts, which are springs, give back),
    at the end they lie still, none has left."""
    steps = 1000
    solver = build(heap(count, steps), steps, also=SPACE)
    run(solver, steps)
    E = energies(solver, range(0, steps + 1, 10))
    assert (E - np.minimum.accumulate(E)).max() < 1e-2 * (E[0] - E[-1])
    v = np.linalg.norm(solver.store.view("velocity")[-1], axis=1)
    x = solver.store.view("position")[-1]
    print("energy", E[0], E[-1], "speeds", np.sort(v)[-4:], "contacts", solver.store.view("taped_count")[-2, 0])
    assert np.median(v) < 5e-3 and v.max() < 0.1
    assert x[:, 2].min() > 0.04 and np.abs(x[:, :2]).max() < 0.4
