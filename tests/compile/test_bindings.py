"""Bindings: what a scene's quantities put into the solver's arrays, and the way back, against differences."""

import numpy as np
import pytest
from stub import StubSolver, plan, pullback_agrees

from taichi_sim.actuation.actuator import actuators as actuator_kinds
from taichi_sim.actuation.signal import signals
from taichi_sim.compile.continuum.matter import BodyMatter, Matter
from taichi_sim.compile.continuum.scalars import Scalars
from taichi_sim.compile.continuum.start import BodyStart, Start
from taichi_sim.compile.drives import Actuation, Actuators, Driven, Fields, Loads, Pushes, Quantified
from taichi_sim.laws.law import laws
from taichi_sim.scene.pose import rotation_matrix

ENVS, RNG = 2, np.random.default_rng


def spread(rng, *shape, low=0.5, high=2.0):
    return rng.uniform(low, high, (ENVS, *shape))


# ---- scalars ----


def test_scalars():
    solver, rng = StubSolver(), RNG(0)
    values = {"gravity": spread(rng, 2), "dt": spread(rng), "damping": spread(rng)}
    pullback_agrees(Scalars(), values, ("gravity", "step"), solver, values)
    assert solver["step"][1].tolist() == [values["dt"][1], values["damping"][1]]


# ---- matter ----


def matter() -> tuple[Matter, dict[str, np.ndarray]]:
    """Three bodies: one of a material, one of the same with its own density, one with a modulus for each particle."""
    rng, law = RNG(1), laws.get("neo_hookean")
    shared = {"youngs_modulus": "m.E", "poissons_ratio": "m.nu"}
    bodies = [
        BodyMatter("a", law, "m.density", shared, np.array([0.1]), slice(0, 4), slice(0, 1)),
        BodyMatter("b", law, "b.density", shared, np.array([0.2]), slice(4, 6), slice(1, 2)),
        BodyMatter("c", law, "m.density", {**shared, "youngs_modulus": "c.E"}, np.array([0.1, 0.2, 0.3]), slice(6, 9),
                   slice(2, 5)),
    ]  # fmt: skip
    values = {
        "m.density": spread(rng), "b.density": spread(rng), "m.E": spread(rng), "c.E": spread(rng, 3),
        "m.nu": spread(rng, low=0.1, high=0.4),
    }  # fmt: skip
    return Matter(bodies, ENVS), values


def test_the_material_table():
    binding, values = matter()
    solver = StubSolver()
    pullback_agrees(binding, values, ("material",), solver, values)
    table = solver["material"].reshape(ENVS, 5, 8)
    assert table[1, :, 0].tolist() == [0.1, 0.2, 0.1, 0.2, 0.3]
    assert np.allclose(table[1, :, 1], table[1, :, 0] * [values[f"{m}.density"][1] for m in "mbmmm"])
    mu = values["c.E"][1] / (2 * (1 + values["m.nu"][1]))
    assert np.allclose(table[1, 2:, 2], mu)
    assert 0 < solver.floor < 1e-15 * table[:, :, 1].min()
    assert binding.bodies[2].per_particle and not binding.bodies[0].per_particle
    assert binding.bodies[1].paths == ["b.density", "m.E", "m.nu"]


def test_masses_and_their_way_back():
    binding, values = matter()
    masses = binding.masses(values, 9)
    assert masses.shape == (ENVS, 9)
    assert np.allclose(masses[0, 4:6], 0.2 * values["b.density"][0])
    assert np.allclose(masses[0, 6:], np.array([0.1, 0.2, 0.3]) * values["m.density"][0])
    bar = RNG(2).normal(size=masses.shape)
    found = binding.pullback_mass(values, bar)
    for path in ("m.density", "b.density"):
        for e in range(ENVS):
            moved = {**values, path: values[path] + 1e-6 * (np.arange(ENVS) == e)}
            slope = np.sum(bar * (binding.masses(moved, 9) - masses)) / 1e-6
            assert found[path][e] == pytest.approx(slope, rel=1e-6)


# ---- start ----


