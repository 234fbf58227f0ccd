"""What a scene becomes before any memory is touched: orders, groups, sizes, steps and values."""

import numpy as np
import pytest
from tiny import DELETE, FREE, tiny

from taichi_sim.compile.continuum import build
from taichi_sim.compile.continuum.diagnose import active_nodes
from taichi_sim.compile.model import compile_scene
from taichi_sim.laws.law import kernel_functions, laws


def compiled(changes=None, envs=1, seed=0):
    return compile_scene(tiny(changes), envs, seed)


WATER = {"law": "newtonian_fluid", "density": 1000.0, "bulk_modulus": 2e4}


def drop(x: float, material: str) -> dict:
    return {"shape": {"kind": "sphere", "center": [x, 0.6], "radius": 0.08}, "material": material}


def test_particles_of_one_law_lie_together():
    m = compiled({"materials.water": WATER, "bodies": {
        "a": drop(0.15, "water"), "b": drop(0.4, "jelly"), "c": drop(0.65, "water"),
    }, "actuators": DELETE, "design": DELETE, "objectives": DELETE})  # fmt: skip
    n = {name: where.stop - where.start for name, where in m.slices.items()}
    assert m.slices["b"] == slice(n["a"], n["a"] + n["b"]) and m.particles == sum(n.values())
    assert m.continuum.plan.laws == tuple(
        kernel_functions(laws.get(name)) for name in ("neo_hookean", "newtonian_fluid")
    )
    assert m.continuum.plan.law_ranges == ((0, n["b"]), (n["b"], m.particles))
    expected = np.concatenate([np.arange(m.particles)[m.slices[name]] for name in ("b", "a", "c")])
    assert m.continuum.law_order.tolist() == expected.tolist()
    rows = m.continuum.tags[:, 0]
    assert [set(rows[m.slices[name]]) for name in ("a", "b", "c")] == [{0}, {1}, {2}] and m.continuum.plan.rows == 3


def test_groups_are_the_sets_of_actuators_that_drive_a_particle():
    signal = {"kind": "constant", "value": 1.0}
    muscle = {"kind": "muscle", "body": "block", "direction": [0.0, 1.0], "strength": 10.0, "signal": signal}
    regions = {
        "left": {"shape": {"kind": "box", "lower": [0.2, 0.1], "upper": [0.45, 0.4]}},
        "right": {"shape": {"kind": "box", "lower": [0.35, 0.1], "upper": [0.6, 0.4]}},
    }
    m = compiled({"bodies.block.regions": regions, "design": DELETE, "actuators": {
        "one": {**muscle, "region": "left"}, "two": {**muscle, "region": "right"}, "all": {**muscle, "body": "ball"},
    }})  # fmt: skip
    x = m.continuum.bodies[0].points_rest[:, 0]
    left, right = x < 0.45, x > 0.35
    groups = m.continuum.tags[:, 1]
    block, ball = groups[m.slices["block"]], groups[m.slices["ball"]]
    assert len(set(ball)) == 1 and len({*block, *ball}) == 4 and m.continuum.plan.groups == 5
    assert 0 not in groups, "every particle is driven"
    for pattern in ((True, False), (True, True), (False, True)):
        chosen = (left == pattern[0]) & (right == pattern[1])
        assert len(set(block[chosen])) == 1
    one, two, whole = m.actuators.actuators
    assert set(one.groups) == set(block[left]) and set(two.groups) == set(block[right])
    assert whole.groups == (ball[0],) and whole.target == "ball"


def test_nothing_driven_has_group_0():
    m = compiled()
    groups = m.continuum.tags[:, 1]
    assert (
        not groups[m.slices["ball"]].any() and set(groups[m.slices["block"]]) == {0, 1} and m.continuum.plan.groups == 2
    )
    free = compiled(FREE)
    assert (
        free.continuum.plan.groups == 1
        and not free.continuum.tags[:, 1].any()
        and not free.continuum.plan.driven
        and free.continuum.plan.fields == 0
    )


