"""Arrays die when they are told to, once, and never take another program's arrays with them."""

import gc
import resource

import numpy as np

from taichi_sim import runtime
from taichi_sim.core.array import Array
from taichi_sim.core.store import Store
from taichi_sim.runtime import ti

ARRAYS = (
    Array("x", ("dim",), "particle", "state", "m", ""),
    Array("mass", (), "particle", "param", "kg", ""),
    Array("id", (), "particle", "scratch", "1", "", dtype="int"),
)


def store(precision: str, particles: int) -> Store:
    return Store(runtime.start(precision, threads=2), ARRAYS, {"particle": particles}, 3, 2, 1, 1)


def resident_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def test_closing_gives_memory_back():
    store("f64", 1_000).close()
    before = resident_mb()
    for _ in range(20):
        one = store("f64", 200_000)  # 28 MB, all of it touched
        one.zero(one.arrays)
        one.close()
        one.close()
    assert resident_mb() - before < 60


def test_stores_of_an_earlier_runtime_leave_the_next_one_alone():
    for precision in ("f64", "f32", "f64", "f32"):
        old = [store(precision, 50 + k) for k in range(20)]
        new = "f32" if precision == "f64" else "f64"
        kept = [store(new, 50 + k) for k in range(20)]
        for k, one in enumerate(kept):
            one.view("mass").fill(k)
        old[0].close()
        del old
        gc.collect()
        extra = [runtime.ndarray(ti.i32, 60) for _ in range(50)]
        for array in extra:
            array.fill(7)
        for k, one in enumerate(kept):
            assert np.all(one.view("mass") == k)
            assert np.all(one["mass"].to_numpy() == k)