def start(dim: int) -> tuple[Start, dict[str, np.ndarray]]:
    rng = RNG(3)
    turn = () if dim == 2 else (3,)
    bodies = [
        BodyStart("a", rng.normal(size=(4, dim)), rng.normal(size=dim), slice(0, 4)),
        BodyStart("b", rng.normal(size=(3, dim)), rng.normal(size=dim), slice(4, 7)),
    ]
    values = {}
    for name, n in (("a", 4), ("b", 3)):
        values |= {
            f"bodies.{name}.position": rng.normal(size=(ENVS, dim)),
            f"bodies.{name}.rotation": rng.normal(size=(ENVS, *turn)),
            f"bodies.{name}.angular_velocity": rng.normal(size=(ENVS, *turn)),
            f"bodies.{name}.velocity": rng.normal(size=(ENVS, dim) if name == "a" else (ENVS, n, dim)),
            f"bodies.{name}.deformation": rng.normal(size=(ENVS, dim, dim) if name == "b" else (ENVS, n, dim, dim)),
        }
    return Start(bodies, ENVS, 7, dim), values


@pytest.mark.parametrize("dim", [2, 3])
def test_the_start_and_its_way_back(dim):
    binding, values = start(dim)
    state = binding.state(values)
    assert {k: v.shape for k, v in state.items()} == {
        "x": (ENVS, 7, dim), "v": (ENVS, 7, dim), "C": (ENVS, 7, dim, dim), "F": (ENVS, 7, dim, dim)
    }  # fmt: skip
    bars = {name: RNG(4).normal(size=array.shape) for name, array in state.items()}
    found = binding.pullback_state(values, bars)
    assert found.keys() == values.keys()
    rng = RNG(5)
    for path, value in values.items():
        direction = rng.normal(size=value.shape)
        ends = []
        for sign in (1, -1):
            moved = binding.state({**values, path: value + sign * 1e-6 * direction})
            ends.append(sum(np.sum(bars[name] * moved[name]) for name in bars))
        slope = np.sum(found[path] * direction)
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7), path


@pytest.mark.parametrize("dim", [2, 3])
def test_a_pose_is_a_turn_about_the_centre_then_a_shift(dim):
    binding, values = start(dim)
    body, e = binding.bodies[0], 1
    R = rotation_matrix(values["bodies.a.rotation"][e], dim)
    state = binding.state(values)
    arm = (body.rest - body.centre) @ R.T
    assert np.allclose(state["x"][e, :4], body.centre + values["bodies.a.position"][e] + arm)
    assert np.allclose(state["F"][e, :4], R @ values["bodies.a.deformation"][e])
    omega = values["bodies.a.angular_velocity"][e]
    cross = np.stack([-omega * arm[:, 1], omega * arm[:, 0]], axis=1) if dim == 2 else np.cross(omega, arm)
    assert np.allclose(state["v"][e, :4], values["bodies.a.velocity"][e] + cross)
    assert np.allclose(np.einsum("nij,nj->ni", state["C"][e, :4], arm), cross), "particles spin with the body"


# ---- drives ----

FRAMES, TIMES = 6, 0.1 * np.arange(6)


def sinusoids(prefix: str) -> Driven:
    names = ("frequency", "weights", "phases", "bias")
    return Driven(signals.get("sinusoids"), Quantified(prefix, names, {"squash": "tanh"}))


def signal_values(prefix: str, rng) -> dict[str, np.ndarray]:
    return {
        f"{prefix}.frequency": spread(rng), f"{prefix}.weights": spread(rng, 2), f"{prefix}.phases": spread(rng, 2),
        f"{prefix}.bias": spread(rng, low=-0.2, high=0.2),
    }  # fmt: skip


class Commanded(Loads):
    """Loads together with the signals behind them, so that the way from values to arrays and back is one."""

    def apply(self, values, solver) -> None:
        self.actuators.evaluate(values)
        super().apply(values, solver)

    def pullback(self, values, solver):
        kept = self.actuators.activation_bar.copy()
        out = super().pullback(values, solver)
        out |= self.actuators.pullback(values)
        self.actuators.activation_bar = kept
        return out


