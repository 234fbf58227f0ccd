"""Rollouts that cannot be trusted are refused, with who, where, when, and what would be right."""

import re
import resource

import numpy as np
import pytest
from tiny import DELETE, table, tiny

from taichi_sim import RolloutError, Scene, Simulation, optimize


def build(changes=None, **options):
    return Simulation(tiny(changes), precision="f64", threads=2, **options)


@pytest.fixture(scope="module")
def shared():
    with build() as made:
        yield made


@pytest.fixture
def sim(shared):
    """The shared simulation; what a test sets is set back."""
    before = {path: shared.get(path) for path in shared.parameters()}
    yield shared
    for path, value in before.items():
        shared.set(path, value)


def number_after(words: str, text: str) -> float:
    found = re.search(re.escape(words) + r" ?([0-9.e+-]*[0-9])", text)
    assert found, text
    return float(found[1])


# ---- too large a step ----


def test_a_step_ten_times_too_large_is_refused_and_the_allowed_one_runs():
    changes = {"solver": {}, "duration": 2.0, "frame_dt": 0.05}
    with build(changes) as sim:
        chosen = sim.dt
    with pytest.raises(ValueError) as error:
        build({**changes, "solver": {"dt": 10 * chosen}})
    text = str(error.value)
    assert "\n" not in text and "too large" in text and "body 'block'" in text
    allowed = number_after("allowed is", text)
    assert chosen <= allowed * (1 + 1e-3) < 10 * chosen
    with build({**changes, "solver": {"dt": allowed}}) as sim:
        sim.run()
        assert np.isfinite(sim.observe("position")).all()


def test_values_set_later_are_held_to_the_step(sim):
    for path, value in {
        "materials.jelly.youngs_modulus": 1e7, "materials.jelly.density": 1.0,
        "actuators.muscle.strength": 1e6, "materials.jelly.poissons_ratio": 0.4999,
    }.items():  # fmt: skip
        before = sim.get(path)
        sim.set(path, value)
        with pytest.raises(RolloutError, match=r"dt = 0.\d+ s is too large for body '.*' as it is now .*: allowed is"):
            sim.run()
        sim.set(path, before)
    sim.run()


def test_the_step_is_chosen_for_the_stiffest_design_allowed():
    free = {"solver": {"max_speed": 4.0}}
    with build(free) as sim:
        base = sim.dt
    for path, upper in (("materials.jelly.youngs_modulus", 8e5), ("actuators.muscle.strength", 8e5)):
        with build({**free, "design": [{"path": path, "lower": 1.0, "upper": upper}]}) as sim:
            assert sim.dt < 0.5 * base
            sim.set(path, upper)
            assert sim.model.limit_at(sim._values).allowed >= sim.dt


# ---- too fast ----


def test_too_fast_names_the_speed_and_what_to_set(sim):
    sim.set("bodies.*.velocity", [0.0, -30.0])
    with pytest.raises(RolloutError, match=r"substep \d+ \(t = [0-9.]+ s\): particles move at [23]\d") as error:
        sim.run()
    text = str(error.value)
    assert "faster than the 4 m/s this step was chosen for" in text
    wanted, allowed = number_after("solver.max_speed =", text), number_after("dt <=", text)
    assert wanted > 30
    changes = {"solver": {"max_speed": wanted, "dt": allowed}, "duration": 0.04}
    with build(changes) as other:
        other.set("bodies.*.velocity", [0.0, -30.0])
        other.run()


def test_a_speed_at_the_start_above_the_largest_expected_is_refused():
    changes = {"bodies.ball.velocity": [0.0, -6.0], "solver.max_speed": 0.5}
    wrong = r"solver.max_speed = 0.5 m/s is below the 6 m/s body 'ball' starts with; leave it out \(then ([0-9.]+) m/s"
    with pytest.raises(ValueError, match=wrong) as error:
        build(changes)
    assert float(re.search(wrong, str(error.value))[1]) == pytest.approx(6.0 + 9.0 * 0.24, rel=0.01)
    with pytest.raises(ValueError, match=r"5\.999 m/s is below the 6 m/s"):
        build({**changes, "solver.max_speed": 5.999})
    build({**changes, "solver.max_speed": 6.0}).close()


# ---- out of the domain ----


def test_a_start_outside_the_domain_is_named(sim):
    sim.set("bodies.ball.position", [0.7, 0.0])
    with pytest.raises(RolloutError, match=r"particle \d+ of body 'ball' starts outside the domain, at \(1\.\d+, 0\."):
        sim.run()
    sim.set("bodies.ball.position", [0.0, 0.0])
    sim.set("bodies.block.deformation", np.diag([1.0, -1.0]))
    with pytest.raises(RolloutError, match=r"particle 0 of body 'block' starts with a deformation whose determinant"):
        sim.run()


