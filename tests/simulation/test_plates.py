"""Thin rigid bodies in scenes with continua: which are plates, what is said of them, motion, gradients, audit."""

import numpy as np
import pytest

from taichi_sim import Scene, Simulation

CELL = 0.05


def scene(thickness=0.5, **changes) -> Scene:
    """A block that slides along a plate, ``thickness`` cells thick, and another that lies on its other side."""
    half = thickness * CELL / 2

    def block(low: float) -> dict:
        return {"shape": {"kind": "box", "lower": [0.3, low], "upper": [0.6, low + 0.15]}, "material": "jelly"}

    table = {
        "format": 1, "dim": 2, "duration": 0.1, "frame_dt": 0.02, "gravity": [0.0, 0.0],
        "domain": {"upper": [1.0, 1.0], "spacing": CELL}, "solver": {"dt": 5e-4, "max_speed": 3.0},
        "materials": {"jelly": {"law": "neo_hookean", "density": 1e3, "youngs_modulus": 2e4, "poissons_ratio": 0.3}},
        "bodies": {"above": {**block(0.5 + half), "velocity": [0.5, 0.0]}, "below": block(0.35 - half)},
        "rigid": {
            "plate": {"shape": {"kind": "box", "lower": [0.1, 0.5 - half], "upper": [0.9, 0.5 + half]}, "mass": 50.0,
                      "friction": 0.0}
        },
        "objectives": {"below": {"kind": "velocity", "body": "below", "direction": [1.0, 0.3]},
                       "plate": {"kind": "position", "body": "plate", "direction": [1.0, 1.0]}},
    }  # fmt: skip
    return Scene.from_dict(table | changes)


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_the_other_side_does_not_move(precision):
    with Simulation(scene(), precision=precision, envs=2) as sim:
        assert len(sim.notes) == 1 and "rigid.plate is 0.5 cells thick: matter on its two sides gets" in sim.notes[0]
        sim.run()
        above, below = (sim.observe(f"bodies.{name}.velocity") for name in ("above", "below"))
    assert np.allclose(above, [0.5, 0.0], atol=1e-4) and np.abs(below).max() < 1e-4


def test_what_is_thick_needs_no_layers():
    with Simulation(scene(2.5), precision="f64") as sim:
        assert not sim.notes and sim.model.continuum is not None and sim.model.continuum.plan.layers == 1


def test_what_cannot_be_a_plate_is_said():
    """Not boxes; a body that lets one of the two through has no side of it; one solid alone stays on one."""
    rod = scene()
    rod.rigid["plate"].shape = {"kind": "capsule", "start": [0.1, 0.5], "end": [0.9, 0.5], "radius": 0.01}
    open_ = scene()
    open_.rigid["plate"].no_contact = ["below"]
    for given, why in ((rod, "flat boxes keep it apart"), (open_, "no_contact names none of the continua")):
        with Simulation(given, precision="f64") as sim:
            assert any("sticks together through the grid" in note and why in note for note in sim.notes)
    single = scene().to_dict()
    del single["bodies"]["below"], single["objectives"]["below"]
    with Simulation(Scene.from_dict(single), precision="f64") as sim:
        assert not sim.notes and sim.model.continuum is not None and sim.model.continuum.plan.layers == 1


def pressed() -> Scene:
    """The two blocks are thrown at the plate, which turns, and stick to it."""
    found = scene(gravity=[0.0, -3.0]).to_dict()
    found["bodies"]["above"]["velocity"], found["bodies"]["below"]["velocity"] = [0.4, -1.0], [0.0, 0.6]
    found["rigid"]["plate"] |= {"friction": 0.4, "stiction_speed": 0.05, "rotation": 0.02, "velocity": [0.1, 0.2]}
    return Scene.from_dict(found)


def test_every_gradient():
    with Simulation(pressed(), precision="f64") as sim:
        paths = [f"rigid.plate.{name}" for name in ("mass", "friction", "velocity", "angular_velocity", "scale")]
        paths += ["bodies.above.velocity", "bodies.below.position", "materials.jelly.youngs_modulus", "gravity"]
        report = sim.check_gradients("loss", paths)
        assert report.ok, report


def test_checkpoints():
    found = []
    for segment in (None, 7):
        with Simulation(pressed(), precision="f64", segment=segment) as sim:
            found.append(sim.value_and_grad("loss", ["rigid.plate.velocity", "bodies.above.velocity"]))
    assert found[0][0] == found[1][0]
    for path, values in found[0][1].items():
        np.testing.assert_allclose(found[1][1][path], values, rtol=1e-11)


def test_audit():
    """The grid's two layers are counted once where they are one."""
    with Simulation(pressed(), precision="f64") as sim:
        ledger = sim.audit()
    assert not ledger.failures, ledger.failures
