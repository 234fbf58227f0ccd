"""A user's own loss in Taichi: ``with ti.ad.Tape(loss): sim.run(); my_loss(sim.array(...))`` just works."""

import numpy as np
import pytest
from tiny import tiny

from taichi_sim import Simulation, runtime
from taichi_sim.runtime import ti

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)
TARGET = (0.7, 0.3)


@ti.kernel
def squared_distance(x: A1, loss: A1):
    for i in x:
        loss[0] += (x[i] - ti.Vector([0.7, 0.3])).norm_sqr() / x.shape[0]


@ti.kernel
def squared_speed(v: A1, loss: A1):
    for i in v:
        loss[0] += 0.01 * v[i].norm_sqr()


@ti.kernel
def stretch(F: A1, loss: A1):
    for i in F:
        loss[0] += F[i].norm_sqr()


@ti.kernel
def squared_distance_of_all(x: A2, loss: A1):
    for e, i in x:
        loss[0] += (1.0 + e) * (x[e, i] - ti.Vector([0.7, 0.3])).norm_sqr() / x.shape[1]


def same(frame):
    """The first of them as an objective of the scene."""
    apart = frame.position - TARGET
    return np.mean(np.sum(apart**2, axis=1)), {"position": 2 * apart / len(apart)}


SCENE = {"objectives": {"near": {"kind": "function", "function": same, "body": "block"}}}
PATHS = [
    "gravity", "materials.jelly.youngs_modulus", "bodies.block.velocity", "bodies.ball.velocity", "dt",
    "actuators.muscle.signal.weights", "obstacles.rock.position", "domain.walls.y_lower.friction",
]  # fmt: skip


@pytest.fixture(scope="module")
def sim():
    with Simulation(tiny(SCENE), precision="f64", threads=2) as made:
        yield made


@pytest.fixture(scope="module")
def loss(sim):
    return ti.ndarray(ti.f64, 1, needs_grad=True)


def through_tape(sim, loss, *measures):
    """``measures``: pairs of a kernel and the path of the array it takes."""
    loss.fill(0.0)
    with ti.ad.Tape(loss):
        sim.run()
        for kernel, path in measures:
            kernel(sim.array(path), loss)
    return float(loss[0]), {path: sim.gradient(path) for path in PATHS}


def test_it_equals_value_and_grad(sim, loss):
    expected, gradients = sim.value_and_grad("loss", PATHS)
    for _ in range(2):  # twice: nothing adds up
        value, found = through_tape(sim, loss, (squared_distance, "bodies.block.position"))
        assert value == pytest.approx(expected, rel=1e-14)
        for path in PATHS:
            assert np.any(found[path]), path
            assert np.allclose(found[path], gradients[path], rtol=1e-12, atol=0), path


def test_a_field_as_loss(sim):
    total = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def to_field(x: A1):
        for i in x:
            total[None] += (x[i] - ti.Vector([0.7, 0.3])).norm_sqr() / x.shape[0]

    expected, gradients = sim.value_and_grad("loss", PATHS)
    for _ in range(2):
        with ti.ad.Tape(total):
            sim.run()
            to_field(sim.array("bodies.block.position"))
        assert total[None] == pytest.approx(expected, rel=1e-14)
        assert all(np.allclose(sim.gradient(p), gradients[p], rtol=1e-12, atol=0) for p in PATHS)


def test_several_arrays_also_such_as_are_first_asked_for_inside_the_tape(loss):
    measures = [
        (squared_distance, "bodies.block.position"), (squared_speed, "bodies.ball.velocity"),
        (stretch, "bodies.block.regions.right.deformation"), (squared_speed, "velocity"),
    ]  # fmt: skip
    with Simulation(tiny(SCENE), precision="f64", threads=2) as sim:
        value, gradients = through_tape(sim, loss, *measures)
        again, repeated = through_tape(sim, loss, *measures)
        assert value == again
        h = 1e-6
        for path in ("gravity", "bodies.ball.velocity"):
            base = sim.get(path)
            ends = []
            for sign in (1, -1):
                sim.set(path, base + sign * h * np.array([1.0, 0.5]))
                ends.append(through_tape(sim, loss, *measures)[0])
            sim.set(path, base)
            slope = gradients[path] @ [1.0, 0.5]
            assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-7), path
        assert all(np.array_equal(gradients[p], repeated[p]) for p in PATHS)


