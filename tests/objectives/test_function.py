"""A user's own function: how it is found, what it may return, what is said when it is wrong."""

import numpy as np
import pytest

from taichi_sim import Body, Domain, Material, Objective, Scene, Simulation
from taichi_sim.core.errors import RolloutError
from taichi_sim.objectives.objective import Evaluation, Frame, objectives

KIND = objectives.get("function")
FRAME = Frame(
    time=0.5, index=50, position=np.arange(6.0).reshape(3, 2), velocity=np.ones((3, 2)), rest=np.zeros((3, 2)),
    activation=np.ones(2), frame_dt=0.01, mass=np.ones(3),
)  # fmt: skip


def height(frame: Frame):
    """Mean of y."""
    return frame.position[:, 1].mean(), {"position": np.tile([0.0, 1 / 3], (3, 1))}


def test_callable_name_and_file(tmp_path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n\ndef height(frame):\n"
        "    return frame.position[:, 1].mean(), {'position': np.tile([0.0, 1 / 3], (3, 1))}\n"
    )
    expected = KIND.evaluate({"function": height}, FRAME)
    assert expected.value == 3.0 and expected.velocity is None and expected.position.shape == (3, 2)
    for params in (
        KIND.prepare({"function": "mine.py:height"}, tmp_path),
        {"function": f"{tmp_path / 'mine.py'}:height"},
        {"function": f"{__name__}:height"},
    ):
        found = KIND.evaluate(params, FRAME)
        assert found.value == expected.value and np.array_equal(found.position, expected.position)


def test_an_evaluation_may_be_returned() -> None:
    found = KIND.evaluate({"function": lambda f: Evaluation(2, activation=[1, 0])}, FRAME)
    assert found.value == 2.0 and found.activation.tolist() == [1.0, 0.0]


def test_a_function_with_a_fixed_argument_is_named_too() -> None:
    from functools import partial

    with pytest.raises(ValueError, match="partial"):
        KIND.evaluate({"function": partial(lambda k, f: np.nan, 3)}, FRAME)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda f: (np.nan, {}), "the value must be one finite number, got nan at t = 0.5 s"),
        (lambda f: (np.ones(2), {}), "the value must be one finite number"),
        (lambda f: (None, {}), "the value must be one finite number, got None"),
        (lambda f: ("much", {}), "the value must be made of numbers, got 'much'"),
        (lambda f: (1.0, {"position": "much"}), "the derivative by position must be made of numbers"),
        (lambda f: 1.0, "must return .value, .*got a float"),
        (lambda f: (1.0, {"position": np.zeros((2, 2))}), r"by position has shape \(2, 2\), must be \(3, 2\)"),
        (lambda f: (1.0, {"position": np.full((3, 2), np.inf)}), "by position is not finite"),
        (lambda f: (1.0, {"positon": np.zeros((3, 2))}), "did you mean 'position'"),
        (lambda f: f.position.fill(0.0), "read-only"),
        (3, "function must be callable"),
        ("no_colon", "must read 'package.module:name' or 'file.py:name'"),
        ("no_such_module_here:f", "there is no module 'no_such_module_here'"),
        ("json:lods", "did you mean 'loads'"),
        ("none.py:f", "there is no file"),
    ],
)
def test_mistakes_are_named(function, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        KIND.evaluate({"function": function}, FRAME)


def test_the_function_is_named() -> None:
    def broken(frame):
        return np.inf, {}

    with pytest.raises(ValueError, match=r"objective 'function': .*broken: the value must be"):
        KIND.evaluate({"function": broken}, FRAME)


def outer(frame):
    return inner(frame)


def inner(frame):
    return np.linalg.inv(np.zeros((2, 2)))  # raises elsewhere, but this line is the user's


def test_an_error_of_the_users_code_says_where_and_stays_the_cause() -> None:
    with pytest.raises(ValueError) as caught:
        KIND.evaluate({"function": outer}, FRAME)
    said = str(caught.value)
    assert said.count("\n") == 0 and isinstance(caught.value.__cause__, np.linalg.LinAlgError)
    line = inner.__code__.co_firstlineno + 1
    assert said.endswith(f"outer: {__file__}, line {line}, in inner: LinAlgError: Singular matrix"), said

    def rejects(frame):
        raise RolloutError("too fast for my taste")

    with pytest.raises(RolloutError, match=r"^too fast for my taste$"):
        KIND.evaluate({"function": rejects}, FRAME)


@pytest.mark.parametrize(
    ("text", "says", "cause"),
    [
        ("import a_package_that_is_missing\n", "line 1: ModuleNotFoundError: No module named", ModuleNotFoundError),
        ("x = 1\ndef f(frame:\n", "mine.py, line 2: SyntaxError: ", SyntaxError),
        ("import sys\n\nsys.exit('bye')\n", "mine.py, line 3: SystemExit: bye", SystemExit),
        ("def g():\n    return 1 / 0\n\ng()\n", "mine.py, line 2, in g: ZeroDivisionError", ZeroDivisionError),
    ],
)
def test_a_file_that_cannot_be_imported_says_where(tmp_path, monkeypatch, text, says, cause) -> None:
    (tmp_path / "mine.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for function in ("mine.py:f", "mine:f"):
        with pytest.raises(ValueError) as caught:
            KIND.prepare({"function": function}, tmp_path)
        assert says in str(caught.value) and "\n" not in str(caught.value)
        assert isinstance(caught.value.__cause__, cause)


def test_a_function_that_gives_no_derivative_is_told_so_where_a_gradient_is_zero() -> None:
    def forgetful(frame):
        return float(frame.position.mean()), {}

    def complete(frame):
        return float(frame.position.mean()), {"position": np.full(frame.position.shape, 1.0 / frame.position.size)}

    own = {
        name: Objective(kind="function", body="box", function=function)
        for name, function in {"mine": forgetful, "good": complete}.items()
    }
    scene = Scene(
        dim=2, duration=0.02, frame_dt=0.01, domain=Domain(upper=[1.0, 1.0], cells=16),
        materials={"soft": Material(law="neo_hookean", density=1000.0, youngs_modulus=1e4)},
        bodies={"box": Body(shape={"kind": "box", "lower": [0.4, 0.4], "upper": [0.6, 0.6]}, material="soft")},
        objectives=own,
    )  # fmt: skip
    told = "zero: your function of objectives.mine gave no derivative for position, velocity, rest, activation, mass"
    with Simulation(scene, threads=1) as sim:
        sim.value_and_grad("objectives.mine", "bodies.box.velocity")
        assert any(told in note for note in sim.notes), sim.notes
        sim.notes.clear()
        sim.value_and_grad("objectives.good", "bodies.box.velocity")
        sim.value_and_grad("objectives.good", "materials.soft.poissons_ratio")
        assert not any("your function" in note for note in sim.notes), sim.notes
