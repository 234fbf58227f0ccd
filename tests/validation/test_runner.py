"""The program around the cases: what a row is, what is written, how it ends."""

import json

import pytest
from validate import main as program
from validate import report
from validate.case import Case, Plot, Report, Row, all_cases
from validate.measure import crossings, order, peak

from taichi_sim.io.plots import Series


def good(quick: bool) -> Report:
    made = Report("Z1")
    made.row("length, m", 2.0, 2.05, 0.1)
    made.at_most("error", 1e-3, 1e-4)
    made.at_least("share", 0.5, 0.75)
    made.notes.append("a remark")
    made.plots.append(Plot([Series("line", [0.0, 1.0], [1.0, 2.0])], "x", "y", "title"))
    return made


def bad(quick: bool) -> Report:
    raise ArithmeticError("went wrong")


@pytest.fixture
def two(monkeypatch):
    cases = {"Z1": Case("Z1", "a good one", good), "Z2": Case("Z2", "a bad one", bad)}
    monkeypatch.setattr(program, "all_cases", lambda: cases)


@pytest.mark.parametrize(
    ("quantity", "reached", "ok"),
    [
        ("x", 1.1, True), ("x", 0.85, False), ("x", float("nan"), False), ("x", float("inf"), False),
        ("x, at most", -50.0, True), ("x, at most", 1.2, False),
        ("x, at least", 50.0, True), ("x, at least", 0.8, False),
    ],
)  # fmt: skip
def test_a_row_holds_within_its_tolerance_or_on_the_right_side_of_its_bound(quantity, reached, ok):
    assert Row("Z", quantity, 1.0, reached, 0.101).ok is ok


def test_results_are_written_and_single_cases_replaced(two, tmp_path, capsys):
    assert program.main(["--only", "Z1", "--results", str(tmp_path), "--json", str(tmp_path / "rows.json")]) == 0
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert [set(row) for row in rows] == [{"id", "quantity", "reference", "reached", "tolerance", "ok"}] * 3
    assert all(row["ok"] is True for row in rows)
    text = (tmp_path / "validation.md").read_text()
    assert "3 of 3" in text and "a remark" in text and "validation/z1.png" in text
    picture = tmp_path / "validation" / "z1.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 60_000
    assert program.main(["--only", "Z2", "--results", str(tmp_path)]) == 1
    text = (tmp_path / "validation.md").read_text()
    assert "3 of 4" in text and "went wrong" in text
    assert "| Z1 |" in capsys.readouterr().out


def test_quick_writes_nothing_and_json_may_go_to_standard_output(two, tmp_path, capsys):
    assert program.main(["--quick", "--results", str(tmp_path), "--json", "-"]) == 1
    shown = capsys.readouterr()
    assert [row["id"] for row in json.loads(shown.out)] == ["Z1", "Z1", "Z1", "Z2"]
    assert "a good one" in shown.err
    assert not list(tmp_path.iterdir())


def test_an_unknown_case_is_a_mistake_of_the_user(two, capsys):
    assert program.main(["--only", "Z3"]) == 2
    assert "Z3" in capsys.readouterr().err


def test_cases_have_the_ids_of_their_rows_in_order():
    cases = all_cases()
    assert list(cases)[:3] == ["A1", "A2", "A3"]
    assert all(name == case.id for name, case in cases.items())


def test_plots_are_numbered():
    assert [report.plot_name("A1", k) for k in range(2)] == ["a1.png", "a1_2.png"]


def test_measures():
    import numpy as np

    t = np.linspace(0.0, 10.0, 401)
    assert crossings(t, np.cos(t)) == pytest.approx([np.pi / 2, 3 * np.pi / 2, 5 * np.pi / 2], abs=1e-4)
    instant, height = peak(t, 3 * np.cos(t), 4.0)
    assert (instant, height) == pytest.approx((2 * np.pi, 3.0), abs=1e-3)
    assert order(4e-3, 1e-3) == pytest.approx(2.0)
