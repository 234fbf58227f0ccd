"""What mechanics knows without solving anything: conservation, free flight, walls, friction, damping, equal causes."""

import numpy as np
import pytest
from tiny import DELETE, FREE, tiny

from taichi_sim import Simulation

#: One body alone.
ALONE = {**FREE, "bodies.block": DELETE}
BALL = {"shape": {"kind": "sphere", "center": [0.4, 0.4], "radius": 0.12}, "material": "jelly"}


def build(changes, **options):
    return Simulation(tiny(changes), precision="f64", threads=2, **options)


def test_free_flight_is_the_discrete_parabola():
    velocity, g = np.array([0.5, 1.0]), np.array([0.3, -9.0])
    changes = {**ALONE, "bodies.ball": {**BALL, "velocity": velocity}, "gravity": g, "duration": 0.12}
    with build(changes) as sim:
        sim.run(record=["center_of_mass", "mean_velocity"])
        assert sim.rollout is not None
        start = sim.rollout.observed["center_of_mass"][0]
        for f in range(sim.frames + 1):
            n = f * sim.substeps
            assert np.allclose(sim.rollout.observed["mean_velocity"][f], velocity + n * sim.dt * g, rtol=1e-12)
            fallen = start + n * sim.dt * velocity + n * (n + 1) / 2 * sim.dt**2 * g
            assert np.allclose(sim.rollout.observed["center_of_mass"][f], fallen, rtol=1e-12)
        F = sim.observe("deformation")
        assert np.abs(F - np.eye(2)).max() < 1e-12, "nothing deforms"


def test_a_collision_keeps_momentum_and_loses_energy():
    changes = {**FREE, "bodies.block.angular_velocity": 0.0, "bodies.block.velocity": [0.0, 1.0],
               "bodies.ball.velocity": [0.3, -1.0],
               "domain.lower": [-0.8, -0.8], "domain.upper": [1.6, 1.6]}  # fmt: skip
    with build(changes) as sim:
        sim.run(record=["momentum", "kinetic_energy", "elastic_energy", "bodies.ball.momentum"])
        assert sim.rollout is not None
        seen = sim.rollout.observed
        scale = np.abs(seen["bodies.ball.momentum"][0]).max()
        assert np.abs(seen["momentum"] - seen["momentum"][0]).max() < 1e-12 * scale
        exchanged = np.abs(seen["bodies.ball.momentum"] - seen["bodies.ball.momentum"][0]).max()
        assert exchanged > 0.5 * scale, "they meet"
        total = seen["kinetic_energy"] + seen["elastic_energy"]
        assert total[0] == seen["kinetic_energy"][0]
        assert (total <= total[0] * 1.005).all() and total[-1] > 0.4 * total[0]


def test_spin_is_kept_for_a_second():
    changes = {**ALONE, "bodies.ball": {**BALL, "angular_velocity": 3.0}, "duration": 1.0}
    with build(changes) as sim:
        sim.run(record=["position", "velocity", "center_of_mass"])
        assert sim.rollout is not None
        x, v, com = (sim.rollout.observed[name] for name in ("position", "velocity", "center_of_mass"))
        arm = x - com[:, None]
        turn = np.sum(arm[..., 0] * v[..., 1] - arm[..., 1] * v[..., 0], axis=1)
        assert np.abs(turn[1:] / turn[1] - 1).max() < 1e-3
        straight = com[0] + np.linspace(0, 1, len(com))[:, None] * (com[-1] - com[0])
        assert np.abs(com - straight).max() < 1e-12


def test_damping_slows_down_exactly():
    changes = {**ALONE, "bodies.ball": {**BALL, "velocity": [0.5, 0.2]}, "damping": 3.0, "duration": 0.1}
    with build(changes) as sim:
        slower = (1 + 3.0 * sim.dt) ** -(sim.substeps * sim.frames)
        assert np.allclose(sim.observe("mean_velocity"), slower * np.array([0.5, 0.2]), rtol=1e-12)


