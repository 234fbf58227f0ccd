"""Derivatives through time: right, the same bits again, and the same whatever is kept, batched or asked for."""

import itertools

import numpy as np
import pytest
from tiny import DELETE, tiny

from taichi_sim import Simulation
from taichi_sim.compile.continuum.contacts import Contacts
from taichi_sim.compile.continuum.matter import Matter
from taichi_sim.compile.continuum.start import Start
from taichi_sim.compile.drives import Loads


def build(changes=None, **options):
    return Simulation(tiny(changes), precision="f64", threads=2, **options)


@pytest.fixture(scope="module")
def shared():
    with build() as made:
        yield made


@pytest.fixture
def sim(shared):
    before = {path: shared.get(path) for path in shared.parameters()}
    yield shared
    for path, value in before.items():
        shared.set(path, value)


@pytest.fixture(scope="module")
def expected(shared):
    """Value and gradient by everything."""
    return shared.value_and_grad("loss", list(shared.parameters()))


def assert_same(found, expected, tolerance=0.0):
    value, gradients = found
    assert abs(value - expected[0]) <= tolerance * abs(expected[0])
    assert gradients.keys() == expected[1].keys()
    for path, gradient in gradients.items():
        scale = np.abs(expected[1][path]).max()
        assert np.abs(gradient - expected[1][path]).max() <= tolerance * scale, path


# ---- right ----


def test_everything_agrees_with_finite_differences(sim):
    """Contact with wall and obstacle, friction, a muscle, a field, pushes, two bodies: every quantity of the scene."""
    paths = list(sim.parameters())
    assert len(paths) == 34 and "dt" in paths and "obstacles.rock.position" in paths
    report = sim.check_gradients(wrt=paths)
    assert report.ok, report
    assert {row.wrt for row in report.rows} == set(paths)
    assert sum(abs(row.gradient) > 0 for row in report.rows) == len(report.rows), "nothing is trivially right"
    assert sum(row.note != "" for row in report.rows) <= 3, report


PER_PARTICLE = {
    "bodies.block.material": {"base": "jelly", "youngs_modulus": np.linspace(1e4, 2e4, 32)},
    "bodies.block.velocity": {"axis": "x", "points": [0.2, 0.4, 0.6], "values": [[0.0, 0.0], [0.5, -1.0], [0.0, 0.5]]},
    "bodies.block.deformation": {"axis": "y", "points": [0.15, 0.35], "values": [[1.0, 0.9], [1.05, 1.0]]},
    "bodies.block.acceleration": 2.0 * np.random.default_rng(0).normal(size=(12, 32, 2)),
    "bodies.ball.velocity": np.random.default_rng(1).normal(size=(21, 2)) - [0.0, 1.0],
    "bodies.ball.acceleration": np.random.default_rng(2).normal(size=(21, 2)),
}


def test_arrays_and_profiles_agree_with_finite_differences():
    with build(PER_PARTICLE) as sim:
        paths = [p.replace("block.material", "block.material.youngs_modulus") for p in PER_PARTICLE]
        shapes = [sim.get(path).shape for path in paths]
        assert shapes == [(32,), (32, 2), (32, 2, 2), (12, 32, 2), (21, 2), (21, 2)]
        report = sim.check_gradients(wrt=paths)
        assert report.ok, report
        assert len(report.rows) == 4 * len(paths)