def test_environments(loss):
    with Simulation(tiny(SCENE), precision="f64", threads=2, envs=2) as sim:
        sim.set("gravity", [[0.0, -9.0], [0.5, -8.0]])
        x = sim.array("bodies.block.position")
        assert tuple(x.shape) == (2, 32)
        value, gradients = through_tape(sim, loss, (squared_distance_of_all, "bodies.block.position"))
        each, expected = sim.value_and_grad("loss", PATHS)
        assert value == pytest.approx(each[0] + 2 * each[1], rel=1e-14)
        for path in PATHS:
            assert np.allclose(gradients[path][0], expected[path][0], rtol=1e-12, atol=0), path
            assert np.allclose(gradients[path][1], 2 * expected[path][1], rtol=1e-12, atol=0), path


def test_outside_a_tape_run_only_fills(sim):
    x = sim.array("bodies.block.position")
    sim.run()
    assert np.array_equal(x.to_numpy(), sim.observe("bodies.block.position"))
    sim.set("bodies.block.velocity", [0.1, 0.0])
    sim.run()
    assert np.array_equal(x.to_numpy(), sim.observe("bodies.block.position"))
    sim.set("bodies.block.velocity", [0.4, -1.0])
    assert sim.array("bodies.block.position") is x


def test_running_does_not_depend_on_the_tape(sim, loss):
    sim.run()
    plain = sim.state_hash()
    through_tape(sim, loss, (squared_distance, "bodies.block.position"))
    assert sim.state_hash() == plain


def test_looking_inside_a_tape_is_not_recorded(sim, loss):
    value, gradients = through_tape(sim, loss, (squared_distance, "bodies.block.position"))
    loss.fill(0.0)
    with ti.ad.Tape(loss):
        sim.run()
        assert sim.observe("elastic_energy") > 0
        squared_distance(sim.array("bodies.block.position"), loss)
    assert loss[0] == value and all(np.array_equal(sim.gradient(p), gradients[p]) for p in PATHS)


def test_running_twice_in_a_tape_is_refused(sim, loss):
    with pytest.raises(RuntimeError, match=r"call run\(\) once in a tape"), ti.ad.Tape(loss):
        sim.run()
        sim.run()
        squared_distance(sim.array("bodies.block.position"), loss)


def test_value_and_grad_inside_somebody_elses_tape_disturbs_neither(sim, loss):
    expected, gradients = sim.value_and_grad("loss", PATHS)
    y = ti.ndarray(ti.math.vec2, 3, needs_grad=True)
    y.from_numpy(np.array([[1.0, 0.0], [0.7, 0.3], [0.0, 0.0]]))
    y.grad.fill(0.0)
    loss.fill(0.0)
    with ti.ad.Tape(loss):
        squared_distance(y, loss)
        value, found = sim.value_and_grad("loss", PATHS)
    assert value == expected and all(np.array_equal(found[p], gradients[p]) for p in PATHS)
    assert np.allclose(y.grad.to_numpy(), 2 / 3 * (y.to_numpy() - TARGET))


def test_a_gradient_needs_a_tape_first():
    with Simulation(tiny(SCENE), precision="f64", threads=2) as sim:
        sim.run()
        with pytest.raises(RuntimeError, match=r"no gradient yet: run inside"):
            sim.gradient("gravity")


