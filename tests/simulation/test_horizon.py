"""A shorter horizon is the scene cut there, to the bit, in the simulation that is there already."""

import numpy as np
import pytest
from test_rigid import scene as rigid_scene
from tiny import tiny

from taichi_sim import Scene, Simulation
from taichi_sim.runtime import ti

FRAMES = 12
PUSH = np.linspace(0.2, 1.0, FRAMES)
SOFT = ["gravity", "dt", "materials.jelly.youngs_modulus", "bodies.block.velocity", "fields.wind.signal.weights"]
RIGID = ["gravity", "rigid.cube.velocity", "rigid.cube.scale", "rigid.ball.friction"]


def pushed():
    """The small scene, its muscle driven by one number a frame."""
    return tiny({"actuators.muscle.signal": {"kind": "array", "values": PUSH}, "design": []})


def shortened(scene: Scene, sim: Simulation, frames: int) -> Scene:
    """``scene`` cut to its first ``frames``, with the step it has as a whole (``sim``)."""
    short = scene.copy()
    short.duration = frames * sim.frame_dt
    short.solver.dt = sim.frame_dt / sim.substeps
    if short.actuators:
        short.actuators["muscle"].signal.parameters["values"] = PUSH[:frames]
    return short


def seen(sim: Simulation, paths: list[str], observable: str) -> dict[str, object]:
    """Everything a rollout leaves, as bits."""
    value, gradients = sim.value_and_grad("loss", paths)
    found: dict[str, object] = {"loss": value, "state": sim.state_hash()}
    found |= {path: gradient.tobytes() for path, gradient in gradients.items()}
    sim.run(record=[observable])
    assert sim.rollout is not None
    found |= {"unrecorded": sim.state_hash(), "times": sim.rollout.times.tobytes()}
    found |= {"positions": sim.rollout.position.tobytes(), "activation": sim.rollout.activation.tobytes()}
    found |= {"observed": sim.rollout.observed[observable].tobytes(), "energy": float(sim.observe("kinetic_energy"))}
    return found


@pytest.mark.parametrize(
    ("scene", "paths", "frames"), [(pushed(), SOFT, 7), (rigid_scene(2), RIGID, 4)], ids=["soft", "rigid"]
)
def test_equals_a_scene_of_that_duration_to_the_bit_and_back(scene, paths, frames):
    with Simulation(scene, precision="f64", threads=2) as sim:
        whole = seen(sim, paths, "center_of_mass")
        short = shortened(scene, sim, frames)
        assert sim.horizon == sim.frames
        sim.horizon = frames
        assert sim.horizon == frames < sim.frames and sim.rollout is None
        cut = seen(sim, paths, "center_of_mass")
        sim.horizon = sim.frames
        assert seen(sim, paths, "center_of_mass") == whole
    with Simulation(short, precision="f64", threads=2) as sim:
        assert sim.frames == frames
        assert seen(sim, paths, "center_of_mass") == cut


def test_signals_keep_their_shape_and_have_no_gradient_beyond():
    path, reached = "actuators.muscle.signal.values", []
    with Simulation(pushed(), precision="f64") as sim:
        sim.run(record=True, progress=lambda t, total: reached.append((t, total)))
        assert reached[-1] == (FRAMES * sim.substeps,) * 2
        sim.horizon = 5
        _, found = sim.value_and_grad("loss", path)
        assert found[path].shape == (FRAMES,) and found[path][:5].all() and not found[path][5:].any()
        assert sim.observe("actuators.muscle.activation").shape == (FRAMES,)
        reached.clear()
        sim.run(record=True, progress=lambda t, total: reached.append((t, total)))
        assert sim.rollout is not None and sim.rollout.position.shape[0] == 6 and sim.rollout.activation.shape == (5, 1)
        assert reached[-1] == (5 * sim.substeps,) * 2
        assert sim.check_gradients("loss", ["bodies.block.velocity"]).ok


def test_memory_and_segments_do_not_matter():
    found = []
    for options in ({}, {"segment": 7}, {"memory": "40MB"}):
        with Simulation(pushed(), precision="f64", **options) as sim:
            held = sim.schedule.segment
            sim.horizon = 9
            assert sim.schedule.substeps == 9 * sim.substeps and sim.schedule.segment <= held
            found.append(sim.value_and_grad("loss", SOFT))
    for value, gradients in found:
        assert value == found[0][0]
        for path, gradient in gradients.items():
            np.testing.assert_allclose(gradient, found[0][1][path], rtol=1e-12, atol=1e-12)


def test_mistakes():
    with Simulation(rigid_scene(2), precision="f64") as sim:
        for wrong in (0, 11, 2.5, True, "all", None):
            with pytest.raises(ValueError, match=r"horizon = .*: must be a whole number from 1 to 10"):
                sim.horizon = wrong  # type: ignore[assignment]
        sim.horizon = np.int64(3)  # type: ignore[assignment]
        assert sim.horizon == 3 and type(sim.horizon) is int

        def change(t: int, total: int) -> None:
            sim.horizon = 2

        with pytest.raises(RuntimeError, match=r"inside run\(\)"):
            sim.run(progress=change)
        x = sim.array("rigid.cube.position")
        loss = ti.ndarray(ti.f64, (), needs_grad=True)
        with pytest.raises(RuntimeError, match=r"horizon cannot be set between run"), ti.ad.Tape(loss):
            sim.run()
            sim.horizon = 2
        assert x is not None and sim.horizon == 3
