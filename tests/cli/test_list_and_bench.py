"""``list`` shows what the code declares; ``bench`` times."""

import json

from taichi_sim.laws.law import laws
from taichi_sim.scene.describe import describe


def test_list_shows_every_kind_with_units_defaults_and_ranges(cli):
    answer = cli("list")
    assert answer.code == 0
    for kind, entries in describe().items():
        assert kind.upper() in answer.out
        for entry in entries:
            assert entry["name"] in answer.out
    for word in ("kg/m³", "required", "> 0 Pa", "scenes", "crawler", "adam", "lr"):
        assert word in answer.out


def test_list_one_kind_one_entry_and_json(cli):
    assert json.loads(cli("list", "laws", "--json", "-").out)["laws"][0]["name"] == laws.names()[0]
    assert cli("list", "law").out == cli("list", "laws").out
    alone = cli("list", "muscle").out
    assert "strength" in alone and "body_force" not in alone
    everything = json.loads(cli("list", "--json", "-").out)
    assert {"laws", "materials", "shapes", "actuators", "signals", "objectives", "scenes"} <= set(everything)
    assert "source" in everything["materials"][0]["parameters"][0]


def test_bench_reports_times_per_particle_and_substep(cli, tiny):
    answer = cli("bench", tiny, "--repeat", "2", "--json", "-")
    assert answer.code == 0, answer.err
    (row,) = json.loads(answer.out)
    assert row["forward_backward_ns"] > row["forward_ns"] > 0
    assert row["scene"] == "tiny" and row["particles"] == 80 and row["peak_mb"] > 0
    assert "ns a particle and substep" in answer.err


def test_bench_without_objectives_times_forward_only(cli, tiny, tmp_path):
    text = (tmp_path / "tiny.toml").read_text()
    (tmp_path / "plain.toml").write_text(text[: text.index("[objectives")])
    answer = cli("bench", "plain.toml", "--repeat", "1", "--json", "-")
    assert answer.code == 0 and json.loads(answer.out)[0]["forward_backward_ns"] is None
