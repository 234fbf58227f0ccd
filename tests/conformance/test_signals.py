"""Every registered signal: shapes, limits and derivatives. A new kind is picked up from its file."""

import importlib

import numpy as np
import pytest

from taichi_sim.actuation.signal import SignalKind, signals
from taichi_sim.core import verify

TIMES = np.arange(40) * 0.03
SQUASHES = [
    {},
    {"squash": "tanh"},
    {"squash": "sigmoid", "limits": [-2.0, 0.5]},
    {"squash": "tanh", "limits": [0.25, 3.0]},
    {"squash": "clip", "limits": [-0.4, 0.7]},
]


def check_signal(kind: SignalKind, output: dict, rng: np.random.Generator) -> None:
    params = {**kind.example(TIMES, rng), **output}
    bar = rng.normal(size=TIMES.size)
    value = kind.value(params, TIMES)
    assert value.shape == TIMES.shape and value.dtype == np.float64
    assert np.array_equal(value, kind.value(params, TIMES))
    gradient = kind.vjp(params, TIMES, bar)
    prepared = kind.prepare(params)
    for p in kind.parameters:
        if p.kind != "real" or not p.differentiable or (p.name == "limits" and "limits" not in output):
            continue

        def total(x: np.ndarray, name: str = p.name) -> float:
            return float(np.sum(bar * kind.value({**params, name: x}, TIMES)))

        assert gradient[p.name].shape == prepared[p.name].shape, p.name
        rows = verify.check(total, prepared[p.name], gradient[p.name], rng, wrt=p.name, full=True)
        assert all(row.ok for row in rows), verify.GradientReport(rows)


@pytest.mark.parametrize("output", SQUASHES, ids=lambda o: o.get("squash", "none"))
@pytest.mark.parametrize("name", signals.names())
def test_derivatives_match_differences(name: str, output: dict) -> None:
    for seed in range(3):
        check_signal(signals.get(name), output, np.random.default_rng(seed))


@pytest.mark.parametrize("name", signals.names())
@pytest.mark.parametrize("squash", ["tanh", "clip", "sigmoid", "none"])
def test_value_stays_within_limits(name: str, squash: str) -> None:
    kind = signals.get(name)
    params = kind.example(TIMES, np.random.default_rng(0))
    value = kind.value({**params, "squash": squash, "limits": [-0.1, 0.2]}, TIMES)
    assert value.min() >= -0.1 and value.max() <= 0.2


@pytest.mark.parametrize("name", signals.names())
def test_one_frame_and_time_order_do_not_matter(name: str) -> None:
    kind = signals.get(name)
    one = kind.example(TIMES, np.random.default_rng(0))
    if name != "array":  # bound to its frames
        whole = kind.value(one, TIMES)
        assert np.allclose([kind.value(one, TIMES[k : k + 1])[0] for k in range(TIMES.size)], whole, rtol=0, atol=1e-14)


def test_wrong_gradient_is_found() -> None:
    from dataclasses import replace

    right = signals.get("sinusoids")
    wrong = replace(right, raw_vjp=lambda p, t, bar: {**right.raw_vjp(p, t, bar), "bias": np.asarray(2 * bar.sum())})
    with pytest.raises(AssertionError):
        check_signal(wrong, {}, np.random.default_rng(0))


NEW = """
import numpy as np
from taichi_sim.actuation.signal import SignalKind, signals
from taichi_sim.core.registry import Parameter

signals.add(SignalKind(
    name="ramp_for_a_test",
    doc="grows with time",
    own=(Parameter("slope", "1/s", None, "growth per second"),),
    raw=lambda p, times: p["slope"] * times,
    raw_vjp=lambda p, times, bar: {"slope": np.asarray(np.sum(bar * times))},
    example=lambda times, rng: {"slope": rng.normal()},
))
"""


def test_a_new_file_is_a_new_kind(tmp_path, monkeypatch) -> None:
    package = importlib.import_module("taichi_sim.actuation.signals")
    (tmp_path / "ramp_for_a_test.py").write_text(NEW)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.setattr(signals, "_kinds", dict(signals._kinds))
    monkeypatch.setattr(signals, "_loaded", False)
    assert "ramp_for_a_test" in signals.names()
    for output in SQUASHES:
        check_signal(signals.get("ramp_for_a_test"), output, np.random.default_rng(1))
