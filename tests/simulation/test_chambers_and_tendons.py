"""Pneumatic chambers and tendons in scenes: gradients by every quantity, energy, momentum, environments, mistakes."""

import numpy as np
import pytest

from taichi_sim import Scene, Simulation
from taichi_sim.compile.acting.cavities import volume
from taichi_sim.compile.acting.forces import ActingForces

CHAMBER = {"kind": "chamber", "body": "it", "strength": 40.0, "signal": {"kind": "constant", "value": 1.0}}
AIR = {**CHAMBER, "command": "mass", "strength": 1e-4, "ambient": 100.0}


def ring(**actuators) -> Scene:
    """Sixteen points in a circle, in flight."""
    turn = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    return Scene.from_dict({
        "format": 1, "dim": 2, "duration": 0.1, "frame_dt": 0.02, "gravity": [0.0, -3.0],
        "domain": {"lower": [-1.0, -1.0], "upper": [1.0, 1.0]},
        "springs": {
            "it": {
                "kind": "points", "points": (0.2 * np.stack([np.cos(turn), np.sin(turn)], axis=1)).tolist(),
                "edges": [[i, (i + 1) % 16] for i in range(16)], "mass": 1.0, "stiffness": 400.0, "damping": 0.3,
                "position": [0.1, 0.2], "rotation": 0.2, "velocity": [0.4, 0.1], "angular_velocity": 0.7,
            }
        },
        "actuators": actuators,
        "objectives": {"way": {"kind": "position", "body": "it", "direction": [1.0, 0.4]}},
    })  # fmt: skip


def rope(host: str, points, through, **changes) -> dict:
    return {
        "kind": "tendon", "body": host, "points": points, "through": through, "friction": 0.3, "strength": 5.0,
        "signal": {"kind": "sinusoids", "frequency": 4.0, "phases": [0.3], "weights": [0.4], "bias": 0.9}, **changes,
    }  # fmt: skip


RING_ROPE = rope("it", [[0.6, 0.5], [0.2, 0.0], [-0.2, 0.0]], ["world", "it", "it"])
SPRING_ROPE = {**RING_ROPE, "command": "length", "strength": 0.1, "stiffness": 30.0, "slack": -0.05}


def block(dim: int, **actuators) -> Scene:
    """A soft block with a cavity, in flight; in the plane, held at nothing."""
    up = [0.0] * (dim - 1)
    return Scene.from_dict({
        "format": 1, "dim": dim, "duration": 0.02 if dim == 2 else 0.004, "frame_dt": 0.01 if dim == 2 else 0.002,
        "gravity": [*up, -9.81],
        "domain": {"lower": [0.0] * dim, "upper": [0.3] * dim, "spacing": 0.02},
        "materials": {"soft": {"law": "neo_hookean", "density": 1000.0, "youngs_modulus": 2e4, "poissons_ratio": 0.3}},
        "bodies": {
            "it": {
                "shape": {
                    "kind": "difference", "base": {"kind": "box", "lower": [0.1] * dim, "upper": [0.24] * dim},
                    "remove": [{"kind": "box", "lower": [0.15] * dim, "upper": [0.2] * (dim - 1) + [0.19]}],
                },
                "material": "soft", "velocity": [0.2] * dim, "rotation": 0.1 if dim == 2 else [0.1, 0.0, 0.2],
            }
        },
        "actuators": actuators,
        "objectives": {
            "way": {"kind": "position", "body": "it", "direction": [1.0] + [0.4] * (dim - 1)},
            "spread": {"kind": "velocity", "body": "it", "direction": [0.3] + [1.0] * (dim - 1), "when": "running"},
        },
    })  # fmt: skip


def assert_agree(scene: Scene) -> None:
    with Simulation(scene, precision="f64") as sim:
        for of in ("loss", f"{'springs' if scene.springs else 'bodies'}.it.kinetic_energy"):
            report = sim.check_gradients(of, list(sim.parameters()))
            assert report.ok, report


@pytest.mark.parametrize(
    "actuators", [{"air": CHAMBER}, {"air": AIR}, {"cable": RING_ROPE}, {"cable": SPRING_ROPE, "air": AIR}],
    ids=["pressure", "mass", "tension", "length and mass"],
)  # fmt: skip
def test_gradients_of_springs(actuators: dict) -> None:
    assert_agree(ring(**actuators))