def test_three_dimensions_agree_with_finite_differences():
    """Contact with friction and a turned, spinning body."""
    changes = {
        "dim": 3, "gravity": [0.0, 0.5, -9.0], "domain.lower": [0.0] * 3, "domain.upper": [0.6, 0.6, 0.6],
        "domain.walls": {"default": "slip", "z_lower": {"kind": "separate", "friction": 0.3}},
        "bodies": {"block": {
            "shape": {"kind": "box", "lower": [0.2, 0.2, 0.03], "upper": [0.4, 0.35, 0.18]}, "material": "jelly",
            "velocity": [0.5, 0.1, -1.0], "rotation": [0.1, 0.2, -0.1], "angular_velocity": [0.5, -0.2, 0.3],
            "particles_per_cell": 4.0,
        }},
        "obstacles": {"rock": {"shape": {"kind": "sphere", "center": [0.25, 0.25, 0.0], "radius": 0.1},
                               "friction": 0.2}},
        "fields": DELETE, "actuators": DELETE, "design": DELETE, "duration": 0.1,
        "objectives": {"reach": {"kind": "distance", "body": "block", "target": [0.7, 0.3, 0.2]}},
    }  # fmt: skip
    with build(changes) as sim:
        paths = list(sim.parameters())
        assert {"bodies.block.rotation", "obstacles.rock.position", "bodies.block.angular_velocity"} <= set(paths)
        report = sim.check_gradients(wrt=paths)
        assert report.ok, report


@pytest.mark.parametrize(
    ("binding", "path"),
    [
        (Start, "bodies.block.velocity"), (Matter, "materials.jelly.youngs_modulus"),
        (Contacts, "obstacles.rock.position"), (Contacts, "domain.walls.y_lower.friction"),
        (Loads, "actuators.muscle.strength"),
    ],
)  # fmt: skip
def test_a_wrong_gradient_is_found(sim, monkeypatch, binding, path):
    right = binding.pullback
    monkeypatch.setattr(binding, "pullback", lambda *a: {k: 1.001 * v for k, v in right(*a).items()})
    report = sim.check_gradients(wrt=path)
    assert not report.ok and not any(row.ok for row in report.rows if row.note != "small beside the largest component")
    monkeypatch.setattr(binding, "pullback", lambda *a: {k: 0.0 * v for k, v in right(*a).items()})
    assert not sim.check_gradients(wrt=path).ok
    monkeypatch.undo()
    assert sim.check_gradients(wrt=path).ok


def test_check_gradients_leaves_everything_as_it_was(sim, expected):
    before = {path: sim.get(path) for path in sim.parameters()}
    sim.check_gradients(wrt=["gravity", "materials.jelly.youngs_modulus"])
    assert all(np.array_equal(sim.get(path), value) for path, value in before.items())
    assert_same(sim.value_and_grad("loss", list(before)), expected)


def test_check_gradients_stays_within_what_is_allowed(monkeypatch):
    """Friction 0 and a modulus at its bound are looked at from inside."""
    changes = {
        "obstacles.rock.friction": 0.0, "damping": 0.0,
        "design": [{"path": "bodies.ball.material.youngs_modulus", "lower": 1e4, "upper": 2e4}],
    }  # fmt: skip
    with build(changes) as sim:
        evaluate, seen = sim._evaluate, []
        paths = ["obstacles.rock.friction", "damping", "bodies.ball.material.youngs_modulus"]
        monkeypatch.setattr(sim, "_evaluate", lambda of: (seen.append([sim.get(p) for p in paths]), evaluate(of))[1])
        report = sim.check_gradients(wrt=paths)
        assert report.ok, report
        assert np.min(seen, axis=0).tolist() == [0.0, 0.0, 1e4] and (np.max(seen, axis=0) > [0, 0, 1e4]).all()


def test_finite_differences_do_not_trip_over_the_step_limit():
    """The step is exactly the largest allowed; any stiffer, lighter or longer would be refused."""
    with build() as sim:
        allowed = sim.model.limit.allowed
    changes = {"solver.dt": allowed, "frame_dt": 5 * allowed, "duration": 50 * allowed}
    with build(changes) as sim:
        assert sim.dt == pytest.approx(allowed, rel=1e-9)
        paths = ["dt", "materials.jelly.youngs_modulus", "materials.jelly.density", "actuators.muscle.strength"]
        for path in paths:
            size = sim.get(path)
            slope = sim.jvp("loss", path, 1.0, step=1e-3)
            assert slope == pytest.approx(float(sim.value_and_grad("loss", path)[1][path]), rel=1e-2), (path, size)
        report = sim.check_gradients(wrt=paths, full=True)
        assert report.ok, report


