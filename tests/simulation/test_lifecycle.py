"""Building, living side by side, closing: memory comes back, and what is gone says so."""

import resource
import threading

import numpy as np
import pytest
from tiny import tiny

from taichi_sim import Simulation


def build(changes=None, **options):
    return Simulation(tiny(changes), precision="f64", threads=2, **options)


def resident_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def test_thirty_simulations_leave_nothing_behind():
    """Each holds some 2 MB and touches it: 30 of them would be seen."""

    def once() -> float:
        with build(envs=6, segment=60) as sim:
            sim.array("bodies.block.position")
            sim.value_and_grad()
            return sim.schedule.bytes / 1e6

    size = once()
    assert size > 1.5
    once()
    before = resident_mb()
    for _ in range(30):
        once()
    assert resident_mb() - before < 10 * size


def test_memory_is_what_was_planned():
    """The printed budget covers the arrays the solver really makes."""
    for segment in (5, 60):
        with build(segment=segment) as sim:
            held = sim._world.solvers["continuum"].store.bytes
            assert held <= sim.schedule.bytes <= 1.2 * held + 60 * 53 * 100


def test_two_live_side_by_side():
    with build() as one, build({"materials.jelly.youngs_modulus": 1.5e4}, segment=7) as two:
        first, second = one.value_and_grad(), two.value_and_grad()
        assert first[0] != second[0]
        one.set("gravity", [0.0, 1.0])
        one.run()
        again = two.value_and_grad()
        assert again[0] == second[0]
        assert np.array_equal(*(found[1]["actuators.muscle.signal.weights"] for found in (again, second)))
        one.set("gravity", [0.0, -9.0])
        one.close()
        assert two.value_and_grad()[0] == second[0]
        with build() as three:
            assert three.value_and_grad()[0] == first[0]


def test_threads_of_python_may_each_have_one():
    speeds = [0.0, 0.1, 0.2]
    with build() as sim:
        expected = []
        for speed in speeds:
            sim.set("bodies.block.velocity", [speed, -1.0])
            expected.append(sim.value_and_grad()[0])
    found: dict[int, object] = {}

    def work(k: int) -> None:
        try:
            with build({"bodies.block.velocity": [speeds[k], -1.0]}) as own:
                values = {own.value_and_grad()[0] for _ in range(3)}
                own.observe("elastic_energy")
                found[k] = values
        except Exception as error:
            found[k] = error

    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {k: {expected[k]} for k in range(3)}


def test_the_scene_is_not_changed():
    scene = tiny()
    before = scene.to_dict()
    with Simulation(scene, precision="f64", threads=2) as sim:
        sim.set("gravity", [0.0, 0.0])
        sim.value_and_grad()
        assert scene.to_dict() == before
        loss = sim.observe("loss")
        scene.gravity = [0.0, 5.0]
        scene.bodies["block"].velocity = [9.0, 9.0]
        sim.set("gravity", [0.0, 0.0])
        assert sim.observe("loss") == loss


def test_closed():
    with build() as sim:
        sim.run()
    for call in (
        sim.run, sim.state_hash, sim.value_and_grad, sim.check_gradients, lambda: sim.observe("loss"),
        lambda: sim.vjp("loss", "gravity", 1.0), lambda: sim.jacobian("loss", "gravity"),
        lambda: sim.jvp("loss", "gravity", [1.0, 0.0]), lambda: sim.array("bodies.block.position"),
        lambda: sim.set("gravity", [0.0, 0.0]), lambda: sim.why_zero("gravity"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"this simulation was closed; build it again"):
            call()
    sim.close()


def test_a_build_that_fails_leaves_nothing_half_made():
    for changes, options in (({"solver.dt": 1.0}, {}), ({}, {"memory": 10}), ({"bodies.block.material": "jely"}, {})):
        with pytest.raises(ValueError):
            build(changes, **options)
    with build() as sim:
        assert np.isfinite(sim.value_and_grad()[0])


def test_progress_and_record():
    with build() as sim:
        seen = []
        sim.run(record=True, progress=lambda done, of: seen.append((done, of)))
        assert seen == [(5 * f, 60) for f in range(13)]
        rollout = sim.rollout
        assert rollout is not None
        assert np.allclose(rollout.times, 0.02 * np.arange(13))
        assert rollout.position.shape == (13, 53, 2) and rollout.position.dtype == np.float32
        assert np.array_equal(rollout.position[-1], sim.observe("position").astype(np.float32))
        assert rollout.activation.shape == (12, 1)
        assert rollout.bodies == {"block": slice(0, 32), "ball": slice(32, 53)}
        assert rollout.observed == {}