BLOCK_ROPE = rope(
    "it", [[0.25, 0.28], [0.22, 0.22], [0.12, 0.2], [0.11, 0.12]], ["world", "it", "it", "it"], strength=2.0
)
AIR_IN_BLOCK = {**AIR, "strength": 1e-5, "ambient": 500.0}


@pytest.mark.parametrize(
    "actuators",
    [{"air": {**CHAMBER, "strength": 300.0}}, {"air": AIR_IN_BLOCK, "cable": BLOCK_ROPE}],
    ids=["pressure", "mass and tension"],
)
def test_gradients_of_a_continuum(actuators: dict) -> None:
    assert_agree(block(2, **actuators))


@pytest.mark.slow
def test_gradients_of_a_continuum_in_space() -> None:
    rope_in_space = rope("it", [[0.22, 0.22, 0.22], [0.12, 0.2, 0.12], [0.11, 0.12, 0.2]], [])
    scene = block(3, air=AIR_IN_BLOCK, cable=rope_in_space)
    with Simulation(scene, precision="f64") as sim:
        wrt = ["actuators.*.strength", "actuators.cable.points", "bodies.it.velocity", "materials.soft.density", "dt"]
        report = sim.check_gradients(wrt=wrt)
        assert report.ok, report


FREE_ROPE = rope("it", [[0.2, 0.0], [0.0, 0.2], [-0.2, 0.0]], [])


def pulled(dt: float, air: dict) -> tuple[np.ndarray, np.ndarray]:
    """Kinetic and elastic energy gained at every frame, J, and the work of the air."""
    scene = ring(air=air)
    scene.springs["it"].damping, scene.gravity, scene.solver.dt = 0.0, [0.0, 0.0], dt
    faces = np.column_stack([np.arange(16), (np.arange(16) + 1) % 16])
    rest = 0.4 * np.sin(np.pi / 16)
    with Simulation(scene, precision="f64") as sim:
        sim.run(record=["springs.it.kinetic_energy"])
        assert sim.rollout is not None
        x = sim.rollout.position.astype(float)
        kinetic = sim.rollout.observed["springs.it.kinetic_energy"]
    longer = np.linalg.norm(np.roll(x, -1, axis=1) - x, axis=2) - rest
    gained = kinetic + 0.5 * 400.0 * (longer**2).sum(axis=1)
    room = np.array([volume(places, faces)[0] for places in x])
    if air["kind"] == "chamber" and air.get("command") == "mass":
        gas = 287.05 * 293.15 * air["strength"] + air["ambient"] * room[0]
        return gained - gained[0], gas * np.log(room / room[0]) - air["ambient"] * (room - room[0])
    return gained - gained[0], air["strength"] * (room - room[0])


@pytest.mark.parametrize("air", [CHAMBER, AIR], ids=["pressure", "mass"])
def test_the_work_of_the_air_is_the_energy_gained(air: dict) -> None:
    """∫ p dV at constant pressure and of an isothermal gas; what is left is that of the steps, of first order."""
    errors = []
    for dt in (2e-3, 1e-3, 5e-4):
        gained, work = pulled(dt, air)
        assert work.max() > 1.0
        errors.append(np.abs(gained - work).max() / work.max())
    assert errors[2] < 0.01 and errors[0] > 1.5 * errors[1] > 2.25 * errors[2], errors


@pytest.mark.parametrize("host", ["springs", "bodies"])
def test_what_acts_within_a_body_does_not_move_it(host: str) -> None:
    """Momentum of what swells and is pulled together stays as it is; of springs, angular momentum too (a continuum has
    a part of it in affine velocities)."""
    scene = ring(air=AIR, cable=FREE_ROPE)
    if host == "bodies":
        scene = block(2, air=AIR_IN_BLOCK, cable=rope("it", [[0.22, 0.22], [0.12, 0.2], [0.11, 0.12]], []))
    scene.gravity = [0.0, 0.0]
    with Simulation(scene, precision="f64") as sim:
        sim.run(record=[f"{host}.it.{what}" for what in ("position", "velocity", "kinetic_energy")])
        assert sim.rollout is not None
        x, v, energy = sim.rollout.observed.values()
    assert energy[-1] > 1.005 * energy[0]
    momentum = v.sum(axis=1)
    assert np.abs(momentum - momentum[0]).max() < 1e-11 * np.abs(momentum).max()
    turning = (x[..., 0] * v[..., 1] - x[..., 1] * v[..., 0]).sum(axis=1)
    assert host == "bodies" or np.abs(turning - turning[0]).max() < 1e-11 * np.abs(turning).max()


