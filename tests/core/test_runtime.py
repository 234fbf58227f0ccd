"""The owner of Taichi: what it refuses, when it starts anew, where compiled kernels are kept."""

import os
import time

import pytest

from taichi_sim import runtime
from taichi_sim.runtime import ti


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"precision": "double"}, "precision must be 'f32' or 'f64', got 'double'"),
        ({"precision": None}, "precision must be 'f32' or 'f64', got None"),
        ({"arch": "gpu"}, "arch must be 'cpu' or 'cuda', got 'gpu'"),
        ({"threads": 0}, "threads must be a whole number of at least 1, got 0"),
        ({"threads": 1.5}, "threads must be a whole number"),
        ({"threads": True}, "threads must be a whole number"),
        ({"threads": "2"}, "threads must be a whole number"),
    ],
)
def test_mistakes_are_named(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        runtime.start(**options)


def test_asking_for_the_same_again_changes_nothing(f64):
    array = runtime.ndarray(ti.i32, 3)
    array.fill(5)
    assert runtime.start("f64", threads=2) is f64
    assert runtime.start("f64") is f64, "no number of threads asked for: the present one"
    assert array.to_numpy().tolist() == [5, 5, 5]
    assert runtime.current() is f64 and f64.alive and f64.owned
    assert (f64.precision, f64.arch, f64.threads, f64.real) == ("f64", "cpu", 2, ti.f64)
    runtime.free(array, f64)
    runtime.free(array, f64)


def test_another_precision_starts_anew(f64):
    single = runtime.start("f32", threads=2)
    assert single is not f64 and single.alive and not f64.alive
    assert ti.cfg.default_fp == ti.f32
    again = runtime.start("f64", threads=2)
    assert not single.alive and not f64.alive and again.alive


def test_a_freed_array_says_so(f64):
    for array in (runtime.ndarray(ti.f64, 4), runtime.ndarray(ti.math.vec3, (2, 2))):
        runtime.free(array, f64)
        for use in (array.to_numpy, lambda array=array: array.fill(1.0)):
            with pytest.raises(RuntimeError, match="freed"):
                use()


# ---- the folder of compiled kernels ----


def test_the_folder_is_the_users_choice_and_one_for_every_version_and_worker(tmp_path, monkeypatch):
    monkeypatch.setenv("TI_OFFLINE_CACHE_FILE_PATH", str(tmp_path / "chosen"))
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    folder = runtime._cache_folder()
    assert folder == str(tmp_path / "chosen" / "taichi-sim" / "taichi-1.7.4")
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw3")
    assert runtime._cache_folder() == f"{folder}/gw3"
    monkeypatch.delenv("TI_OFFLINE_CACHE_FILE_PATH")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert str(tmp_path / "cache" / "taichi-sim") in str(runtime._cache_folder())


def test_a_lock_left_behind_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("TI_OFFLINE_CACHE_FILE_PATH", str(tmp_path))
    folder = runtime._cache_folder()
    assert folder is not None
    lock = tmp_path / folder / "ticache.lock"
    lock.touch()
    assert runtime._cache_folder() == folder and lock.exists(), "of a process that lives"
    os.utime(lock, (time.time() - 2 * runtime.STALE,) * 2)
    assert runtime._cache_folder() == folder and not lock.exists()
    assert list(lock.parent.iterdir()) == [], "nothing is left of the probe"


def test_where_nothing_can_be_written_nothing_is_cached(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("TI_OFFLINE_CACHE_FILE_PATH", str(blocked))
    assert runtime._cache_folder() is None