@pytest.mark.parametrize(
    ("dt", "substeps"), [(0.004, 5), (0.0041, 5), (0.0039999999999, 5), (0.0039, 6), (0.001, 20), (0.0050000001, 4)]
)
def test_substeps_are_a_whole_number_and_no_longer_than_asked(dt, substeps):
    m = compiled({"solver": {"dt": dt, "max_speed": 2.0}})
    assert m.substeps == substeps
    assert m.values["dt"][0] == pytest.approx(0.02 / substeps) and m.values["dt"][0] <= dt * (1 + 1e-9)


def test_the_step_is_chosen_from_the_limit():
    m = compiled({"solver": {"max_speed": 4.0}})
    assert m.values["dt"][0] <= m.limit.allowed < 0.02 / (m.substeps - 1)
    fast = compiled({"solver": {}, "bodies.ball.velocity": [20.0, 0.0]})
    assert fast.limit.max_speed > 20 and fast.substeps > m.substeps
    still = {
        "bodies.block.velocity": [0.0, 0.0],
        "bodies.block.angular_velocity": 0.0,
        "bodies.ball.velocity": [0.0, 0.0],
    }
    assert compiled({"solver": {}, **still}).limit.max_speed == pytest.approx(9.0 * 0.24)
    assert compiled({"solver": {}, **still, "duration": 24.0}).limit.max_speed == pytest.approx(np.sqrt(2 * 9.0 * 0.8))
    assert compiled({"solver": {"cfl": 0.2, "max_speed": 4.0}}).limit.allowed < compiled().limit.allowed


def test_sorts_are_as_rare_as_asked_while_particles_stay_in_active_blocks():
    assert compiled({"solver.sort_every": 3}).continuum.plan.sort_every == 3
    slow = compiled({"solver": {"dt": 0.004, "max_speed": 1.6, "sort_every": 50}}).continuum.plan.sort_every
    quick = compiled({"solver": {"dt": 0.004, "max_speed": 4.0, "sort_every": 50}}).continuum.plan.sort_every
    assert quick < slow <= 50 and quick * 2 * 4.0 * 0.004 / 0.1 <= 3.0


def test_small_scenes_and_environments_are_one_task_each(monkeypatch):
    assert compiled().continuum.plan.segment_mode and compiled().continuum.plan.partitions == 1
    assert compiled(envs=2).continuum.plan.segment_mode
    monkeypatch.setattr(build, "SMALL", 10)
    large = compiled({"solver.partitions": 3}).continuum.plan
    assert not large.segment_mode and large.partitions == 3 and large.workers == 3
    assert compiled(envs=2).continuum.plan.partitions == 1


def test_values_have_an_environment_axis():
    profile = {"axis": "x", "points": [0.2, 0.6], "values": [[0.0, 0.0], [1.0, 2.0]]}
    stretch = {"axis": "y", "points": [0.15, 0.35], "values": [[1.0, 0.9], [1.0, 1.1]]}
    m = compiled({"bodies.block.velocity": profile, "bodies.block.deformation": stretch}, envs=3)
    assert all(value.shape[0] == 3 and value.dtype == np.float64 for value in m.values.values())
    x, y = m.continuum.bodies[0].points_rest.T
    v, F = m.values["bodies.block.velocity"], m.values["bodies.block.deformation"]
    assert v.shape == (3, 32, 2) and F.shape == (3, 32, 2, 2)
    assert np.allclose(v[1], np.outer((x - 0.2) / 0.4, [1.0, 2.0]))
    assert np.allclose(F[2, :, 1, 1], 0.9 + (y - 0.15)) and np.allclose(F[2, :, 0, 0], 1.0) and not F[..., 0, 1].any()
    assert set(m.values) <= set(m.quantities)


