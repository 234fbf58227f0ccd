"""A user's own Taichi kernel as an objective, in f64 against differences and in f32."""

import numpy as np
import pytest

from taichi_sim import runtime
from taichi_sim.core import verify
from taichi_sim.objectives.objective import Frame, objectives
from taichi_sim.objectives.user_kernel import taichi_kernel
from taichi_sim.runtime import ti

KIND = objectives.get("function")


@ti.kernel
def vectors(position: ti.types.ndarray(ndim=1), velocity: ti.types.ndarray(ndim=1), loss: ti.types.ndarray(ndim=0)):
    for i in position:
        loss[None] += ti.sin(position[i][0]) * position[i].norm_sqr() + 0.5 * velocity[i].norm_sqr()


@ti.kernel
def numbers(
    loss: ti.types.ndarray(ndim=1),
    position: ti.types.ndarray(ndim=2),
    mass: ti.types.ndarray(ndim=1),
    activation: ti.types.ndarray(ndim=1),
    rest: ti.types.ndarray(ndim=2),
    scale: float,
    time: float,
):
    for i, j in position:
        loss[0] += scale * time * mass[i] ** 2 * (position[i, j] - rest[i, j]) ** 3 / position.shape[0]
    for k in activation:
        loss[0] += activation[k] ** 4


@ti.kernel
def exactly_2d(position: ti.types.ndarray(dtype=ti.math.vec2, ndim=1), loss: ti.types.ndarray()):
    for i in position:
        loss[None] += position[i].x * position[i].y


def make_frame(dim: int, particles: int, seed: int = 0) -> Frame:
    rng = np.random.default_rng(seed)
    position, velocity, rest = rng.normal(size=(3, particles, dim))
    return Frame(0.7, 7, position, velocity, rest, rng.normal(size=2), 0.1, rng.uniform(0.5, 1.5, particles))


def check(params: dict, frame: Frame, names: tuple[str, ...]) -> None:
    result = KIND.evaluate(params, frame)
    for name in names:
        rows = verify.check(
            lambda x, name=name: KIND.evaluate(params, Frame(**{**vars(frame), name: x})).value,
            getattr(frame, name), getattr(result, name), np.random.default_rng(0), wrt=name,
        )  # fmt: skip
        assert all(row.ok for row in rows), verify.GradientReport(rows)
        assert np.any(getattr(result, name))
    assert KIND.evaluate(params, frame).value == result.value
    assert np.array_equal(KIND.evaluate(params, frame).position, result.position), "twice the same"


@pytest.mark.parametrize("dim", [2, 3])
def test_derivatives_match_differences(f64, dim: int) -> None:
    check({"function": taichi_kernel(vectors)}, make_frame(dim, 6), ("position", "velocity"))
    function = taichi_kernel(numbers, scale=1.5)
    check({"function": function}, make_frame(dim, 6), ("position", "mass", "activation", "rest"))
    check({"function": function}, make_frame(dim, 3, seed=1), ("position", "mass"))  # another size, same function
    check({"function": taichi_kernel(exactly_2d)}, make_frame(2, 4), ("position",))


def test_value_is_the_kernels(f64) -> None:
    frame = make_frame(3, 5)
    expected = np.sum(np.sin(frame.position[:, 0]) * np.sum(frame.position**2, 1)) + 0.5 * np.sum(frame.velocity**2)
    assert KIND.evaluate({"function": taichi_kernel(vectors)}, frame).value == pytest.approx(expected, rel=1e-13)


def test_a_field_as_loss(f64) -> None:
    loss = ti.field(ti.f64, shape=(), needs_grad=True)
    loss[None] = 77.0

    @ti.kernel
    def cubes(position: ti.types.ndarray(ndim=1)):
        for i in position:
            loss[None] += position[i][1] ** 3

    check({"function": taichi_kernel(cubes, loss=loss)}, make_frame(2, 5), ("position",))


def test_single_precision_and_a_new_runtime() -> None:
    frame = make_frame(3, 5)
    function = taichi_kernel(vectors)
    runtime.start("f64", threads=2)
    exact = KIND.evaluate({"function": function}, frame)
    runtime.start("f32", threads=2)
    single = KIND.evaluate({"function": function}, frame)
    assert single.value == pytest.approx(exact.value, rel=1e-5)
    assert np.allclose(single.position, exact.position, rtol=1e-4, atol=1e-5)
    assert single.position.dtype == np.float64


def test_mistakes_are_named(f64) -> None:
    @ti.kernel
    def typo(positon: ti.types.ndarray(ndim=1), loss: ti.types.ndarray(ndim=0)):
        for i in positon:
            loss[None] += positon[i][0]

    for make, sentence in [
        (lambda: taichi_kernel(typo), "kernel 'typo': unknown argument 'positon'; did you mean 'position'"),
        (lambda: taichi_kernel(numbers), "unknown argument 'scale'.*scale=value"),
        (lambda: taichi_kernel(vectors, scale=1.0), "has no argument 'scale'"),
        (lambda: taichi_kernel(len), "needs a @ti.kernel"),
        (lambda: taichi_kernel(vectors, loss=ti.field(float, ())), "one of the two"),
        (lambda: taichi_kernel(vectors, loss=object()), "one of the two"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            make()
    no_gradient = ti.field(ti.f64, shape=())

    @ti.kernel
    def to_field(position: ti.types.ndarray(ndim=1)):
        for i in position:
            no_gradient[None] += position[i][0]

    with pytest.raises(ValueError, match="needs_grad=True"):
        taichi_kernel(to_field, loss=no_gradient)


def test_a_kernel_that_is_not_finite_is_named(f64) -> None:
    @ti.kernel
    def roots(position: ti.types.ndarray(ndim=1), loss: ti.types.ndarray(ndim=0)):
        for i in position:
            loss[None] += ti.sqrt(position[i][0])

    frame = make_frame(2, 3)
    frame.position[:] = -1.0
    with pytest.raises(ValueError, match="roots: the value must be one finite number"):
        KIND.evaluate({"function": taichi_kernel(roots)}, frame)
    frame.position[:] = 0.0
    with pytest.raises(ValueError, match="roots: the derivative by position is not finite"):
        KIND.evaluate({"function": taichi_kernel(roots)}, frame)


@ti.func
def unsound(x):
    return x + not_a_name  # noqa: F821  # pyright: ignore


@ti.kernel
def calls_unsound(position: ti.types.ndarray(ndim=2), loss: ti.types.ndarray(ndim=0)):
    for i, j in position:
        loss[None] += unsound(position[i, j])


def test_what_taichi_refuses_is_said_in_one_line(f64) -> None:
    with pytest.raises(ValueError) as caught:
        KIND.evaluate({"function": taichi_kernel(calls_unsound)}, make_frame(2, 3))
    said = str(caught.value)
    assert "\n" not in said and f"{__file__}, line " in said
    assert said.endswith(', in unsound: TaichiNameError: Name "not_a_name" is not defined'), said
    assert isinstance(caught.value.__cause__, ti.TaichiCompilationError)
