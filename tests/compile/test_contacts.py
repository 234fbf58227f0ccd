"""Walls and obstacles as lists of contacts at grid nodes, and the derivative of where an obstacle stands."""

import numpy as np
import pytest
from stub import StubSolver, plan, pullback_agrees

from taichi_sim.compile.continuum.contacts import Contacts, ObstacleContact, WallContact
from taichi_sim.core.errors import RolloutError
from taichi_sim.scene.shapes.shape import resolve_shape
from taichi_sim.solvers.mpm.contact import KINDS

SPACING = 0.1


def walls(dim=2):
    return [
        WallContact(d, side, "separate" if (d, side) == (1, -1) else "slip",
                    "domain.walls.y_lower.friction" if (d, side) == (1, -1) else None)
        for d in range(dim) for side in (-1, 1)
    ]  # fmt: skip


def obstacle(name="rock", shape=None, rotation=0.0, kind="separate", dim=2):
    table = shape or {"kind": "sphere", "center": [0.4] * dim, "radius": 0.17}
    friction = f"obstacles.{name}.friction" if kind == "separate" else None
    turn = np.asarray(rotation if dim == 2 else np.broadcast_to(rotation, 3), float)
    return ObstacleContact(name, resolve_shape(table, dim, "shape"), turn, kind, f"obstacles.{name}.position", friction)


def contacts(obstacles=(), envs=1, dim=2, room=5000, cells=8, **sizes):
    p = plan(dim=dim, envs=envs, cells=cells, contacts=room, **sizes)
    values = {"domain.walls.y_lower.friction": np.full(envs, 0.5)}
    for o in obstacles:
        values[o.position] = np.zeros((envs, dim)) + 0.013 * np.arange(1, envs + 1)[:, None]
        if o.friction:
            values[o.friction] = np.full(envs, 0.2)
    return Contacts(walls(dim), list(obstacles), p, room), values, StubSolver(p)


def lists(binding, solver):
    """For every environment and node the contacts in the order they act: (kind, normal, alpha, friction)."""
    head, following = solver["contact_head"], solver["contact_next"]
    out = []
    for c in head:
        found = []
        while c >= 0:
            found.append(tuple(solver[f"contact_{key}"][c] for key in ("kind", "normal", "alpha", "friction")))
            c = following[c]
        out.append(found)
    nodes = binding.plan.nodes
    return [out[e * nodes : (e + 1) * nodes] for e in range(binding.plan.envs)]


def test_walls_stand_exactly_at_the_domain():
    binding, values, solver = contacts()
    binding.apply(values, solver)
    (found,) = lists(binding, solver)
    for point, list_ in zip(binding.points, found, strict=True):
        expected = set()
        for d in range(2):
            if point[d] < 1e-9:
                expected.add((d, 1.0))
            if point[d] > 0.8 - 1e-9:
                expected.add((d, -1.0))
        assert {(int(np.argmax(np.abs(n))), float(n[np.argmax(np.abs(n))])) for _, n, _, _ in list_} == expected
        for kind, n, alpha, friction in list_:
            floor = n[1] == 1.0
            assert alpha == 1.0 and kind == KINDS["separate" if floor else "slip"]
            assert friction == (0.5 if floor else 0.0)


def test_obstacles_act_before_walls_and_fade_outside():
    rock = obstacle(shape={"kind": "sphere", "center": [0.4, 0.05], "radius": 0.17})
    binding, values, solver = contacts([rock])
    binding.apply(values, solver)
    (found,) = lists(binding, solver)
    centre = np.array([0.413, 0.063])
    both = 0
    for point, list_ in zip(binding.points, found, strict=True):
        arm = point - centre
        r = np.linalg.norm(arm)
        inside = any(f == 0.2 for *_, f in list_)
        assert inside == (r < 0.17 + 0.5 * SPACING) or abs(r - 0.17 - 0.5 * SPACING) < 0.05 * SPACING, point
        if inside:
            _, n, alpha, friction = list_[0]
            assert friction == 0.2, "first the obstacle"
            ends = np.array([[point + s * 0.2357 * SPACING * e for s in (1, -1)] for e in np.eye(2)])
            distances = np.linalg.norm(ends - centre, axis=2) - 0.17
            assert r < SPACING or np.allclose(n, arm / r, atol=0.02)
            gradient = distances[:, 0] - distances[:, 1]
            assert np.allclose(n, gradient / np.linalg.norm(gradient), atol=1e-9)
            s = np.clip((0.05 - distances.mean()) / 0.1, 0, 1)
            assert alpha == pytest.approx(s * s * (3 - 2 * s), abs=1e-9)
            both += len(list_) > 1
    assert both > 0


