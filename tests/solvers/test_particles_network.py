"""Topology of networks, plans that are refused, and the step springs and bends allow. Nothing is run but the last."""

import numpy as np
import pytest
from particles_case import build, run

from taichi_sim.solvers.particles.arrays import ParticlesPlan, rooms
from taichi_sim.solvers.particles.limits import step_limit
from taichi_sim.solvers.particles.network import Network, cloth, edges_of, lattice, mesh, opposite_corners, rod
from taichi_sim.solvers.particles.solver import ParticlesTrouble


def test_edges_of_a_tetrahedron_pair():
    cells = np.array([[0, 1, 2, 3], [3, 2, 1, 4]])
    edges = edges_of(cells)
    assert len(edges) == 9 and (edges[:, 0] < edges[:, 1]).all()
    assert {(0, 1), (2, 3), (1, 4)} <= set(map(tuple, edges))


def test_opposite_corners():
    faces = np.array([[0, 1, 2], [2, 1, 3], [3, 1, 4]])
    assert set(map(tuple, opposite_corners(faces))) == {(0, 3), (2, 4)}
    made = mesh(np.random.default_rng(0).normal(0, 1, (5, 3)), faces, bending=True)
    assert len(made.edges) == len(edges_of(faces)) + 2


@pytest.mark.parametrize(
    ("cells", "edges"),
    [((2, 3), 17 + 12), ((1, 1, 1), 12 + 12 + 4), ((2, 1, 1), 20 + 22 + 8)],
)
def test_lattice(cells, edges):
    made = lattice(cells, 0.5, np.ones(len(cells)))
    assert len(made.points) == np.prod([n + 1 for n in cells]) and len(made.cells) == np.prod(cells)
    assert made.points.min() == 1.0 and made.points.max() == 1.0 + 0.5 * max(cells)
    lengths = np.unique(np.round(made.rest_lengths / 0.5, 9))
    assert np.allclose(lengths, np.sqrt(np.arange(1, len(cells) + 1)))
    assert len(made.edges) == edges
    assert len(np.unique(made.edges, axis=0)) == edges
    assert np.allclose(lattice(cells, 0.5, braced=False).rest_lengths, 0.5)


def test_rod_and_cloth():
    line = rod(np.linspace([0, 0], [1, 0], 5))
    assert line.edges.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]] and line.bends.tolist()[0] == [0, 1, 2]
    assert line.lumped_mass(2.0) == pytest.approx([0.25, 0.5, 0.5, 0.5, 0.25])
    sheet = cloth((3, 2), [0, 0, 1], [3, 0, 0], [0, 0, 2])
    assert sheet.points.shape == (12, 3) and len(sheet.bends) == 3 * 2 + 4 * 1
    a, b, c = (sheet.points[sheet.bends[:, i]] for i in range(3))
    assert np.allclose(a - 2 * b + c, 0)
    assert sheet.lumped_mass(1.0).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("edges", "words"),
    [([[0, 1], [2, 2]], r"edge 1 = \(2, 2\) joins a point to itself"), ([[0, 7]], r"edge 0 = \(0, 7\) names a point")],
)
def test_mistakes_are_named(edges, words):
    empty = np.zeros((0, 3), int)
    with pytest.raises(ValueError, match=words):
        Network(np.zeros((3, 2)), np.array(edges), empty, empty)


def test_points_without_mass_or_number_are_named():
    with pytest.raises(ValueError, match="point 2 has no edge"):
        Network(np.eye(3), np.array([[0, 1]]), np.zeros((0, 3), int), np.zeros((0, 3), int)).lumped_mass(1.0)
    with pytest.raises(ValueError, match="point 1"):
        rod(np.array([[0.0, 0], [np.nan, 0], [2, 0]]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"edges": ((0, 1, 0), (1, 1, 0))}, r"edges\[1\] = \(1, 1\) joins a particle to itself"),
        ({"edges": ((0, 5, 0),)}, r"edges\[0\] = \(0, 5\): there are only particles 0 … 2"),
        ({"edges": ((0, 1, 3),)}, "actuator"),
        ({"bends": ((0, 1, 0),)}, r"bends\[0\]"),
        ({"grains": True}, "rooms"),
        ({"walls": (3,)}, "compliant"),
        ({"dim": 4}, "dim"),
    ],
)
def test_plans_that_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        ParticlesPlan(**({"dim": 2, "envs": 1, "particles": 3} | change))


def test_rooms():
    assert rooms(2, np.ones(4))[1] >= 7 and rooms(3, np.ones(4))[1] >= 13
    assert rooms(3, np.array([0.1, 0.5, 0.0]))[1] > 100


@pytest.mark.parametrize("culprit", ["springs", "bends"])
@pytest.mark.parametrize("factor", [1.0, 2.2])
def test_step_limit_of_networks(f64, culprit, factor):
    """Just above twice the allowed step, which is half of the limit, the shortest wave grows without bound."""
    n = 12
    line = rod(np.column_stack([np.arange(n) * 0.1, np.zeros(n)]))
    springs, bends = len(line.edges), len(line.bends)
    plan = ParticlesPlan(
        2, 2, n, tuple((a, b, 0) for a, b in line.edges) if culprit == "springs" else (),
        tuple(map(tuple, line.bends)) if culprit == "bends" else (), segment_mode=True,
    )  # fmt: skip
    mass = np.full(2 * n, 0.1)
    mass[n + 5] = 0.099
    values = {"mass": mass, "spring": np.tile([100.0, 0.0, 0.1], (2 * springs, 1)), "tag": np.zeros((n, 4), int),
              "bend_stiffness": np.full(2 * bends, 0.2), "x": np.tile(line.points, (2, 1))}  # fmt: skip
    limit = step_limit(plan, values)
    assert (limit.culprit, limit.env, limit.particle) == (culprit, 1, 5)
    if culprit == "springs":
        assert limit.allowed == pytest.approx(0.5 * 2 / np.sqrt(2 * 200.0 / 0.099))
    x = values.pop("x") + np.random.default_rng(0).normal(0, 1e-6, (2 * n, 2))
    if culprit == "springs":
        values.pop("bend_stiffness")
    else:
        values.pop("spring")
    values |= {"step": [factor * limit.allowed, 0.0], "gravity": 0.0}
    try:
        fastest = np.abs(run(build(plan, 1000, values, 1, {"x": x}), 1000)["v"]).max()
    except ParticlesTrouble:
        fastest = np.inf
    assert (fastest < 1e-3) == (factor == 1.0)