@pytest.mark.parametrize(("wall", "slides", "leaves"), [("sticky", 0, 0), ("slip", 1, 0), ("separate", 1, 1)])
def test_walls(wall, slides, leaves):
    """A block pressed onto the floor, then pulled off it; thrown along it."""
    block = {"shape": {"kind": "box", "lower": [0.2, 0.0], "upper": [0.6, 0.2]}, "material": "jelly"}
    base = {**FREE, "bodies.ball": DELETE, "domain.walls": {"default": "slip", "y_lower": wall}, "duration": 0.2}
    with build({**base, "bodies.block": {**block, "velocity": [0.2, 0.0]}, "gravity": [0.0, -5.0]}) as sim:
        sim.run(record=["mean_velocity"])
        assert sim.rollout is not None
        along = sim.rollout.observed["mean_velocity"][:, 0]
        assert (along[-1] == pytest.approx(0.2, rel=1e-6)) == bool(slides)
        assert sim.observe("position")[:, 1].min() > 0
    with build({**base, "bodies.block": {**block, "velocity": [0.0, 0.5]}}) as sim:
        bottom = sim.observe("position")[:, 1].min()
        assert (bottom > 0.09) == bool(leaves), bottom


def test_coulomb_friction_brakes_as_it_should():
    """A stiff block slides: deceleration μ g within a few per cent, and it comes to rest."""
    block = {"shape": {"kind": "box", "lower": [0.2, 0.0], "upper": [0.5, 0.2]}, "material": "jelly"}
    changes = {
        **FREE, "bodies.ball": DELETE, "bodies.block": {**block, "velocity": [0.8, 0.0]}, "gravity": [0.0, -5.0],
        "domain.walls": {"default": "slip", "y_lower": {"kind": "separate", "friction": 0.4}}, "duration": 0.8,
        "materials.jelly.youngs_modulus": 4e4, "damping": 0.0, "solver": {"max_speed": 4.0},
    }  # fmt: skip
    with build(changes) as sim:
        sim.run(record=["mean_velocity", "center_of_mass"])
        assert sim.rollout is not None
        v = sim.rollout.observed["mean_velocity"][:, 0]
        t = sim.rollout.times
        sliding = (t > 0.02) & (t < 0.36)
        assert np.polyfit(t[sliding], v[sliding], 1)[0] == pytest.approx(-0.4 * 5.0, rel=0.05)
        assert abs(v[-1]) < 0.04
        way = sim.rollout.observed["center_of_mass"][-1, 0] - sim.rollout.observed["center_of_mass"][0, 0]
        assert way == pytest.approx(0.8**2 / (2 * 0.4 * 5.0), rel=0.06)
    with build({**changes, "domain.walls": {"default": "slip", "y_lower": "separate"}, "duration": 0.1}) as sim:
        assert sim.observe("mean_velocity")[0] == pytest.approx(0.8, rel=1e-6)


def test_an_obstacle_keeps_matter_out():
    changes = {**FREE, "bodies.block": DELETE, "gravity": [0.0, -5.0], "duration": 0.6,
               "bodies.ball": {**BALL, "position": [0.02, 0.1]},
               "obstacles": {"rock": {"shape": {"kind": "sphere", "center": [0.4, 0.15], "radius": 0.15}}}}  # fmt: skip
    with build(changes) as sim:
        sim.run(record=["position", "mean_velocity"])
        assert sim.rollout is not None
        depth = 0.15 - np.linalg.norm(sim.rollout.observed["position"] - [0.4, 0.15], axis=-1)
        assert depth.max() < 0.05, "half a cell"
        slid = sim.observe("center_of_mass")[0]
    with build({**changes, "obstacles.rock": {"shape": {"kind": "sphere", "center": [0.4, 0.15], "radius": 0.15},
                                              "kind": "sticky"}}) as sim:  # fmt: skip
        stuck = sim.observe("center_of_mass")[0]
    assert slid > 0.48 and stuck < 0.46, "it slides off to the right, where it was dropped, or stays where it hit"


def test_periodic_sides_are_one():
    walls = {"default": "slip", "x_lower": "periodic", "x_upper": "periodic"}
    changes = {**ALONE, "domain.walls": walls, "bodies.ball": {**BALL, "velocity": [3.0, 0.1]}, "duration": 0.4}
    with build(changes) as sim:
        sim.run(record=["position", "momentum", "deformation"])
        assert sim.rollout is not None
        seen = sim.rollout.observed
        expected = seen["position"][0] + 0.4 * np.array([3.0, 0.1])
        assert np.allclose(seen["position"][-1], expected, rtol=1e-12)
        assert seen["position"][8, :, 0].min() < 0.8 < seen["position"][8, :, 0].max(), "it lies across the side"
        assert np.allclose(seen["momentum"], seen["momentum"][0], rtol=1e-12)
        assert np.abs(seen["deformation"] - np.eye(2)).max() < 1e-10