def test_a_tape_without_a_run_has_no_gradient(loss):
    """Not that of the tape before."""
    with Simulation(tiny(SCENE), precision="f64", threads=2) as sim:
        measure = (squared_distance, "bodies.block.position")
        _, expected = through_tape(sim, loss, measure)
        x = sim.array("bodies.block.position")
        left = x.grad.to_numpy()
        assert left.any() and np.array_equal(sim.gradient("gravity"), expected["gravity"])
        sim.run()  # outside a tape: the gradient stays
        assert np.array_equal(sim.gradient("gravity"), expected["gravity"])
        sim.set("gravity", [0.0, -3.0])
        with ti.ad.Tape(loss):
            squared_distance(x, loss)
        with pytest.raises(
            RuntimeError, match=r"^no gradient of the last ti.ad.Tape: there was no run\(\) in it; call"
        ):
            sim.gradient("gravity")
        sim.run()
        with pytest.raises(RuntimeError, match=r"^no gradient yet"):
            sim.gradient("gravity")
        _, found = through_tape(sim, loss, measure)
        assert not np.array_equal(found["gravity"], expected["gravity"])
        with pytest.raises(RuntimeError, match=r"is gone"), ti.ad.Tape(loss):
            sim.run()
            sim.jvp("loss", "gravity", [1.0, 0.0])
        with pytest.raises(RuntimeError, match=r"^no gradient yet"):
            sim.gradient("gravity")


def test_mistakes_are_named(sim, loss):
    through_tape(sim, loss, (squared_distance, "bodies.block.position"))
    with pytest.raises(ValueError, match=r"stands for 2 quantities, one is needed"):
        sim.gradient("bodies.*.velocity")
    with pytest.raises(ValueError, match=r"did you mean 'gravity'"):
        sim.gradient("gravty")


def test_what_would_move_the_point_of_the_gradient_is_refused(sim, loss):
    through_tape(sim, loss, (squared_distance, "bodies.block.position"))
    expected = sim.gradient("bodies.block.velocity")
    before = sim.get("gravity")
    loss.fill(0.0)
    with pytest.raises(RuntimeError, match=r"^gravity cannot be set between run\(\) and the end of its ti.ad.Tape"):
        with ti.ad.Tape(loss):
            sim.run()
            sim.set("gravity", [0.0, 0.0])
    loss.fill(0.0)
    with ti.ad.Tape(loss):  # before the run it may, also where the tape before broke off
        sim.set("gravity", before)
        sim.run()
        squared_distance(sim.array("bodies.block.position"), loss)
    assert np.array_equal(sim.gradient("bodies.block.velocity"), expected)
    sim.set("gravity", before)
    with pytest.raises(RuntimeError, match=r"what the ti.ad.Tape recorded is gone: run\(\) has to be the last use"):
        with ti.ad.Tape(loss):
            sim.run()
            sim.jvp("loss", "gravity", [1.0, 0.0])


def test_plain_launches_are_not_recorded_either(loss):
    """Where launches cannot be bound once, they are ordinary kernel calls, which a tape would differentiate."""
    with Simulation(tiny(SCENE), precision="f64", threads=2, plain_launches=True) as sim:
        expected, gradients = sim.value_and_grad("loss", PATHS)
        value, found = through_tape(sim, loss, (squared_distance, "bodies.block.position"))
        assert value == pytest.approx(expected, rel=1e-14)
        assert all(np.allclose(found[p], gradients[p], rtol=1e-12, atol=0) for p in PATHS)
        loss.fill(0.0)
        with ti.ad.Tape(loss):
            inside, again = sim.value_and_grad("loss", PATHS)
        assert inside == expected and all(np.array_equal(again[p], gradients[p]) for p in PATHS)
    assert runtime.current().alive


def test_arrays_end_with_their_simulation(sim, loss):
    with Simulation(tiny(SCENE), precision="f64", threads=2) as other:
        x = other.array("bodies.block.position")
        other.run()
    for use in (x.to_numpy, lambda: x.fill(1.0), lambda: squared_distance(x, loss), lambda: x.grad.to_numpy()):
        with pytest.raises(RuntimeError, match=r"freed when its simulation was closed"):
            use()
    assert np.isfinite(sim.array("bodies.block.position").to_numpy()).all()