def test_objectives_and_observables_agree_with_finite_differences(sim):
    for of in ("objectives.reach", "objectives.climb", "kinetic_energy", "bodies.ball.kinetic_energy"):
        report = sim.check_gradients(of, ["gravity", "bodies.ball.velocity", "materials.jelly.density"])
        assert report.ok, report
    value = {of: sim.value_and_grad(of, "gravity") for of in ("loss", "objectives.reach", "objectives.climb")}
    assert value["loss"][0] == pytest.approx(value["objectives.reach"][0] - 0.5 * value["objectives.climb"][0])
    weighted = value["objectives.reach"][1]["gravity"] - 0.5 * value["objectives.climb"][1]["gravity"]
    assert np.allclose(value["loss"][1]["gravity"], weighted, rtol=1e-12)


# ---- the same bits again ----


def test_twice_the_same_bits_whatever_happens_between(sim, expected):
    paths = list(expected[1])
    assert_same(sim.value_and_grad("loss", paths), expected)
    sim.run()
    sim.run(record=True)
    sim.jacobian("bodies.block.center_of_mass", "gravity")
    sim.value_and_grad("kinetic_energy", "gravity")
    sim.observe("elastic_energy")
    sim.set("gravity", [1.0, -2.0])
    sim.value_and_grad()
    sim.set("gravity", [0.0, -9.0])
    assert_same(sim.value_and_grad("loss", paths), expected)
    assert_same(sim.value_and_grad("loss", paths[::-1]), expected)
    assert_same(sim.value_and_grad("loss", paths[3:5]), (expected[0], {p: expected[1][p] for p in paths[3:5]}))


def test_recording_changes_no_bit_of_the_state(sim):
    sim.run()
    plain, loss = sim.state_hash(), sim.observe("loss")
    sim.value_and_grad()
    assert sim.state_hash() == plain and sim.observe("loss") == loss
    sim.run(record=["kinetic_energy"])
    assert sim.state_hash() == plain and sim.observe("loss") == loss
    sim.jvp("loss", "gravity", [1.0, 0.0])
    assert sim.state_hash() == plain
    sim.set("gravity", [0.0, -9.0000000001])
    assert sim.state_hash() != plain


def test_results_do_not_hang_on_what_was_asked_before(sim):
    """A value, an observable of the state and activations, in any order, each from a fresh start."""
    asks = {
        "loss": lambda: sim.observe("loss"), "reach": lambda: sim.observe("objectives.reach"),
        "com": lambda: sim.observe("bodies.ball.center_of_mass").tolist(),
        "u": lambda: sim.observe("actuators.muscle.activation").tolist(),
        "grad": lambda: sim.value_and_grad("objectives.climb", "gravity")[1]["gravity"].tolist(),
    }  # fmt: skip
    first = {name: ask() for name, ask in asks.items()}
    for order in itertools.islice(itertools.permutations(asks), 0, 120, 17):
        sim.set("damping", 0.1)
        assert {name: asks[name]() for name in order} == first


# ---- whatever is kept ----


@pytest.mark.parametrize("segment", [1, 7, 20, 64, 60, 59, 13])
def test_the_segment_does_not_matter(sim, expected, segment):
    """60 substeps, sorted every 5, frames every 5: with a running objective that looks into the middle of segments."""
    with build(segment=segment) as other:
        assert other.schedule.segment == min(segment, 60)
        found = other.value_and_grad("loss", list(expected[1]))
        assert found[0] == expected[0] and other.state_hash() == sim.state_hash()
        assert_same(found, expected, 1e-12)


@pytest.mark.parametrize("every", [1, 3, 4, 10])
def test_where_particles_are_sorted_matters_to_rounding_only(expected, every):
    """Sorts within a frame, at its edges and across; segments that begin between two sorts."""
    found, states = [], set()
    for segment in (1, 7, 60):
        with build({"solver.sort_every": every}, segment=segment) as sim:
            found.append(sim.value_and_grad("loss", list(expected[1])))
            states.add(sim.state_hash())
    assert len(states) == 1
    assert_same(found[1], found[0], 1e-12)
    assert_same(found[2], found[0], 1e-12)
    assert_same(found[0], expected, 1e-7)


