"""Fixtures shared by all tests."""

import pytest

from taichi_sim import runtime


@pytest.fixture
def f64() -> runtime.Runtime:
    """Taichi running in double precision, as every test of an adjoint needs it."""
    return runtime.start("f64", threads=2)


@pytest.fixture
def f32() -> runtime.Runtime:
    """Taichi running in single precision."""
    return runtime.start("f32", threads=2)