def test_a_particle_that_leaves_is_named_with_body_position_and_step(sim):
    sim.set("bodies.ball.deformation", np.diag([25.0, 1.0]))  # bursts within a substep
    with pytest.raises(RolloutError) as error:
        sim.run()
    found = re.match(
        r"substep (\d+) \(t = ([0-9.]+) s\): particle (\d+) of body 'ball' left the domain at \((\S+), (\S+)\) m "
        r"\(domain \(0, 0\) to \(0.8, 0.8\)\)",
        str(error.value),
    )
    assert found, str(error.value)
    assert 1 <= int(found[1]) <= 5 and float(found[2]) == pytest.approx(int(found[1]) * sim.dt)
    assert int(found[3]) < sim.model.slices["ball"].stop - sim.model.slices["ball"].start
    at = np.array([float(found[4]), float(found[5])])
    assert (at < -0.1).any() or (at > 0.9).any()


def test_the_environment_is_named():
    with build(envs=2) as sim:
        burst = np.stack([np.eye(2), np.diag([25.0, 1.0])])
        sim.set("bodies.ball.deformation", burst)
        with pytest.raises(RolloutError, match=r", environment 1: particle .* of body 'ball' left the domain"):
            sim.run()
        moved = np.array([[0.0, 0.0], [5.0, 0.0]])
        sim.set("bodies.ball.deformation", np.eye(2))
        sim.set("bodies.ball.position", moved)
        with pytest.raises(RolloutError, match=r"body 'ball', environment 1 starts outside"):
            sim.run()


# ---- not finite ----


def test_what_is_not_finite_is_named(sim):
    sim._values["bodies.ball.deformation"] = np.diag([1e200, 1.0])[None]  # more than one may set
    sim.set("bodies.ball.position", [0.0, 0.1])  # no node in common with the block
    with pytest.raises(RolloutError, match=r"of particle \d+ of body 'ball' is not finite; the step dt = 0.004 s"):
        sim.run()


# ---- and afterwards ----


def test_nothing_is_left_of_a_failed_run(sim):
    value, gradients = sim.value_and_grad()
    state = sim.state_hash()
    for path, bad, error in (
        ("bodies.ball.deformation", np.diag([25.0, 1.0]), RolloutError),
        ("bodies.ball.deformation", np.diag([1e30, 1.0]), RolloutError),
        ("bodies.ball.velocity", [0.0, -40.0], RolloutError),
    ):
        before = sim.get(path)
        sim.set(path, bad)
        for call in (sim.run, sim.value_and_grad, lambda: sim.observe("loss"), sim.state_hash):
            with pytest.raises(error):
                call()
        sim.set(path, before)
        again, repeated = sim.value_and_grad()
        assert again == value and all(np.array_equal(gradients[p], repeated[p]) for p in gradients)
        assert sim.state_hash() == state