def test_the_memory_does_not_matter(expected):
    with pytest.raises(ValueError) as error:
        build(memory=1000)
    least = str(error.value).split("at least ")[1].split(" (")[0]
    build(memory=least).close()
    with build(memory="1MB") as roomy:
        bytes_ = roomy.schedule.bytes
    with build(segment=5) as sim:
        tight = sim.schedule.bytes - sim.schedule.in_memory * sim._costs().snapshot
    with build(memory=tight + 1) as sim:
        assert sim.schedule.on_disk > 0 and sim.schedule.bytes <= tight + 1 < bytes_
        assert_same(sim.value_and_grad("loss", list(expected[1])), expected, 1e-12)


def test_plain_launches_give_the_same(expected):
    with build(plain_launches=True) as sim:
        assert_same(sim.value_and_grad("loss", list(expected[1])), expected)


# ---- environments ----


def test_environments_are_independent_copies(sim, expected):
    paths, rng = list(expected[1]), np.random.default_rng(0)
    with build(envs=3) as many:
        values = {}
        for path in paths:
            if path.rpartition(".")[2] not in ("dt", "rotation", "deformation"):
                base = sim.get(path)
                values[path] = base * (1 + 0.02 * rng.normal(size=(3, *base.shape)))
                many.set(path, values[path])
                assert np.array_equal(many.get(path), values[path])
        found, gradients = many.value_and_grad("loss", paths)
        assert found.shape == (3,)
        where = many.observe("bodies.ball.position")
        activation = many.observe("actuators.muscle.activation")
        jacobian = many.jacobian("bodies.block.center_of_mass", "gravity")
        tangent = many.jvp("bodies.block.center_of_mass", "gravity", [0.0, 1.0])
    assert jacobian.shape == (3, 2, 2) and tangent.shape == (3, 2)
    assert np.allclose(tangent, jacobian[:, :, 1], rtol=1e-6)
    for e in range(3):
        for path, value in values.items():
            sim.set(path, value[e])
        assert_same((found[e], {p: gradients[p][e] for p in paths}), sim.value_and_grad("loss", paths), 1e-13)
        assert np.array_equal(where[e], sim.observe("bodies.ball.position"))
        assert np.array_equal(activation[e], sim.observe("actuators.muscle.activation"))
        assert np.allclose(jacobian[e], sim.jacobian("bodies.block.center_of_mass", "gravity"), rtol=1e-13)


def test_one_environment_of_many_is_one_alone(expected):
    with build(envs=2, segment=7) as sim:
        value, gradients = sim.value_and_grad("loss", list(expected[1]))
        for e in range(2):
            assert_same((value[e], {p: g[e] for p, g in gradients.items()}), expected, 1e-13)


# ---- other forms ----


@pytest.mark.parametrize("wrt", ["gravity", "materials.jelly.youngs_modulus", "bodies.ball.deformation"])
def test_jacobian_vjp_and_jvp_fit_together(sim, wrt):
    of = "bodies.block.center_of_mass"
    J = sim.jacobian(of, wrt)
    shape = sim.get(wrt).shape
    assert J.shape == (2, *shape)
    rng = np.random.default_rng(3)
    tangent, cotangent = rng.normal(size=shape), rng.normal(size=2)
    along = np.tensordot(J, tangent, axes=tangent.ndim)
    assert np.allclose(sim.jvp(of, wrt, tangent), along, rtol=1e-5, atol=1e-9 * np.abs(J).max())
    assert np.allclose(sim.vjp(of, wrt, cotangent)[wrt], np.tensordot(cotangent, J, axes=1), rtol=1e-12)


