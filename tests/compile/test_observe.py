"""Observables of a state: values by definition, derivatives by differences, names of what there is."""

from types import SimpleNamespace

import numpy as np
import pytest

from taichi_sim.compile.observe import QUANTITIES, names, select

N, DIM = 6, 3


@pytest.fixture
def state():
    rng = np.random.default_rng(0)
    return {
        "x": rng.normal(size=(N, DIM)), "v": rng.normal(size=(N, DIM)), "F": rng.normal(size=(N, DIM, DIM)),
        "mass": rng.uniform(0.5, 2.0, N), "energy": rng.uniform(size=N),
    }  # fmt: skip


CHOSEN = np.array([4, 0, 3])


def test_values(state):
    found = {name: q.value(state, CHOSEN) for name, q in QUANTITIES.items()}
    m, x, v = (state[key][CHOSEN] for key in ("mass", "x", "v"))
    assert np.array_equal(found["position"], x) and np.array_equal(found["velocity"], v)
    assert np.array_equal(found["deformation"], state["F"][CHOSEN])
    assert np.allclose(found["center_of_mass"], (m[:, None] * x).sum(0) / m.sum())
    assert np.allclose(found["mean_velocity"], (m[:, None] * v).sum(0) / m.sum())
    assert np.allclose(found["momentum"], (m[:, None] * v).sum(0))
    assert found["kinetic_energy"] == pytest.approx(sum(m * (v**2).sum(1)) / 2)
    assert found["mass"] == pytest.approx(m.sum())
    assert found["elastic_energy"] == pytest.approx(state["energy"][CHOSEN].sum())


@pytest.mark.parametrize("name", [name for name, q in QUANTITIES.items() if q.vjp is not None])
def test_derivatives(state, name):
    quantity = QUANTITIES[name]
    assert quantity.vjp is not None
    bar = np.random.default_rng(1).normal(size=quantity.value(state, CHOSEN).shape)
    bars = quantity.vjp(state, CHOSEN, bar)
    for key in ("x", "v", "F", "mass"):
        direction = np.random.default_rng(2).normal(size=state[key].shape)
        ends = [np.sum(bar * quantity.value({**state, key: state[key] + h * direction}, CHOSEN)) for h in (1e-6, -1e-6)]
        slope = np.sum(bars.get(key, 0.0) * direction[CHOSEN])
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7, abs=1e-8), key


@pytest.fixture
def model():
    body = SimpleNamespace(name="torso", regions={"front": np.array([1, 3])})
    other = SimpleNamespace(name="cargo", regions={})
    return SimpleNamespace(
        particles=9, bodies=[body, other], slices={"torso": slice(0, 5), "cargo": slice(5, 9)},
        judge=SimpleNamespace(terms=[SimpleNamespace(name="forward")]),
        actuators=SimpleNamespace(actuators=[SimpleNamespace(name="leg")]),
    )  # fmt: skip


def test_paths_choose_particles(model):
    for path, expected in {
        "momentum": range(9), "bodies.torso.position": range(5), "bodies.cargo.mass": range(5, 9),
        "bodies.torso.regions.front.velocity": [1, 3],
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