def test_an_objective_that_is_not_finite_names_itself():
    def broken(frame):
        return float("nan"), {}

    changes = {"objectives": {"mine": {"kind": "function", "function": broken, "body": "block"}}}
    with build(changes) as sim, pytest.raises(ValueError, match=r"objectives.mine: .*must be one finite number"):
        sim.run()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"envs": 0}, "envs must be a whole number of at least 1, got 0"),
        ({"envs": True}, "envs must be a whole number"),
        ({"envs": 2.0}, "envs must be a whole number"),
        ({"memory": "lots"}, "memory = 'lots'"),
        ({"memory": "1kB"}, r"memory = 1\.0 kB is too little for this scene: it needs at least [0-9.]+ [kM]B"),
        ({"segment": 0}, "segment must be a whole number"),
        ({"precision": "f16"}, "precision must be 'f32' or 'f64', got 'f16'"),
        ({"arch": "gpu"}, "arch must be 'cpu' or 'cuda', got 'gpu'"),
        ({"threads": 0}, "threads must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"seed": 1.5}, "seed must be a whole number of at least 0, got 1.5"),
    ],
)
def test_options(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Simulation(tiny(), **{"precision": "f64", "threads": 2, **options})


@pytest.mark.parametrize("scene", [None, 3, [1], {"dim": 2}])
@pytest.mark.parametrize("use", [Simulation, optimize, Scene.load])
def test_what_is_no_scene(scene, use):
    sentence = r"^scene: must be a Scene, a file or the name of a shipped scene, not \w+"
    with pytest.raises(ValueError, match=sentence) as error:
        use(scene)
    assert ("Scene.from_dict" in str(error.value)) == isinstance(scene, dict)


def test_plain_dicts_in_a_scene_are_read_as_tables():
    entries = {key: value for key, value in table().items() if key != "format"}
    scene = Scene(**entries)
    assert isinstance(scene.bodies["block"], dict) and isinstance(scene.domain, dict)
    with Simulation(scene, precision="f64", threads=2) as sim, build() as same:
        assert sim.scene == tiny() and sim.state_hash() == same.state_hash()
        assert [d.path for d in sim.design] == [d.path for d in same.design]
    scene.bodies["block"]["shpe"] = 3
    with pytest.raises(ValueError, match=r"^bodies.block.shpe: unknown .*did you mean 'shape'"):
        Simulation(scene, precision="f64", threads=2)
    with pytest.raises(ValueError, match=r"^bodies = .*: must hold one table a name"):
        Simulation(Scene(**{**entries, "bodies": [1]}), threads=2)


def test_a_place_that_cannot_be_written_is_refused_before_anything_is_built(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    scene = tiny()
    monkeypatch.setattr("taichi_sim.simulation.Simulation.__init__", None)
    for out in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(ValueError, match=f"^out {re.escape(str(out))}: .*file is a file, expected a folder$"):
            optimize(scene, out=out)
    with pytest.raises(ValueError, match=r"^scene .*file/x.toml: .*file is a file, expected a folder$"):
        scene.save(tmp_path / "file" / "x.toml")
    with pytest.raises(ValueError, match=r"is a folder, expected the name of a file$"):
        scene.save(tmp_path)


def test_a_function_that_is_none_says_what_is_one():
    with pytest.raises(
        ValueError, match=r"o.function = 3: must be a text .*: 'package.module:function'; in Python the f"
    ):
        tiny({"objectives.o": {"kind": "function", "function": 3}})


def test_effort_of_actuators_by_pattern():
    for pattern in ("mus*", "*", "muscle"):
        with build({"objectives.effort": {"kind": "effort", "actuators": pattern}}) as sim:
            assert sim.observe("objectives.effort") > 0
    with pytest.raises(ValueError, match=r"objectives.effort.actuators.*unknown actuator 'leg_\*'"):
        build({"objectives.effort": {"kind": "effort", "actuators": "leg_*"}})


@pytest.mark.parametrize(
    ("changes", "options", "sentence"),
    [
        ({}, {"envs": 10**9}, r"1000000000 environments of 8 x 8 cells have more than the .* use fewer envs"),
        ({}, {"envs": 300_000}, r"300000 environments of \d+ particles would need \d\.\d GB .*: use fewer envs"),
        (
            {"solver": {}, "domain.spacing": 2e-4, "bodies.block.particles_per_cell": 1e-4,
             "bodies.block.seeding": "lattice", "bodies.ball.particles_per_cell": 1e-4}, {},
            r"a grid of 4008 x 4008 nodes and \d+ particles over 12 frames would need .*: use a larger domain.spacing",
        ),
        (
            {"duration": 24.0}, {"memory": "1TB"},
            r"memory = 1TB would need \d+ MB of memory, 9.0 MB can be had: give a smaller memory",
        ),
    ],
)  # fmt: skip
def test_what_memory_cannot_hold_is_refused_before_it_is_asked_for(changes, options, sentence, monkeypatch):
    from taichi_sim.core import memory

    monkeypatch.setattr(memory, "free_memory", lambda: 1e7 if "memory" in options else 2e9)
    began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=sentence):
        build(changes, **options)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - began < 200_000, "kB"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"actuators.muscle.region": "rigth"}, "did you mean 'right'"),
        ({"objectives.reach.region": "left"}, "region"),
        ({"objectives.effort": {"kind": "effort", "actuators": "leg"}}, "unknown actuator 'leg'; allowed: muscle"),
        ({"actuators": DELETE, "design": DELETE, "objectives.effort": {"kind": "effort"}}, "scene has no actuators"),
        (
            {"bodies.block.material": {"base": "jelly", "youngs_modulus": [1e4] * 7}},
            "youngs_modulus has 7 entries, body 'block' has 32 particles: give one each",
        ),
        (
            {"bodies.block.acceleration": np.zeros((5, 2))},
            r"has shape \(5, 2\): must be \(2,\), \(32, 2\) for 32 particles, or \(12, 32, 2\) for 12 frames",
        ),
        ({"bodies.block.acceleration": np.zeros((12, 31, 2))}, r"acceleration has shape \(12, 31, 2\): must be"),
        ({"actuators.muscle.signal": {"kind": "array", "values": [0.1] * 5}}, "the rollout has 12 frames"),
        ({"domain.spacing": 1e-5, "solver": {}}, "larger spacing"),
    ],
)  # fmt: skip
def test_mistakes_only_the_build_can_see(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        build(changes)
