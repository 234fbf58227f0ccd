"""Memory of declared arrays: shapes of values and adjoints, checked writes, sizes Taichi cannot address."""

import numpy as np
import pytest

from taichi_sim.core.array import Array
from taichi_sim.core.store import MAX_ELEMENTS, Store

ARRAYS = (
    Array("x", ("dim",), "particle", "state", "m", "position"),
    Array("load", (), ("group",), "input", "N", ""),
    Array("gravity", ("dim",), "env", "param", "m/s²", ""),
    Array("normal", ("dim",), "contact", "param", "1", "", exclusive=True),
    Array("fixed", (), "env", "param", "1", "", differentiable=False),
    Array("id", (), "particle", "scratch", "1", "", dtype="int"),
    Array("grid", (4,), "node", "scratch", "1", ""),
)
SIZES = {"particle": 5, "group": 3, "env": 2, "contact": 4, "node": 6}
SLOTS, FRAMES, PARTITIONS = 7, 8, 2


@pytest.fixture
def store(f64):
    made = Store(f64, ARRAYS, SIZES, 2, SLOTS, FRAMES, PARTITIONS)
    yield made
    made.close()


def test_shapes_of_values_and_adjoints(store):
    expected = {
        "x": (7, 5, 2), "d_x": (5, 2), "load": (8, 3), "d_load": (2, 8, 3), "gravity": (2, 2), "d_gravity": (2, 2, 2),
        "normal": (4, 2), "d_normal": (4, 2), "fixed": (2,), "id": (5,), "grid": (6, 4),
    }  # fmt: skip
    assert {name: store.view(name).shape for name in store.arrays} == expected
    assert store.states() == ["x"]
    assert store.view("id").dtype == np.int32 and store.view("x").dtype == np.float64
    assert store.bytes == sum(store.view(name).nbytes for name in store.arrays)
    assert "x" in store and "d_id" not in store and "y" not in store


def test_adjoints_of_parameters_are_double_precision_always(f32):
    store = Store(f32, ARRAYS, SIZES, 2, SLOTS, FRAMES, PARTITIONS)
    assert store.view("gravity").dtype == np.float32 and store.view("d_gravity").dtype == np.float64
    assert store.view("d_x").dtype == np.float32
    store.close()


def test_without_gradients_there_are_no_adjoints(f64):
    store = Store(f64, ARRAYS, SIZES, 2, SLOTS, FRAMES, PARTITIONS, gradients=False)
    assert not [name for name in store.arrays if name.startswith("d_")]
    store.close()


def test_a_view_is_the_memory_itself(store):
    store.view("x")[3, 2] = [1.5, 2.5]
    assert store["x"].to_numpy()[3, 2].tolist() == [1.5, 2.5]
    store["x"].fill(4.0)
    assert (store.view("x") == 4.0).all()


def test_write_checks_shapes_and_kinds(store):
    store.write("gravity", np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert store["gravity"].to_numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    for wrong in (np.zeros((2, 3)), np.zeros(4), np.zeros((1, 2, 2)), 0.0):
        with pytest.raises(ValueError, match=r"array 'gravity' has shape \(2, 2\), got"):
            store.write("gravity", wrong)
    with pytest.raises(TypeError):
        store.write("id", np.zeros(5))  # reals into integers: never cut off silently
    assert store.view("gravity").tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_zero(store):
    for name in ("x", "grid", "id"):
        store.view(name).fill(3)
    store.zero(["x", "id"])
    assert not store.view("x").any() and not store.view("id").any() and store.view("grid").all()


def test_adjoints_are_summed_over_partitions(store):
    store.view("d_gravity")[:] = np.arange(8.0).reshape(2, 2, 2)
    assert store.reduced_adjoint("gravity").tolist() == [[4.0, 6.0], [8.0, 10.0]]
    store.view("d_normal").fill(1.0)
    found = store.reduced_adjoint("normal")
    assert found.shape == (4, 2)
    found.fill(9.0)
    assert (store.view("d_normal") == 1.0).all(), "a copy"


def test_more_than_taichi_can_address_is_refused_before_anything_is_allocated(f64):
    for shape, count in (((), MAX_ELEMENTS + 1), (("dim", "dim"), MAX_ELEMENTS // 4 + 1)):
        huge = Array("huge", shape, "much", "scratch", "1", "")
        with pytest.raises(ValueError, match=r"array 'huge' would hold 2,147,483,6.. numbers.*spacing"):
            Store(f64, [huge], {"much": count}, 2, 1, 1, 1)
    slots = Array("slots", (), "much", "state", "1", "")
    with pytest.raises(ValueError, match=r"array 'slots'"):  # 65536 x 65536 overflows 32 bits
        Store(f64, [slots], {"much": 65536}, 2, 65536, 1, 1)


def test_closed_twice_and_empty_afterwards(f64):
    store = Store(f64, ARRAYS, SIZES, 2, SLOTS, FRAMES, PARTITIONS)
    store.close()
    store.close()
    assert "x" not in store and store.bytes == 0
    with pytest.raises(KeyError):
        store.view("x")
