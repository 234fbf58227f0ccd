"""Every registered actuator: shapes, stiffness and derivatives. A new kind is picked up from its file."""

import importlib

import numpy as np
import pytest

from taichi_sim.actuation.actuator import (
    ActiveLoad,
    ActuatorKind,
    ChamberLoad,
    JointLoad,
    SpringLoad,
    TendonLoad,
    actuators,
)
from taichi_sim.core import verify

FRAMES = 7
LOADS = {"body": ActiveLoad, "joint": JointLoad, "springs": SpringLoad, "chamber": ChamberLoad, "tendon": TendonLoad}


def entries(load) -> dict[str, np.ndarray]:
    """Numbers of a load by name."""
    return {name: np.asarray(value, float) for name, value in vars(load).items()}


def check_actuator(kind: ActuatorKind, dim: int, rng: np.random.Generator) -> None:
    params = kind.example(dim, rng)
    u = rng.normal(size=FRAMES)
    u[2] = 0.0
    load = kind.command(params, u)
    assert isinstance(load, LOADS[kind.drives])
    bars = {name: rng.normal(size=value.shape) * np.isfinite(value) for name, value in entries(load).items()}
    if kind.drives == "body":
        assert load.stress.shape == (FRAMES, dim, dim) and load.acceleration.shape == (FRAMES, dim)
        assert np.allclose(load.stress, load.stress.transpose(0, 2, 1)), "a second Piola-Kirchhoff stress is symmetric"
    elif kind.drives == "springs":
        assert load.strain.shape == (FRAMES,)
    elif kind.drives == "chamber":
        assert load.pressure.shape == load.air.shape == (FRAMES,)
    elif kind.drives == "tendon":
        assert load.tension.shape == load.shortening.shape == (FRAMES,)
    else:
        assert load.force.shape == load.target.shape == load.rate.shape == (FRAMES,)
    assert np.isfinite(kind.stiffness(params)) and kind.stiffness(params) >= 0.0

    def total(changed: dict, activation: np.ndarray) -> float:
        found = entries(kind.command({**params, **changed}, activation))
        return float(sum(np.sum(bars[name] * np.where(np.isfinite(x), x, 0.0)) for name, x in found.items()))

    gradient, u_bar = kind.command_vjp(params, u, type(load)(**bars))
    rows = verify.check(lambda x: total({}, x), u, u_bar, rng, wrt="u", full=True)
    for p in kind.parameters:
        if p.kind == "real" and p.differentiable:
            x = np.asarray(params.get(p.name, p.default), np.float64)
            assert gradient[p.name].shape == x.shape, p.name
            rows += verify.check(
                lambda x, name=p.name: total({name: x}, u), x, gradient[p.name], rng, wrt=p.name, full=True
            )
    assert all(row.ok for row in rows), verify.GradientReport(rows)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("name", actuators.names())
def test_derivatives_match_differences(name: str, dim: int) -> None:
    for seed in range(3):
        check_actuator(actuators.get(name), dim, np.random.default_rng(seed))


@pytest.mark.parametrize("name", actuators.names())
def test_no_activation_is_no_load(name: str) -> None:
    kind = actuators.get(name)
    load = kind.command(kind.example(3, np.random.default_rng(0)), np.zeros(FRAMES))
    assert not any(value.any() for value in entries(load).values() if value.ndim)


@pytest.mark.parametrize("name", [kind.name for kind in actuators if kind.drives == "body"])
def test_stiffness_covers_the_stress_at_full_activation(name: str) -> None:
    kind = actuators.get(name)
    params = kind.example(3, np.random.default_rng(0))
    stress = kind.command(params, np.array([1.0, -1.0])).stress
    assert np.abs(np.linalg.eigvalsh(stress)).max() <= kind.stiffness(params) * (1 + 1e-12)


@pytest.mark.parametrize("name", actuators.names())
def test_activation_is_checked(name: str) -> None:
    kind = actuators.get(name)
    params = kind.example(2, np.random.default_rng(0))
    for u in (np.array([0.0, np.nan]), np.zeros((3, 2))):
        with pytest.raises(ValueError, match=f"{name}.*activation"):
            kind.command(params, u)


NEW = """
import numpy as np
from taichi_sim.actuation.actuator import ActiveLoad, ActuatorKind, JointLoad, actuators
from taichi_sim.core.registry import Parameter


def load(p, u):
    dim = p["along"].size
    return ActiveLoad(p["pressure"] * u[:, None, None] * np.eye(dim), np.zeros((u.size, dim)))


def load_vjp(p, u, bar):
    trace = np.einsum("fii->f", bar.stress)
    return {"pressure": np.asarray(np.sum(u * trace)), "along": np.zeros(p["along"].size)}, p["pressure"] * trace


actuators.add(ActuatorKind(
    name="swelling_for_a_test",
    doc="pressure in all directions",
    parameters=(Parameter("pressure", "Pa", None, "at activation 1"),
                Parameter("along", "1", None, "gives the dimension", shape=("dim",))),
    load=load,
    load_vjp=load_vjp,
    stiffening=lambda p: abs(float(p["pressure"])),
    example=lambda dim, rng: {"pressure": rng.uniform(1, 2), "along": rng.normal(size=dim)},
))
"""


def test_a_new_file_is_a_new_kind(tmp_path, monkeypatch) -> None:
    package = importlib.import_module("taichi_sim.actuation.kinds")
    (tmp_path / "swelling_for_a_test.py").write_text(NEW)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.setattr(actuators, "_kinds", dict(actuators._kinds))
    monkeypatch.setattr(actuators, "_loaded", False)
    assert "swelling_for_a_test" in actuators.names()
    check_actuator(actuators.get("swelling_for_a_test"), 3, np.random.default_rng(1))