def test_admissible_ranges():
    m = compiled({"solver": {}, "design": [
        {"path": "materials.jelly.youngs_modulus"}, {"path": "bodies.ball.material.youngs_modulus", "upper": 3e4},
        {"path": "gravity"}, {"path": "materials.jelly.poissons_ratio"},
    ]})  # fmt: skip
    assert [float(b) for b in m.bounds["materials.jelly.youngs_modulus"]] == [-np.inf, np.inf]
    assert m.bounds["bodies.ball.material.youngs_modulus"][1] == 3e4
    assert all(np.array_equal(b, [0.0, -9.0]) for b in m.bounds["gravity"])
    assert [float(b) for b in m.bounds["materials.jelly.poissons_ratio"]] == [0.3, 0.3]
    assert m.limit.wave_speed == pytest.approx(10 * compiled().continuum.matter.bodies[0].law.wave_speed(
        {"youngs_modulus": 2e4, "poissons_ratio": 0.3}, 1000.0) , rel=0.01)  # fmt: skip


def test_active_nodes_are_those_of_blocks_around_particles():
    plan = compiled().continuum.plan
    one = np.array([[[0.35, 0.35]]])  # cell 6.5 from node 0: block 1, 1
    assert active_nodes(plan, one) == 9 * 16
    corner = np.array([[[0.0, 0.0]]])
    assert active_nodes(plan, corner) == 4 * 16
    assert active_nodes(plan, np.concatenate([one, corner])) == 13 * 16
    assert active_nodes(plan, np.array([[[0.35, 0.35], [0.36, 0.34]]])) == 9 * 16


def test_the_grid_covers_the_domain_and_its_padding():
    plan = compiled().continuum.plan
    points = plan.node_positions().reshape(*plan.sizes, 2)
    assert np.allclose(points[3, 3], [0.0, 0.0]) and np.allclose(points[11, 11], [0.8, 0.8])
    assert plan.cells == (8, 8) and all(n % 4 == 0 and n >= 8 + 1 + 6 for n in plan.sizes)
    assert np.array_equal(plan.canonical_nodes(), np.arange(plan.nodes))


def test_fields_are_sampled_at_nodes():
    vortex = {"kind": "vortex", "center": [0.4, 0.4], "strength": 1.0}
    walls = {"x_lower": "periodic", "x_upper": "periodic"}
    m = compiled({"fields.spin": vortex, "domain.walls": walls})
    plan = m.continuum.plan
    assert plan.fields == 2 and plan.periodic == (True, False)
    wind, spin = m.continuum.field_accelerations.reshape(2, plan.nodes, 2)
    assert np.allclose(wind, [1.0, 0.5])
    mirror = plan.canonical_nodes()
    assert np.array_equal(spin, spin[mirror]) and (mirror != np.arange(plan.nodes)).any()
    arm = plan.node_positions()[mirror] - 0.4
    assert np.allclose(np.sum(arm * spin, axis=1), 0.0, atol=1e-12)


def test_bodies_and_walls_of_the_scene_arrive():
    m = compiled({"domain.walls": {"default": "sticky", "x_lower": "slip"}})
    assert [(w.axis, w.side, w.kind) for w in m.continuum.contacts.walls] == [
        (0, -1, "slip"), (0, 1, "sticky"), (1, -1, "sticky"), (1, 1, "sticky")
    ]  # fmt: skip
    assert all(w.friction is None for w in m.continuum.contacts.walls)
    assert [o.name for o in m.continuum.contacts.obstacles] == ["rock"]
    assert m.continuum.contacts.obstacles[0].friction == "obstacles.rock.friction"
    sticky = compiled({"obstacles.rock": {"shape": {"kind": "sphere", "center": [0.3, 0.0], "radius": 0.1},
                                          "kind": "sticky"}})  # fmt: skip
    assert sticky.continuum.contacts.obstacles[0].friction is None and "obstacles.rock.friction" not in sticky.values


def test_the_environment_that_sets_the_step_is_named():
    built = compile_scene(tiny(), envs=3)
    values = {path: value.copy() for path, value in built.values.items()}
    values["materials.jelly.youngs_modulus"][1] *= 100.0
    assert built.in_environment(values) == " in environment 1"
    assert compile_scene(tiny()).in_environment(built.values) == ""
