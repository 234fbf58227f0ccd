"""The loss: which frames are looked at, how terms add up, and what goes back."""

import numpy as np
import pytest

from taichi_sim.compile.drives import Quantified
from taichi_sim.compile.judge import Judge, Term
from taichi_sim.objectives.objective import Evaluation, ObjectiveKind, objectives

ENVS, N, FRAMES, FRAME_DT = 2, 5, 4, 0.25


def term(name="t", kind="position", particles=(0, 2, 3), running=False, weight=1.0, actuators=(), **fixed):
    own = Quantified(f"objectives.{name}", ("direction",) if kind == "position" else (), fixed)
    columns = np.array(actuators, int)
    return Term(name, objectives.get(kind), own, np.array(particles), columns, weight, running)


@pytest.fixture
def state():
    rng = np.random.default_rng(0)
    return {
        "x": rng.normal(size=(ENVS, N, 2)), "v": rng.normal(size=(ENVS, N, 2)), "rest": rng.normal(size=(ENVS, N, 2)),
        "mass": rng.uniform(1, 2, (ENVS, N)), "activation": rng.normal(size=(ENVS, FRAMES, 3)),
    }  # fmt: skip


def values(*names):
    rng = np.random.default_rng(1)
    return {f"objectives.{name}.direction": rng.normal(size=(ENVS, 2)) for name in names}


def test_frames_looked_at():
    judge = Judge([], FRAMES, FRAME_DT)
    assert judge.looks_at([term()]) == [4]
    assert judge.looks_at([term(), term(running=True)]) == [1, 2, 3, 4]
    assert judge.looks_at([]) == [4]


def test_final_terms_count_once_and_running_ones_by_time(state):
    terms = [term("final"), term("running", running=True)]
    judge, v = Judge(terms, FRAMES, FRAME_DT), values("final", "running")
    found = {f: judge.measure(terms, f, state, v) for f in range(FRAMES + 1)}
    assert found[0] == {} and list(found[2]) == ["running"] and set(found[4]) == {"final", "running"}
    for e in range(ENVS):
        m = state["mass"][e, [0, 2, 3]]
        com = m @ state["x"][e, [0, 2, 3]] / m.sum()
        final, running = (v[f"objectives.{name}.direction"][e] for name in ("final", "running"))
        assert found[4]["final"][e] == pytest.approx(com @ final / np.linalg.norm(final))
        assert found[2]["running"][e] == pytest.approx(FRAME_DT * com @ running / np.linalg.norm(running))


@pytest.mark.parametrize("frame", [2, 4])
def test_what_goes_back(state, frame):
    terms = [term("final"), term("running", running=True, particles=(1, 2)),
             term("effort", "effort", running=True, actuators=(0, 2))]  # fmt: skip
    judge, v = Judge(terms, FRAMES, FRAME_DT), values("final", "running")
    cotangents = np.random.default_rng(2).normal(size=(3, ENVS))
    gradient = {path: np.zeros_like(array) for path, array in v.items()}
    bars = judge.seed(list(zip(terms, cotangents, strict=True)), frame, state, v, gradient)
    assert bars is not None

    def total(s, w) -> float:
        found = judge.measure(terms, frame, s, w)
        return sum(float(c @ found[t.name]) for t, c in zip(terms, cotangents, strict=True) if t.name in found)

    rng = np.random.default_rng(3)
    for key in ("x", "v", "rest", "mass", "activation"):
        direction = rng.normal(size=state[key].shape)
        ends = [total({**state, key: state[key] + sign * 1e-6 * direction}, v) for sign in (1, -1)]
        slope = np.sum(getattr(bars, key) * direction)
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7, abs=1e-9), key
    for path, array in v.items():
        direction = rng.normal(size=array.shape)
        ends = [total(state, {**v, path: array + sign * 1e-6 * direction}) for sign in (1, -1)]
        assert np.sum(gradient[path] * direction) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7, abs=1e-9)
    assert bars.activation.any() and not bars.activation[:, frame:].any(), "a frame sees the activation before it"


def test_frames_nobody_looks_at_send_nothing_back(state):
    judge = Judge([term()], FRAMES, FRAME_DT)
    assert judge.seed([(term(), np.ones(ENVS))], 2, state, values("t"), {}) is None


def test_errors_name_the_objective(state):
    def broken(params, frame):
        return Evaluation(float("nan"))

    kind = ObjectiveKind("broken", "", (), broken, lambda dim, rng: {})
    bad = Term("mine", kind, Quantified("objectives.mine", (), {}), np.arange(N), np.array([], int), 1.0, False)
    with pytest.raises(
        ValueError, match=r"objectives\.mine in environment 0: objective 'broken': the value must be one finite number"
    ):
        Judge([bad], FRAMES, FRAME_DT).measure([bad], FRAMES, state, {})


def test_errors_of_the_users_function_stay_the_cause_and_name_the_environment(state):
    def own(frame):
        if frame.mass[0] == state["mass"][1, 0]:
            raise KeyError("mine")
        return 0.0, {}

    bad = term("mine", "function", function=own)
    says = r"objectives\.mine in environment 1: objective 'function': .*own: .*test_judge\.py, line \d+, in own: KeyErr"
    with pytest.raises(ValueError, match=says) as caught:
        Judge([bad], FRAMES, FRAME_DT).measure([bad], FRAMES, state, {})
    assert isinstance(caught.value.__cause__, KeyError)
