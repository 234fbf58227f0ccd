"""Declarations: what an array's role, domain and element make of its shape, type and size."""

import pytest

from taichi_sim.core.array import Array
from taichi_sim.runtime import ti


def test_an_unknown_role_is_refused():
    with pytest.raises(ValueError, match=r"array 'x': role must be one of .*'state'"):
        Array("x", (), "particle", "stat", "m", "")


def test_shapes():
    sizes = {"particle": 7, "env": 2, "none": 0}
    array = Array("F", ("dim", "dim"), ("env", "particle"), "state", "1", "")
    assert array.domain_shape(sizes) == (2, 7)
    assert array.element_shape(2) == (2, 2) and array.element_shape(3) == (3, 3)
    assert Array("m", (8,), "particle", "param", "1", "").element_shape(3) == (8,)
    assert Array("s", (), "none", "param", "1", "").domain_shape(sizes) == (1,), "never empty: kernels index it"


def test_types_follow_the_runtime(f64):
    vector = Array("v", ("dim",), "particle", "state", "m/s", "")
    assert vector.taichi_type(ti.f64, 3).n == 3 and vector.taichi_type(ti.f64, 3).dtype == ti.f64
    assert Array("i", (), "particle", "scratch", "1", "", dtype="int").taichi_type(ti.f64, 2) == ti.i32
    assert Array("F", ("dim", "dim"), "particle", "state", "1", "").taichi_type(ti.f64, 2).m == 2


@pytest.mark.parametrize(
    ("dtype", "precision", "each"), [("real", "f32", 4), ("real", "f64", 8), ("int", "f64", 4), ("f64", "f32", 8)]
)
def test_bytes(dtype, precision, each):
    assert Array("F", ("dim", "dim"), "p", "state", "1", "", dtype=dtype).bytes_each(precision, 3) == 9 * each
    assert Array("a", (), "p", "state", "1", "", dtype=dtype).bytes_each(precision, 3) == each
