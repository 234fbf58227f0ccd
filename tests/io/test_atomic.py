"""Files whole or not at all; JSON that is stable."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from taichi_sim.io.atomic import replacing, to_json, write_atomic, write_json


def test_text_and_bytes_arrive_and_nothing_is_left_behind(tmp_path):
    file = tmp_path / "new" / "folder" / "a.txt"
    assert write_atomic(file, "grün\n") == file
    assert file.read_bytes() == "grün\n".encode()
    write_atomic(file, b"\x00\xff")
    assert file.read_bytes() == b"\x00\xff"
    assert os.listdir(file.parent) == ["a.txt"]


def test_a_failed_write_keeps_the_old_file(tmp_path):
    file = tmp_path / "a.bin"
    write_atomic(file, "old")
    with pytest.raises(OSError, match="disk full"):
        with replacing(file) as temporary:
            temporary.write_text("half")
            raise OSError("disk full")
    assert file.read_text() == "old" and os.listdir(tmp_path) == ["a.bin"]


def test_a_killed_writer_keeps_the_old_file(tmp_path):
    file = tmp_path / "a.json"
    write_atomic(file, "old")
    code = (
        "import os, sys; from taichi_sim.io.atomic import replacing\n"
        "with replacing(sys.argv[1]) as t:\n    t.write_text('half'); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], env={**os.environ, "PYTHONPATH": os.getcwd()})
    assert done.returncode != 0 and file.read_text() == "old"


def test_links_permissions_and_folders(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    write_atomic(link, "new")
    assert link.is_symlink() and real.read_text() == "new"
    mask = os.umask(0o022)
    try:
        assert write_atomic(tmp_path / "b", "x").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(mask)
    with pytest.raises(ValueError, match="is a folder"):
        write_atomic(tmp_path, "x")


def test_json_is_stable_strict_and_exact(tmp_path):
    value = {
        "b": np.arange(3, dtype=np.int32),
        "a": {"nan": np.float32("nan"), "inf": -np.inf, "x": np.float64(0.1), "n": None, "t": np.bool_(True)},
        "c": [[1.0, 2.5], [3.0]],
        "empty": {},
        "d": (1, "ü"),
    }
    text = to_json(value)
    assert text == to_json(dict(reversed(value.items())))
    assert text.splitlines()[1] == '  "a": {' and '"b": [0, 1, 2]' in text and text.endswith("}\n")
    back = json.loads(write_json(tmp_path / "v.json", value).read_text(encoding="utf-8"))
    assert back["a"] == {"nan": None, "inf": None, "x": 0.1, "n": None, "t": True}
    assert back["c"] == [[1.0, 2.5], [3.0]] and back["d"] == [1, "ü"] and back["empty"] == {}
    third = np.float64(1) / 3
    assert json.loads(to_json([third]))[0] == third
    with pytest.raises(TypeError, match=r"value\.a\[1\]: set"):
        to_json({"a": [1, {2}]})
    with pytest.raises(TypeError, match="key 3"):
        to_json({3: 1})
