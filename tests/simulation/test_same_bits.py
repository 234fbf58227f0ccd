"""Same scene, same seed, same bits: for one thread and two, recorded or not, in single and double precision."""

import numpy as np
import pytest
from tiny import tiny

from taichi_sim import Simulation
from taichi_sim.compile.continuum import build

PATHS = ["gravity", "dt", "materials.jelly.youngs_modulus", "bodies.block.velocity", "obstacles.rock.position",
         "actuators.muscle.signal.weights", "domain.walls.y_lower.friction", "fields.wind.signal.weights"]  # fmt: skip


def bits(precision: str, threads: int, envs: int) -> dict[str, object]:
    with Simulation(tiny(), precision=precision, threads=threads, envs=envs) as sim:
        if envs > 1:
            sim.set("gravity", np.stack([[0.0, -9.0 - e] for e in range(envs)]))
        sim.run()
        found: dict[str, object] = {"unrecorded": sim.state_hash()}
        value, gradients = sim.value_and_grad("loss", PATHS)
        found["recorded"] = sim.state_hash()
        found["loss"] = np.asarray(value).tobytes()
        found |= {path: gradient.tobytes() for path, gradient in gradients.items()}
        sim.run()
        found["again"] = sim.state_hash()
        return found


@pytest.mark.parametrize(
    ("precision", "envs"),
    [
        ("f64", 3), ("f32", 1),
        pytest.param("f32", 3, marks=pytest.mark.slow), pytest.param("f64", 1, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_threads_and_recording_change_no_bit(monkeypatch, precision, envs):
    """One environment by launches over shares of the work, three by one task each: both may use two threads."""
    monkeypatch.setattr(build, "SMALL", 0)
    one, two = (bits(precision, threads, envs) for threads in (1, 2))
    assert one == two
    assert one["unrecorded"] == one["recorded"] == one["again"]


def test_single_precision_is_near_double_and_does_not_depend_on_the_segment(monkeypatch):
    monkeypatch.setattr(build, "SMALL", 0)
    found = []
    for segment in (None, 1, 7, 64):
        with Simulation(tiny(), precision="f32", threads=2, segment=segment) as sim:
            found.append(sim.value_and_grad("loss", PATHS))
            position = sim.observe("position")
            with pytest.raises(ValueError, match=r"double precision"):
                sim.check_gradients()
    monkeypatch.undo()
    with Simulation(tiny(), precision="f64", threads=2) as sim:
        exact, gradients = sim.value_and_grad("loss", PATHS)
        assert np.abs(sim.observe("position") - position).max() < 1e-6
    for value, single in found:
        assert value == found[0][0] and value == pytest.approx(exact, rel=1e-5)
        for path in PATHS:
            scale = np.abs(gradients[path]).max()
            assert np.abs(single[path] - found[0][1][path]).max() <= 1e-5 * scale, path
            assert np.abs(single[path] - gradients[path]).max() <= 1e-3 * scale, path


def test_the_seed_places_particles():
    hashes = []
    for seed in (0, 1, 0):
        with Simulation(tiny(), precision="f64", threads=2, seed=seed) as sim:
            hashes.append(sim.state_hash())
    assert hashes[0] == hashes[2] != hashes[1]
