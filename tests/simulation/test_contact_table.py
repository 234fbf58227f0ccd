"""What touched in the last step: names, places, and impulses that account for every change of momentum."""

import numpy as np
import pytest

from taichi_sim import Scene, Simulation
from tests.simulation.audit_case import grains_and_solids, hinged, padded


def table(**changes) -> dict:
    """A box and a ball that rebounds, above the floor and a ramp."""
    return {
        "format": 1, "dim": 2, "duration": 0.2, "frame_dt": 0.02, "solver": {"dt": 2e-3}, "gravity": [0.0, -9.81],
        "domain": {"lower": [-2.0, 0.0], "upper": [2.0, 2.0], "walls": {"default": {"kind": "separate"}}},
        "rigid": {
            "cube": {"shape": {"kind": "box", "lower": [-0.1, 0.0], "upper": [0.1, 0.2]}, "mass": 3.0, "friction": 0.5,
                     "velocity": [0.5, 0.0]},
            "ball": {"shape": {"kind": "sphere", "center": [0.0, 0.32], "radius": 0.1}, "mass": 1.0,
                     "velocity": [0.1, -1.0], "force": [0.2, 0.0]},
        },
        "obstacles": {"post": {"shape": {"kind": "box", "lower": [0.15, 0.0], "upper": [0.3, 0.5]}}},
        **changes,
    }  # fmt: skip


def pressed(found, name: str) -> np.ndarray:
    """Impulse on one of the bodies, from the arrays of the solver."""
    sign = (found["a"] == name).astype(float) - (found["b"] == name)
    return (sign[:, None] * found["impulse"]).sum(axis=0)


@pytest.mark.parametrize("restitution", [0.0, 0.7])
def test_impulses_account_for_every_change_of_momentum(restitution):
    given = table()
    for name in ("ball", "cube"):
        given["rigid"][name]["restitution"] = restitution
    with Simulation(Scene.from_dict(given), precision="f64", segment=100) as sim:
        sim.value_and_grad("kinetic_energy", ["gravity"])  # all steps stay in memory
        family, solver = sim.model.rigid, sim._world.solvers["rigid"]
        view, masses, force = solver.store.view, np.array([3.0, 1.0]), np.array([[0.0, 0.0], [0.2, 0.0]])
        seen, split = set(), 0
        for k in range(1, 101):
            found = family.contacts(solver, k)
            length = sim.dt + 0.5 * (view("kick")[k - 1, 0] - view("kick")[k, 0])
            change = view("velocity")[k] - view("velocity")[k - 1]
            change = change - length * (sim.get("gravity") + force / masses[:, None])
            for b, name in enumerate(("rigid.cube", "rigid.ball")):
                np.testing.assert_allclose(pressed(found, name), masses[b] * change[b], atol=1e-9)
            np.testing.assert_allclose(found["force"] * length, found["impulse"], rtol=1e-12)
            seen |= set(zip(found["a"].tolist(), found["b"].tolist(), strict=True))
            split += int(restitution > 0 and view("chain")[k - 1, 0, 1])
        assert split >= 3 if restitution else split == 0
        assert ("rigid.cube", "domain.walls.y_lower") in seen and ("rigid.cube", "obstacles.post") in seen
        assert {frozenset(pair) for pair in seen} >= {frozenset(("rigid.cube", "rigid.ball"))}


def test_what_lies_on_what_and_where():
    given = table(duration=1.0)
    given["rigid"]["cube"]["velocity"] = [0.0, 0.0]
    given["rigid"]["ball"] |= {"velocity": [0.0, 0.0], "force": [0.0, 0.0]}
    with Simulation(Scene.from_dict(given), envs=2) as sim:
        sim.set("gravity", [[0.0, -9.81], [0.0, -5.0]])
        found = sim.observe("contacts")
        for env, pull in enumerate((9.81, 5.0)):
            mine = found[found["env"] == env]
            floor = mine[mine["b"] == "domain.walls.y_lower"]
            np.testing.assert_allclose(floor["force"].sum(axis=0), [0.0, 4.0 * pull], atol=2e-2)
            np.testing.assert_allclose(sorted(floor["point"][:, 0]), [-0.1, 0.1], atol=1e-3)
            np.testing.assert_allclose(floor["normal"], [[0.0, 1.0]] * len(floor), atol=1e-6)
            np.testing.assert_allclose(np.abs(pressed(mine, "rigid.ball"))[1] / sim.dt, pull, rtol=1e-3)
        assert np.all(np.abs(found["gap"]) < 1e-3)
        sim.value_and_grad("kinetic_energy", ["gravity"])  # leaves another part of the rollout in memory
        assert np.array_equal(sim.observe("contacts"), found)


