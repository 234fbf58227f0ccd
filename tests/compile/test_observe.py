"""Observables of a state: values by definition, derivatives by differences, names of what there is."""

from types import SimpleNamespace

import numpy as np
import pytest

from taichi_sim.compile.family import Piece
from taichi_sim.compile.observe import MARKER, QUANTITIES, RIGID, names, select
from taichi_sim.compile.sensors import READ, between

ENVS, N, DIM = 2, 6, 3


@pytest.fixture
def state():
    rng = np.random.default_rng(0)
    return {
        "x": rng.normal(size=(ENVS, N, DIM)), "v": rng.normal(size=(ENVS, N, DIM)),
        "F": rng.normal(size=(ENVS, N, DIM, DIM)), "mass": rng.uniform(0.5, 2.0, (ENVS, N)),
        "energy": rng.uniform(size=(ENVS, N)),
    }  # fmt: skip


CHOSEN = np.array([4, 0, 3])


def test_values(state):
    found = {name: q.value(state, CHOSEN) for name, q in QUANTITIES.items()}
    assert np.array_equal(found["position"], state["x"][:, CHOSEN])
    assert np.array_equal(found["velocity"], state["v"][:, CHOSEN])
    assert np.array_equal(found["deformation"], state["F"][:, CHOSEN])
    for e in range(ENVS):
        m, x, v = (state[key][e, CHOSEN] for key in ("mass", "x", "v"))
        assert np.allclose(found["center_of_mass"][e], (m[:, None] * x).sum(0) / m.sum())
        assert np.allclose(found["mean_velocity"][e], (m[:, None] * v).sum(0) / m.sum())
        assert np.allclose(found["momentum"][e], (m[:, None] * v).sum(0))
        assert found["kinetic_energy"][e] == pytest.approx(sum(m * (v**2).sum(1)) / 2)
        assert found["mass"][e] == pytest.approx(m.sum())
        assert found["elastic_energy"][e] == pytest.approx(state["energy"][e, CHOSEN].sum())


def derivatives_agree(quantity, state, chosen):
    """And every environment's value and derivatives are those it has alone, to the bit."""
    assert quantity.vjp is not None
    value = quantity.value(state, chosen)
    bar = np.random.default_rng(1).normal(size=value.shape)
    bars = quantity.vjp(state, chosen, bar)
    for key in ("x", "v", "C", "F", "mass", "inertia", "a", "f", "push", "alpha"):
        if key not in state:
            continue
        direction = np.random.default_rng(2).normal(size=state[key].shape)
        ends = [np.sum(bar * quantity.value({**state, key: state[key] + h * direction}, chosen)) for h in (1e-6, -1e-6)]
        slope = np.sum(bars.get(key, 0.0) * direction[:, chosen])
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7, abs=1e-8), key
    for e in range(len(value)):
        alone = {key: array[e : e + 1] for key, array in state.items()}
        assert np.array_equal(quantity.value(alone, chosen), value[e : e + 1])
        for key, own in quantity.vjp(alone, chosen, bar[e : e + 1]).items():
            assert np.array_equal(own, bars[key][e : e + 1]), key


@pytest.mark.parametrize("name", [name for name, q in QUANTITIES.items() if q.vjp is not None])
def test_derivatives(state, name):
    derivatives_agree(QUANTITIES[name], state, CHOSEN)


def rigid_state(dim):
    rng = np.random.default_rng(3)
    moved = {key: rng.normal(size=(ENVS, 3, dim)) for key in ("x", "v", "a", "f", "push")}
    moved |= {"alpha": rng.normal(size=(ENVS, 3, 2 * dim - 3)), "mass": rng.uniform(0.5, 2.0, (ENVS, 3))}
    square = {key: rng.normal(size=(ENVS, 3, dim, dim)) for key in ("C", "F")}
    inertia = np.zeros((ENVS, 3, 3, 3))
    inertia[..., 2, 2] = 1.5
    if dim == 3:
        root = rng.normal(size=(ENVS, 3, 3, 3))
        inertia = root @ root.swapaxes(2, 3)
    return {**moved, **square, "inertia": inertia}


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("name", [name for name, q in RIGID.items() if q.vjp is not None])
def test_derivatives_of_rigid_bodies(name, dim):
    derivatives_agree(RIGID[name], rigid_state(dim), np.array([1]))
    if name in MARKER:
        assert MARKER[name].vjp is not None


@pytest.mark.parametrize("dim", [2, 3])
def test_derivatives_of_sensors(dim):
    state = rigid_state(dim)
    for quantity in READ.values():
        derivatives_agree(quantity, state, np.array([1]))
    derivatives_agree(between(None), state, np.array([1, 2]))
    derivatives_agree(between(np.full(dim, 0.3)), state, np.array([2]))
    bars = between(state["x"][0, 1]).vjp(state, np.array([1]), np.ones(ENVS))["x"]
    assert not bars[0].any() and bars[1].any(), "0 away: no direction"


@pytest.fixture
def model():
    pieces = {
        "torso": Piece("torso", "bodies", np.arange(5), {"front": np.array([1, 3])}),
        "cargo": Piece("cargo", "bodies", np.arange(5, 9), {}),
        "crate": Piece("crate", "rigid", np.array([9]), {"corner": np.array([10])}),
    }
    return SimpleNamespace(
        massive=np.arange(10), pieces=pieces, judge=SimpleNamespace(terms=[SimpleNamespace(name="forward")]),
        actuators=SimpleNamespace(actuators=[SimpleNamespace(name="leg")]), joints={}, sensors={}, rigid=None,
    )  # fmt: skip


def test_paths_choose_particles(model):
    for path, expected in {
        "momentum": range(10), "bodies.torso.position": range(5), "bodies.cargo.mass": range(5, 9),
        "bodies.torso.regions.front.velocity": [1, 3], "rigid.crate.mass": [9],
    }.items():  # fmt: skip
        quantity, particles = select(model, path)
        assert particles.tolist() == list(expected) and quantity is QUANTITIES[path.split(".")[-1]]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("momentun", "did you mean 'momentum'"),
        ("bodies.torso.positon", "did you mean 'position'"),
        ("bodies.tors.position", "unknown body 'tors'; did you mean 'torso'"),
        ("bodies.torso.regions.frnt.position", "unknown region 'frnt'; did you mean 'front'"),
        ("bodies.torso.regions.front.positon", "did you mean 'position'"),
        ("bodies.cargo.regions.front.position", "unknown region 'front'; allowed: none"),
        ("body.torso.position", "did you mean 'bodies.torso.position'"),
        ("bodies.torso.region.front.position", "did you mean 'bodies.torso.regions.front.position'"),
        ("actuators.leg.actvation", "did you mean 'actuators.leg.activation'"),
        ("objective.forward", "did you mean 'objectives.forward'"),
        ("", "cannot be observed"),
    ],
)
def test_mistakes_are_named(model, path, sentence):
    with pytest.raises(ValueError, match=sentence):
        select(model, path)


def test_every_name_can_be_observed(model):
    listed = names(model)
    assert len(set(listed)) == len(listed)
    assert {"loss", "objectives.forward", "actuators.leg.activation", "bodies.torso.regions.front.mass"} <= set(listed)
    for path in listed:
        if path.split(".")[0] not in ("loss", "objectives", "actuators"):
            select(model, path)
