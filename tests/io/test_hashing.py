"""One hash for one set of bits."""

import numpy as np
import pytest

from taichi_sim.io.hashing import state_hash


def test_equal_bits_equal_hash_whatever_order_layout_or_byte_order():
    x, v = np.arange(12.0).reshape(4, 3), np.ones(4, np.float32)
    first = state_hash({"x": x, "v": v})
    assert first == state_hash({"v": v.copy(), "x": np.asfortranarray(x)})
    assert first == state_hash({"x": x.astype(">f8"), "v": v})
    assert len(first) == 64
    assert state_hash({"x": np.arange(3)}) == "98cc105bf92f9f946854481c526b96d183f1a271ce71e3ac9256ec86df6b260b"


@pytest.mark.parametrize(
    "other",
    [
        {"x": np.nextafter(np.arange(4.0), 9)},
        {"y": np.arange(4.0)},
        {"x": np.arange(4.0).reshape(2, 2)},
        {"x": np.arange(4)},
        {"x": np.arange(4.0, dtype=np.float32)},
        {"x": np.arange(4.0), "y": np.zeros(0)},
        {"x": np.array([-0.0, 1, 2, 3])},
    ],
)
def test_any_difference_changes_it(other):
    assert state_hash(other) != state_hash({"x": np.arange(4.0)})


def test_neighbouring_arrays_do_not_run_into_each_other():
    a, b = np.arange(2.0), np.arange(2.0, 4.0)
    assert state_hash({"a": a, "b": b}) != state_hash({"a": np.arange(4.0), "b": np.zeros(0)})


def test_objects_are_refused():
    with pytest.raises(ValueError, match="'x'"):
        state_hash({"x": np.array([None])})