def test_bodies_on_joints():
    """Two links on a slide and a hinge that have come to rest on the floor: it carries what the slide does not."""
    given = table(duration=1.0, obstacles={})
    given["rigid"] = {
        "body": {"shape": {"kind": "box", "lower": [-0.2, 0.2], "upper": [0.2, 0.3]}, "mass": 2.0},
        "leg": {"shape": {"kind": "capsule", "start": [0.15, 0.06], "end": [0.15, 0.25], "radius": 0.05}, "mass": 0.5},
    }
    given["joints"] = {
        "rail": {"kind": "prismatic", "child": "body", "anchor": [0.0, 0.25], "axis": [0.0, 1.0]},
        "hip": {"kind": "hinge", "parent": "body", "child": "leg", "anchor": [0.15, 0.25], "stiffness": 50.0,
                "damping": 2.0},
    }  # fmt: skip
    with Simulation(Scene.from_dict(given), precision="f64") as sim:
        found = sim.observe("contacts")
        assert set(found["a"]) == {"rigid.leg"} and set(found["b"]) == {"domain.walls.y_lower"}
        np.testing.assert_allclose(found["force"].sum(axis=0)[1], 2.5 * 9.81, rtol=1e-4)


def test_nothing_rigid_is_said():
    given = table(obstacles={}, rigid={})
    given["domain"]["spacing"] = 0.1
    given["materials"] = {"jelly": {"law": "neo_hookean", "density": 1e3, "youngs_modulus": 1e4, "poissons_ratio": 0.3}}
    given["bodies"] = {
        "block": {"shape": {"kind": "box", "lower": [-0.5, 0.5], "upper": [0.0, 0.9]}, "material": "jelly"}
    }
    with Simulation(Scene.from_dict(given)) as sim, pytest.raises(ValueError, match=r"no \[rigid.NAME\]"):
        sim.observe("contacts")


def test_what_is_welded_to_a_body_and_what_it_touches():
    """All that acts on a body that carries a pad and falls on a block, but for its weight and a force."""
    table = padded().to_dict()
    table["rigid"]["box"]["shape"] = {"kind": "box", "lower": [0.4, 0.285], "upper": [0.6, 0.45]}
    with Simulation(Scene.from_dict(table | {"duration": 0.01}), precision="f64") as sim:
        found = sim.observe("contacts")
        pairs = [("rigid.box", "bodies.block"), ("rigid.box", "bodies.pad")]
        assert list(zip(found["a"].tolist(), found["b"].tolist(), strict=True)) == pairs
        felt = sim.observe("rigid.box.contact_force")
        np.testing.assert_allclose(found["force"].sum(axis=0), felt, rtol=1e-9)
        assert found["force"][0, 1] > 1.0 and np.abs(found["force"][1]).max() > 1.0


def test_bodies_that_are_held_are_listed():
    with Simulation(Scene.from_dict(grains_and_solids().to_dict() | {"duration": 0.03}), precision="f64") as sim:
        found = sim.observe("contacts")
        pairs = set(zip(found["a"].tolist(), found["b"].tolist(), strict=True))
        assert {("rigid.box", "grains.sand"), ("rigid.shelf", "grains.sand")} <= pairs
        assert found["impulse"][found["a"] == "rigid.shelf"][0, 1] < 0.0
        with pytest.raises(ValueError, match=r"fixed does not feel .*observe\('contacts'\)"):
            sim.observe("rigid.shelf.contact_force")


@pytest.mark.parametrize("beside", ["continua", "springs and grains"])
def test_a_link_feels_particles_as_the_table_tells(beside):
    if beside == "continua":
        scene = hinged()
    else:
        tables = grains_and_solids().to_dict()
        del tables["rigid"]["shelf"], tables["rigid"]["box"]["velocity"]
        tables["joints"] = {"pin": {"kind": "hinge", "child": "box", "anchor": [0.25, 0.16]}}
        scene = Scene.from_dict(tables)
    with Simulation(scene, precision="f64") as sim:
        sim.run()
        found = sim.observe("contacts")
        sign = np.where(found["a"] == "rigid.box", 1.0, 0.0) - np.where(found["b"] == "rigid.box", 1.0, 0.0)
        told = (sign[:, None] * found["force"]).sum(axis=0)
        felt = sim.observe("rigid.box.contact_force")
        assert np.abs(told).max() > 0.0
        assert np.abs(felt - told).max() < 1e-9 * np.abs(told).max()
        assert np.isfinite(sim.observe("joints.pin.force")).all()
