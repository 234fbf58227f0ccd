"""Operators bound by name, and launches that are bound once."""

import threading

import numpy as np
import pytest

from taichi_sim import runtime
from taichi_sim.core import launch
from taichi_sim.core.array import Array
from taichi_sim.core.operator import bind_kernel, operator
from taichi_sim.core.store import Store
from taichi_sim.runtime import ti

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)

ARRAYS = (
    Array("x", ("dim",), "particle", "state", "m", ""),
    Array("weight", (), "particle", "param", "1", ""),
    Array("total", (), "particle", "scratch", "1", "", dtype="int"),
)


@ti.func
def doubled(v):
    return 2.0 * v


@ti.func
def tripled(v):
    return 3.0 * v


@operator
@ti.kernel
def move(law: ti.template(), x: A2, weight: A1, total: A1, k: ti.i32, count: ti.i32):
    """Moves."""
    for p in weight:
        x[k + 1, p] = law(x[k, p]) * weight[p]
        total[p] = total[p] * 10 + count


@move.adjoint
@ti.kernel
def move_adjoint(x: A2, d_x: A1, d_weight: A2, k: ti.i32):
    for p in d_x:
        d_weight[0, p] = d_weight[0, p] + d_x[p].dot(x[k, p])


@ti.kernel
def mistyped(wieght: A1):
    for p in wieght:
        wieght[p] = 0.0


@ti.kernel
def flat(x: A1):
    for p in x:
        x[p] = x[p] * 0.0


@ti.kernel
def for_three_axes(x: ti.types.ndarray(dtype=ti.math.vec3, ndim=2)):
    for k, p in x:
        x[k, p] = x[k, p] * 0.0


@ti.kernel
def with_a_real(weight: A1, factor: ti.f32):
    for p in weight:
        weight[p] = factor


@ti.kernel
def of_many_arguments(
    n0: ti.i32, n1: ti.i32, n2: ti.i32, n3: ti.i32, n4: ti.i32, n5: ti.i32, n6: ti.i32, n7: ti.i32,
    n8: ti.i32, n9: ti.i32, n10: ti.i32, n11: ti.i32, n12: ti.i32, n13: ti.i32, n14: ti.i32, n15: ti.i32,
    n16: ti.i32, n17: ti.i32, n18: ti.i32, n19: ti.i32, n20: ti.i32, n21: ti.i32, n22: ti.i32, n23: ti.i32,
    n24: ti.i32, n25: ti.i32, n26: ti.i32, n27: ti.i32, n28: ti.i32, n29: ti.i32, n30: ti.i32, n31: ti.i32,
    n32: ti.i32, n33: ti.i32, n34: ti.i32, n35: ti.i32, n36: ti.i32, n37: ti.i32, n38: ti.i32, n39: ti.i32,
    n40: ti.i32, n41: ti.i32, n42: ti.i32, n43: ti.i32, n44: ti.i32, n45: ti.i32, n46: ti.i32, n47: ti.i32,
    n48: ti.i32, n49: ti.i32, n50: ti.i32, n51: ti.i32, n52: ti.i32, n53: ti.i32, n54: ti.i32, n55: ti.i32,
    n56: ti.i32, n57: ti.i32, n58: ti.i32, n59: ti.i32, n60: ti.i32, n61: ti.i32, n62: ti.i32, n63: ti.i32,
    total: A1,
):  # fmt: skip
    for p in total:
        total[p] = total[p] + 100 * n0 + n63


@pytest.fixture
def store(f64):
    made = Store(f64, ARRAYS, {"particle": 3}, 2, 4, 1, 1)
    made.write("weight", np.array([1.0, 2.0, 3.0]))
    yield made
    made.close()


@pytest.mark.parametrize("plain", [False, True])
def test_bound_by_name_with_integers_in_order(store, plain):
    run = move.bind(store, plain, law=doubled)
    assert type(run) is (launch.PlainLaunch if plain else launch.PreboundLaunch)
    store.view("x")[0] = 1.0
    run(0, 4)
    run(1, 7)
    assert store.view("x")[2].tolist() == [[4.0, 4.0], [16.0, 16.0], [36.0, 36.0]]
    assert store.view("total").tolist() == [47, 47, 47]
    move.bind(store, plain, law=tripled)(2, 0)
    assert store.view("x")[3].tolist() == [[12.0, 12.0], [96.0, 96.0], [324.0, 324.0]]
    store.view("d_x").fill(1.0)
    backward = move.bind_adjoint(store, plain)
    backward(2)
    backward(0)
    assert store.reduced_adjoint("weight").tolist() == [10.0, 34.0, 74.0]
    with pytest.raises(ValueError):
        run(0)  # an integer too few
    with pytest.raises(ValueError):
        run(0, 1, 2)