def test_jacobian_of_a_scalar_and_of_a_region(sim):
    _, gradients = sim.value_and_grad("loss", "gravity")
    assert np.array_equal(sim.jacobian("loss", "gravity"), gradients["gravity"])
    J = sim.jacobian("bodies.block.regions.right.mean_velocity", "bodies.block.velocity")
    for k, unit in enumerate(np.eye(2)):
        assert np.allclose(J[:, k], sim.jvp("bodies.block.regions.right.mean_velocity", "bodies.block.velocity", unit))


def test_vjp_of_every_particle_is_the_sum_of_rows(sim):
    bar = np.zeros((21, 2))
    bar[3, 1] = 2.0
    bar[7, 0] = -1.0
    one = sim.vjp("bodies.ball.position", ["gravity", "bodies.ball.position"], bar)
    h = 1e-6
    ends = []
    for sign in (1, -1):
        sim.set("bodies.ball.position", [sign * h, 0.0])
        x = sim.observe("bodies.ball.position")
        ends.append(np.sum(bar * x))
    assert one["bodies.ball.position"][0] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)


def test_shapes_and_names_that_do_not_fit(sim):
    with pytest.raises(ValueError, match=r"has shape .2,.: value_and_grad needs a scalar; use jacobian, or vjp"):
        sim.value_and_grad("bodies.block.center_of_mass", "gravity")
    for use, what in ((sim.vjp, "cotangent"), (sim.jvp, "tangent")):
        for value, why in (([1.0, np.nan], "finite, got"), ([np.inf, 0.0], "finite, got"), ("ab", "numbers, got 'ab'")):
            with pytest.raises(ValueError, match=f"^the {what} must be {why}"):
                use("bodies.block.center_of_mass", "gravity", value)
    with pytest.raises(ValueError, match=r"has shape .2,., the cotangent .3,."):
        sim.vjp("bodies.block.center_of_mass", "gravity", [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"'gravity' has shape .2,., the tangent .3,."):
        sim.jvp("loss", "gravity", [1.0, 2.0, 3.0])
    for call in (sim.jacobian, lambda of, wrt: sim.jvp(of, wrt, [1.0, 0.0])):
        with pytest.raises(ValueError, match=r"'bodies.*.velocity' stands for 2 quantities, one is needed"):
            call("loss", "bodies.*.velocity")
    with pytest.raises(ValueError, match=r"no differentiable quantity 'gravty'; did you mean 'gravity'"):
        sim.value_and_grad("loss", ["damping", "gravty"])


def test_the_design_is_the_default(sim):
    _, gradients = sim.value_and_grad()
    assert list(gradients) == ["actuators.muscle.signal.weights"]
    _, several = sim.value_and_grad("loss", ["bodies.*.velocity", "bodies.ball.velocity", "gravity"])
    assert list(several) == ["bodies.block.velocity", "bodies.ball.velocity", "gravity"]
    with build({"design": DELETE}) as other, pytest.raises(ValueError, match=r"no \[\[design\]\] entry"):
        other.value_and_grad()


def test_finite_differences_need_double_precision_and_one_environment():
    with build(envs=2) as sim, pytest.raises(ValueError, match=r"one environment: use envs=1"):
        sim.check_gradients()


@pytest.mark.slow
def test_a_hundred_thousand_substeps_within_a_megabyte():
    """Four hundred seconds of the scene, differentiated: thousands of segments, snapshots in memory and on disk."""
    changes = {"duration": 400.0, "frame_dt": 0.4, "objectives.climb.when": "final"}
    paths = ["gravity", "dt", "bodies.block.velocity"]
    found = []
    for memory in ("60MB", "1MB"):
        with build(changes, memory=memory) as sim:
            assert sim.schedule.substeps == 100_000 and sim.schedule.factor < 5
            found.append(sim.value_and_grad("loss", paths))
            assert sim._timeline.substeps_run <= sim.schedule.replayed * sim.schedule.segment
    assert sim.schedule.on_disk > 0
    assert_same(found[1], found[0], 1e-12)