def drives(dim: int) -> tuple[Commanded, dict[str, np.ndarray]]:
    """A muscle of groups 1 and 2, one of group 2 and 3, and a body force of group 3; group 0 is driven by nothing."""
    rng = RNG(6)
    acts, values = [], {}
    for name, kind, groups in (("m", "muscle", (1, 2)), ("n", "muscle", (2, 3)), ("f", "body_force", (3,))):
        prefix = f"actuators.{name}"
        of = Quantified(prefix, ("direction", "strength"), {})
        acts.append(Actuation(name, "body", actuator_kinds.get(kind), of, sinusoids(f"{prefix}.signal"), groups))
        values |= {f"{prefix}.direction": spread(rng, dim), f"{prefix}.strength": spread(rng)}
        values |= signal_values(f"{prefix}.signal", rng)
    return Commanded(Actuators(acts, TIMES, ENVS), 4, dim), values


@pytest.mark.parametrize("dim", [2, 3])
def test_actuators_and_their_way_back(dim):
    binding, values = drives(dim)
    solver = StubSolver()

    pullback_agrees(binding, values, ("active_stress", "active_acceleration"), solver, values)
    stress = solver["active_stress"].reshape(FRAMES, ENVS, 4, dim, dim)
    push = solver["active_acceleration"].reshape(FRAMES, ENVS, 4, dim)
    assert not stress[:, :, 0].any() and not push[:, :, :3].any() and push[:, :, 3].any()
    assert np.allclose(stress[:, :, 2], stress[:, :, 1] + stress[:, :, 3]), "what overlaps adds up"
    assert np.allclose(stress, np.swapaxes(stress, -1, -2))
    e, f = 1, 3
    d = values["actuators.m.direction"][e]
    d = d / np.linalg.norm(d)
    u = binding.actuators.activation[e, f, 0]
    assert np.allclose(stress[f, e, 1], values["actuators.m.strength"][e] * u * np.outer(d, d))


def test_activations_have_a_way_back_of_their_own():
    """Effort depends on the activation directly."""
    binding, values = drives(2)
    solver = StubSolver()
    binding.apply(values, solver)
    solver.store.adjoints = {name: np.zeros(a.shape) for name, a in solver.store.written.items()}
    bar = RNG(7).normal(size=binding.actuators.activation.shape)
    binding.actuators.activation_bar = bar
    found = binding.pullback(values, solver)
    path = "actuators.n.signal.weights"
    direction = RNG(8).normal(size=values[path].shape)
    ends = []
    for sign in (1, -1):
        binding.apply({**values, path: values[path] + sign * 1e-6 * direction}, solver)
        ends.append(np.sum(bar * binding.actuators.activation))
    assert np.sum(found[path] * direction) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-8)
    assert not found["actuators.n.strength"].any()


def test_stiffness_of_actuators():
    binding, values = drives(2)
    values["actuators.m.strength"] = np.array([2.0, -3.0])
    values["actuators.n.strength"] = np.array([1.0, 0.5])
    assert binding.stiffness(values, {}) == {"body": 4.0}
    bounds = {"actuators.m.strength": (np.array(-7.0), np.array(5.0))}
    assert binding.stiffness(values, bounds) == {"body": 8.0}


def test_fields_and_their_way_back():
    rng = RNG(9)
    values = {**signal_values("fields.a.signal", rng), **signal_values("fields.b.signal", rng)}
    binding = Fields([sinusoids("fields.a.signal"), sinusoids("fields.b.signal")], TIMES, ENVS)
    solver = StubSolver()
    pullback_agrees(binding, values, ("field_gain",), solver, values)
    assert solver["field_gain"].shape == (FRAMES, ENVS * 2)
    none = Fields([], TIMES, ENVS)
    none.apply(values, solver)
    assert none.pullback(values, solver) == {}


@pytest.mark.parametrize("in_time", [False, True])
def test_pushes_and_their_way_back(in_time):
    rng = RNG(10)
    values = {"a": rng.normal(size=(ENVS, 2)), "b": rng.normal(size=(ENVS, 3, 2))}
    if in_time:
        values["b"] = rng.normal(size=(ENVS, FRAMES, 3, 2))
    frames = FRAMES if in_time else 1
    binding = Pushes([("a", slice(0, 2)), ("b", slice(2, 5))], frames, ENVS, 5, 2)
    solver = StubSolver(plan())
    pullback_agrees(binding, values, ("particle_acceleration",), solver, values)
    out = solver["particle_acceleration"].reshape(frames, ENVS, 5, 2)
    assert np.array_equal(out[-1, 1, :2], np.tile(values["a"][1], (2, 1)))
    assert np.array_equal(out[-1, 1, 2:], values["b"][1, -1] if in_time else values["b"][1])