def test_environments_and_rebuilding():
    binding, values, solver = contacts([obstacle()], envs=2)
    binding.apply(values, solver)
    first = lists(binding, solver)
    assert any(len(a) != len(b) or [x[2] for x in a] != [x[2] for x in b] for a, b in zip(*first, strict=True))
    built = solver["contact_normal"].copy()
    solver.store.written.pop("contact_normal")
    values["obstacles.rock.friction"] = np.array([0.7, 0.9])
    binding.apply(values, solver)
    assert "contact_normal" not in solver.store.written, "friction alone builds nothing anew"
    assert set(solver["contact_friction"]) == {0.0, 0.5, 0.7, 0.9}
    values["obstacles.rock.position"] = values["obstacles.rock.position"][::-1]
    binding.apply(values, solver)
    assert not np.array_equal(solver["contact_normal"], built)
    swapped = lists(binding, solver)
    for e in range(2):
        assert [[x[2] for x in node] for node in swapped[e]] == [[x[2] for x in node] for node in first[1 - e]]


SHAPES = {
    "sphere": {"kind": "sphere", "center": [0.4, 0.4], "radius": 0.17},
    "box": {"kind": "box", "lower": [0.21, 0.23], "upper": [0.57, 0.44]},
    "plane": {"kind": "plane", "point": [0.0, 0.23], "normal": [0.3, 1.0]},
    "capsule": {"kind": "capsule", "start": [0.2, 0.3], "end": [0.6, 0.45], "radius": 0.12},
    "difference": {"kind": "difference", "base": {"kind": "sphere", "center": [0.4, 0.4], "radius": 0.25},
                   "remove": [{"kind": "sphere", "center": [0.5, 0.4], "radius": 0.13}]},
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_the_derivative_of_where_an_obstacle_stands(name):
    binding, values, solver = contacts([obstacle(shape=SHAPES[name], rotation=0.3)], envs=2)
    names = ("contact_normal", "contact_alpha", "contact_friction")
    pullback_agrees(binding, values, names, solver, values, step=3e-5, tolerance=2e-5)


def test_ridges_have_no_derivative():
    """A plate one cell thick whose middle runs through nodes: they are as near to one face as to the other."""
    plate = obstacle(shape={"kind": "box", "lower": [0.35, 0.1], "upper": [0.45, 0.7]})
    binding, values, solver = contacts([plate])
    values[plate.position][:] = 0.0
    binding.apply(values, solver)
    middle = np.flatnonzero(np.abs(binding.points[:, 0] - 0.4) < 1e-9)
    assert any(lists(binding, solver)[0][node] for node in middle)
    solver.store.adjoints = {f"contact_{key}": np.ones(solver[f"contact_{key}"].shape)
                             for key in ("normal", "alpha", "friction")}  # fmt: skip
    assert np.abs(binding.pullback(values, solver)[plate.position]).max() < 1e3


def test_the_derivative_in_3d():
    ball = obstacle(shape={"kind": "sphere", "center": [0.3] * 3, "radius": 0.13}, rotation=0.2, dim=3)
    block = obstacle("block", {"kind": "box", "lower": [0.11, 0.13, 0.12], "upper": [0.37, 0.42, 0.33]}, 0.4, dim=3)
    binding, values, solver = contacts([ball, block], dim=3, cells=6, room=30_000)
    names = ("contact_normal", "contact_alpha", "contact_friction")
    pullback_agrees(binding, values, names, solver, values, step=3e-5, tolerance=2e-5)


def test_periodic_images_share_one_contact():
    binding, values, solver = contacts([obstacle(shape={"kind": "sphere", "center": [0.0, 0.4], "radius": 0.17})],
                                       periodic=True)  # fmt: skip
    binding.walls = [w for w in binding.walls if w.axis == 1]
    binding.apply(values, solver)
    head = solver["contact_head"]
    mirror = binding.mirror
    assert np.array_equal(head, head[mirror]) and (mirror != np.arange(len(mirror))).any()
    used = [c for c in np.unique(head) if c >= 0]
    own = np.flatnonzero(mirror == np.arange(len(mirror)))
    assert sorted(used) == sorted(np.unique(head[own][head[own] >= 0]))


def test_an_obstacle_moved_far_into_the_domain_is_refused():
    rock = obstacle(shape={"kind": "sphere", "center": [0.4, -0.5], "radius": 0.3})
    room = sum(len(Contacts(walls(), [], plan(), 1)._wall_nodes(w)) for w in walls()) + 10
    binding, values, solver = contacts([rock], room=room)
    binding.apply(values, solver)
    values[rock.position] = np.array([[0.0, 0.9]])
    with pytest.raises(RolloutError, match=r"obstacles touch \d+ grid nodes, room was made for \d+"):
        binding.apply(values, solver)


def test_a_node_holds_any_number_and_obstacles_act_in_the_order_of_their_names():
    many = [obstacle(f"o{k}", kind=kind) for k, kind in enumerate(["slip", "separate", "sticky", "slip", "separate"])]
    found = []
    for order in (many, many[::-1], [many[k] for k in (3, 0, 4, 2, 1)]):
        binding, values, solver = contacts(order)
        binding.apply(values, solver)
        found.append([[entry[0] for entry in node] for node in lists(binding, solver)[0]])
    assert [KINDS[o.kind] for o in many] in found[0]
    assert found[0] == found[1] == found[2]


def test_who_was_touched():
    binding, values, solver = contacts([obstacle(), obstacle("other")])
    binding.apply(values, solver)
    bar = np.zeros(binding.room)
    solver.store.adjoints = {"contact_alpha": bar}
    paths = [*(f"obstacles.{n}.{k}" for n in ("rock", "other") for k in ("position", "friction")),
             "domain.walls.y_lower.friction"]  # fmt: skip
    assert not any(binding.touched(path, solver) for path in paths)
    entry = next(e for e in binding._entries if e.obstacle is not None and e.obstacle.name == "rock")
    bar[entry.first + len(entry.nodes) - 1] = 1.0
    assert [binding.touched(path, solver) for path in paths] == [True, True, False, False, False]


@pytest.mark.parametrize("turn", [0.0, 0.3, np.pi / 4])
@pytest.mark.parametrize(
    "shape",
    [
        {"kind": "box", "lower": [0.0, 0.0], "upper": [0.45, 0.13]},
        {"kind": "sphere", "center": [0.1, 0.1], "radius": 0.17},
    ],
)
def test_there_is_room_for_an_obstacle_wherever_it_is_moved(shape, turn):
    """One that starts outside the domain touches few nodes there."""
    rock = obstacle(shape=shape, rotation=turn)
    binding, values, _ = contacts([rock], room=10)
    binding.room = sum(len(binding._wall_nodes(w)) for w in binding.walls)
    binding.room += binding.most_nodes(rock, np.array([5.0, 5.0]), moves=True)
    rng = np.random.default_rng(0)
    for _ in range(20):
        values[rock.position] = rng.uniform(-0.2, 0.6, (1, 2))
        binding.apply(values, _Roomy())


class _Roomy:
    """Takes whatever is written."""

    store = type("Store", (), {"write": staticmethod(lambda name, values: None)})()


def test_a_plane_that_moves_may_touch_every_node():
    floor = obstacle(shape={"kind": "plane", "point": [0.0, 0.0], "normal": [0.0, 1.0]})
    binding, _, _ = contacts([floor])
    low = np.array([0.0, -5.0])
    assert (
        binding.most_nodes(floor, low, moves=True) == binding.plan.nodes > binding.most_nodes(floor, low, moves=False)
    )
