"""Who owns Taichi: the user's runtime is joined and left alone; a simulation whose runtime ended says so."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def found():
    path = os.pathsep.join([str(HERE.parent), str(HERE.parent.parent), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, str(HERE / "own_runtime.py")], capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout[run.stdout.index("{") :])


def test_the_users_runtime_is_joined_and_their_field_stays(found):
    for what in (
        "joined", "intact while it runs", "still works", "intact after close", "same again", "intact after refusals",
    ):  # fmt: skip
        assert found[what] is True, what


def test_what_the_users_runtime_does_not_have_is_refused(found):
    for what in ("other precision", "other threads"):
        assert found[what].startswith("ValueError: Taichi was already started by your program with f64 on cpu, 2 thr")


def test_every_use_of_an_old_simulation_is_one_clear_error(found):
    expected = (
        "RuntimeError: this simulation's memory is gone: ti.init, ti.reset or a simulation of another precision was "
        "started since; build it again"
    )
    assert found["stale"] == dict.fromkeys(found["stale"], expected)
    assert found["after reset"] == found["replaced by another precision"] == expected
    assert found["current"].startswith("RuntimeError: the Taichi runtime of this simulation is gone")


def test_closing_an_old_simulation_does_no_harm(found):
    assert found["close"] == found["close again"] == "nothing"
    assert found["untouched by the old one's end"] is True


def test_a_new_one_is_the_same(found):
    assert found["new one is the same"] is True
    assert found["owned"] is True and found["value of ours"] is True