@pytest.mark.parametrize("plain", [False, True])
def test_more_arguments_than_taichi_takes_in_its_own_calls(store, plain):
    with pytest.raises(RuntimeError, match="too big"):
        of_many_arguments(*range(64), store["total"])
    run = bind_kernel(of_many_arguments, store, {}, plain)
    assert type(run) is (launch.WideLaunch if plain else launch.PreboundLaunch)
    run(*range(64))
    run(*range(2, 66))
    assert store.view("total").tolist() == [63 + 200 + 65] * 3
    with pytest.raises(ValueError):
        run(1)


def test_two_stores_do_not_disturb_each_other(store, f64):
    other = Store(f64, ARRAYS, {"particle": 5}, 2, 4, 1, 1)
    other.view("weight").fill(1.0)
    runs = [move.bind(s, law=doubled) for s in (store, other)]
    for s in (store, other):
        s.view("x")[0] = 1.0
    for k in range(2):
        for run in runs:
            run(k, 1)
    assert store.view("x")[2, 2].tolist() == [36.0, 36.0]
    assert other.view("x")[2].tolist() == [[4.0, 4.0]] * 5
    other.close()
    runs[0](2, 1)
    assert store.view("x")[3, 1].tolist() == [64.0, 64.0]


def test_name_and_documentation_are_the_kernels():
    assert move.name == "move" and move.__doc__ == "Moves."


def test_mistakes_are_named(store):
    with pytest.raises(ValueError, match=r"kernel 'mistyped': unknown array 'wieght'; did you mean 'weight'\?"):
        bind_kernel(mistyped, store, {})
    with pytest.raises(
        ValueError, match=r"kernel 'flat': array 'x' has 2 dimensions, the parameter is declared with 1"
    ):
        bind_kernel(flat, store, {})
    with pytest.raises(ValueError, match=r"kernel 'move': template parameter 'law' was not given"):
        move.bind(store)
    with pytest.raises(ValueError, match=r"operator 'mistyped' has no adjoint"):
        operator(mistyped).bind_adjoint(store)
    with pytest.raises(ValueError, match=r"argument x - required element type: VectorType.3"):
        bind_kernel(for_three_axes, store, {})
    with pytest.raises(ValueError, match=r"kernel 'with_a_real': parameter 'factor' must be an array or an integer"):
        bind_kernel(with_a_real, store, {})


@pytest.mark.parametrize("failure", [AttributeError("gone"), RuntimeError("other"), TypeError("other")])
def test_another_taichi_falls_back_to_plain_launches(store, monkeypatch, failure):
    def refuse(self, kernel, arguments):
        raise failure

    monkeypatch.setattr(launch, "_works", None)
    monkeypatch.setattr(launch.PreboundLaunch, "__init__", refuse)
    run = move.bind(store, law=doubled)
    assert type(run) is launch.PlainLaunch
    store.view("x")[0] = 1.0
    run(0, 4)
    assert store.view("x")[1].tolist() == [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]


def test_launches_that_give_something_else_are_not_trusted(store, monkeypatch):
    monkeypatch.setattr(launch, "_works", None)
    monkeypatch.setattr(launch.PreboundLaunch, "__call__", lambda self, *integers: None)
    assert type(move.bind(store, law=doubled)) is launch.PlainLaunch
    assert launch._works[1] is False
    monkeypatch.undo()
    assert type(move.bind(store, law=doubled)) is launch.PreboundLaunch


def test_threads_of_python_take_turns(f64, monkeypatch):
    """Each allocates, compiles and launches on its own; without turns they meet inside each other's kernels."""
    barrier = threading.Barrier(4)

    def kernel_of(k: int):
        @ti.kernel
        def add(weight: A1, count: ti.i32):
            for p in weight:
                weight[p] = weight[p] + count * ti.static(k)

        return add

    found: dict[int, list[float] | Exception] = {}

    def work(thread: int) -> None:
        try:
            sums = []
            for k in range(3):
                own = Store(f64, ARRAYS, {"particle": 4}, 2, 4, 1, 1)
                barrier.wait(30)
                monkeypatch.setattr(launch, "_works", None)  # the self-test of launches is run again by everyone
                add = bind_kernel(kernel_of(10 * thread + k), own, {}, plain=k == 1)
                for _ in range(50):
                    add(1)
                sums.append(float(own.view("weight").sum()))
                own.close()
            found[thread] = sums
        except Exception as error:
            found[thread] = error

    threads = [threading.Thread(target=work, args=(t,), daemon=True) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {t: [4 * 50.0 * (10 * t + k) for k in range(3)] for t in range(4)}
    assert runtime.current() is f64
