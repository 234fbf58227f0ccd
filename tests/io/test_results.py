"""result.json has every documented key."""

import json

import pytest

from taichi_sim.io.results import KEYS, OPTIMIZE_KEYS, write_result


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