def test_a_scene_far_away_is_the_same() -> None:
    """Chambers and tendons go with the pose: nothing depends on where a body stands or how it is turned."""
    final = []
    for position, angle in (([0.0, 0.0], 0.0), ([0.3, -0.2], 1.1)):
        scene = ring(air=AIR, cable=FREE_ROPE)
        it = scene.springs["it"]
        it.position, it.rotation, it.velocity, it.angular_velocity = position, angle, [0.0, 0.0], 0.0
        scene.gravity = [0.0, 0.0]
        with Simulation(scene, precision="f64") as sim:
            sim.run()
            x = np.asarray(sim.observe("springs.it.position"))
        c, s = np.cos(-angle), np.sin(-angle)
        final.append((x - x.mean(axis=0)) @ np.array([[c, -s], [s, c]]).T)
    assert np.allclose(*final, atol=1e-12)


@pytest.mark.parametrize("scene", [ring(air=AIR, cable=RING_ROPE), block(2, air=AIR_IN_BLOCK, cable=BLOCK_ROPE)])
def test_environments_and_segments(scene: Scene) -> None:
    """Environments are independent, gradients do not depend on what is kept, and runs with and without are alike."""
    wrt = ["actuators.cable.points", "actuators.cable.strength", "actuators.air.strength", "actuators.air.ambient"]
    strengths = [3.0, 6.0]
    with Simulation(scene, precision="f64", envs=2) as sim:
        sim.set("actuators.cable.strength", strengths)
        both, found = sim.value_and_grad("loss", wrt)
    for e, strength in enumerate(strengths):
        for segment in (None, 10):
            with Simulation(scene, precision="f64", segment=segment) as sim:
                sim.set("actuators.cable.strength", strength)
                value, alone = sim.value_and_grad("loss", wrt)
                state = sim.state_hash()
                sim.run()
                assert sim.state_hash() == state
            assert value == pytest.approx(both[e], rel=1e-13)
            for path in wrt:
                assert np.allclose(alone[path], found[path][e], rtol=1e-9, atol=1e-12), path
    assert both[0] != both[1]


@pytest.mark.slow
@pytest.mark.parametrize("soft", [True, False], ids=["continuum", "springs"])
def test_gradients_beside_a_rigid_body(soft: bool) -> None:
    """A chamber and a cable act on what presses on a rigid body at the same time."""
    scene = block(2, air=AIR_IN_BLOCK, cable=BLOCK_ROPE) if soft else ring(air=AIR, cable=RING_ROPE)
    place, speed = ([0.055, 0.17], 1.5) if soft else ([0.395, 0.2], -0.6)
    ball = {"kind": "sphere", "center": place, "radius": 0.03 if soft else 0.08}
    table = {**scene.to_dict(), "rigid": {"ball": {"shape": ball, "density": 300.0, "velocity": [speed, 0.0]}}}
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        sim.run()
        assert abs(np.asarray(sim.observe("rigid.ball.velocity")).ravel()[0] - speed) > 1e-3
        report = sim.check_gradients(wrt=["actuators.air.strength", "actuators.cable.points", "rigid.ball.velocity"])
        assert report.ok, report


@pytest.mark.parametrize("name", ["cable", "air"])
def test_what_is_stiff_makes_steps_short(name, monkeypatch):
    """A cable of stiffness k on one point of mass m swings at √(k/m); a step that ignores it makes energy."""
    stiff = {
        "cable": {**rope("it", [[0.6, 0.0], [0.2, 0.0]], ["world", "it"]), "command": "length", "strength": 0.01,
                  "stiffness": 6e4},
        "air": {**AIR, "ambient": 5e5},
    }  # fmt: skip
    scene = ring(**{name: stiff[name]})
    with Simulation(scene, precision="f64") as sim:
        limit = sim.model.limit
        assert limit.culprit == f"actuators.{name}" and "over the mass of what it acts on" in limit.why
        if name == "cable":
            assert 0.8 < limit.allowed * np.sqrt(6e4 * 16) <= 1.0
        energy = float(sim.observe("springs.it.kinetic_energy"))
    monkeypatch.setattr(ActingForces, "tightened", lambda self, limit, *_: limit)
    with Simulation(scene, precision="f64") as sim:
        assert float(sim.observe("springs.it.kinetic_energy")) > 10.0 * energy, energy
