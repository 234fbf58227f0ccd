"""result.json has every documented key."""

import importlib.metadata
import json
import re
from pathlib import Path

import pytest

from taichi_sim.io.results import KEYS, OPTIMIZE_KEYS, versions, write_result


def test_our_version_is_that_of_the_code_installed_or_not(monkeypatch):
    def absent(name):
        if name == "taichi-sim":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0"

    declared = re.search(
        r'^version = "(.+)"$', (Path(__file__).parents[2] / "pyproject.toml").read_text(), re.MULTILINE
    )
    monkeypatch.setattr(importlib.metadata, "version", absent)
    assert declared and versions()["taichi-sim"] == declared[1]


def test_all_keys_or_an_error(tmp_path):
    result = {key: 1 for key in KEYS if key not in ("format", "versions")}
    back = json.loads(write_result(tmp_path / "run", result).read_text())
    assert set(back) == set(KEYS) and back["format"] == 1 and back["versions"]["taichi"] == "1.7.4"
    with pytest.raises(ValueError, match="missing loss, best_loss"):
        write_result(tmp_path, result, optimize=True)
    write_result(tmp_path, {**result, **dict.fromkeys(OPTIMIZE_KEYS, 0)}, optimize=True)
    del result["seed"]
    with pytest.raises(ValueError, match="missing seed"):
        write_result(tmp_path, result)