def test_equal_causes_have_equal_effects():
    """Gravity, a uniform field, a push on every body and a body-force actuator are one acceleration."""
    base = {
        "obstacles": DELETE, "objectives": DELETE, "design": DELETE, "damping": 0.0, "gravity": [0.0, 0.0],
        "bodies.block.acceleration": [0.0, 0.0], "actuators.muscle.strength": 0.0,
        "fields.wind.acceleration": [0.0, 0.0], "duration": 0.16,
    }  # fmt: skip
    a = [1.0, -4.0]
    still = {"kind": "constant", "value": 1.0}
    force = {"kind": "body_force", "direction": a, "strength": float(np.hypot(*a)), "signal": still}
    causes = {
        "gravity": {"gravity": a},
        "field": {"fields.wind": {"kind": "uniform", "acceleration": a}},
        "half a field twice as strong": {
            "fields.wind": {"kind": "uniform", "acceleration": [2.0, -8.0], "signal": {**still, "value": 0.5}}
        },
        "push": {"bodies.block.acceleration": a, "bodies.ball.acceleration": a},
        "push of every particle in every frame": {
            "bodies.block.acceleration": np.tile(a, (8, 32, 1)), "bodies.ball.acceleration": np.tile(a, (8, 21, 1))
        },
        "actuators": {"actuators": {"one": {**force, "body": "block"}, "two": {**force, "body": "ball"}}},
        "actuators that overlap": {
            "actuators": {
                "one": {**force, "body": "block"}, "two": {**force, "body": "ball"},
                "left": {**force, "body": "block", "region": "right"},
                "right": {**force, "body": "block", "region": "right", "strength": -force["strength"]},
            }
        },
    }  # fmt: skip
    found = {}
    for name, cause in causes.items():
        with build({**base, **cause}) as sim:
            found[name] = sim.observe("position"), sim.observe("velocity")
    for name, (x, v) in found.items():
        assert np.allclose(x, found["gravity"][0], rtol=0, atol=1e-12), name
        assert np.allclose(v, found["gravity"][1], rtol=0, atol=1e-11), name
    assert np.abs(found["gravity"][1]).max() > 0.3


def test_a_muscle_pulls_along_its_fibre():
    base = {**FREE, "bodies.ball": DELETE, "bodies.block.velocity": [0.0, 0.0], "bodies.block.angular_velocity": 0.0,
            "duration": 0.1, "damping": 20.0}  # fmt: skip
    muscle = {"kind": "muscle", "body": "block", "direction": [0.0, 2.0], "strength": 3e3}
    for u, sign in ((0.8, -1), (-0.8, 1), (0.0, 0)):
        signal = {"kind": "constant", "value": u}
        with build({**base, "actuators": {"up": {**muscle, "signal": signal}}}) as sim:
            F = sim.observe("deformation").mean(axis=0)
            assert np.sign(np.round(F[1, 1] - 1, 6)) == sign
            assert np.sign(np.round(F[0, 0] - 1, 6)) == -sign, "it bulges"
            assert np.abs(sim.observe("momentum")).max() < 1e-10, "from within"


def test_density_scales_nothing_in_free_motion_and_inertia_in_contact():
    changes = {**FREE, "bodies.ball.velocity": [0.0, -1.5], "bodies.block.angular_velocity": 0.0}
    with build(changes) as sim:
        x = sim.observe("position")
        sim.set("materials.jelly.density", 2000.0)
        sim.set("materials.jelly.youngs_modulus", 4e4)
        sim.set("bodies.ball.material.youngs_modulus", 2e4)
        assert np.allclose(sim.observe("position"), x, rtol=1e-9), "stiffness and density together change nothing"
        sim.set("materials.jelly.youngs_modulus", 2e4)
        assert not np.allclose(sim.observe("position"), x, rtol=1e-4)
