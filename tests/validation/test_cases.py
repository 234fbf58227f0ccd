"""Every case of tools/validate: the quick form of some always, all of them in full where asked (``-m slow``)."""

import pytest
from validate.case import Report, all_cases

CASES = all_cases()
FAST = ("A1", "A5", "A6", "A7", "A8", "A9", "C3", "C6", "C7", "C8", "D4", "F1", "F2", "F4", "F6", "F7")


def hold(report: Report) -> None:
    """All rows of a report hold."""
    if report.skipped:
        pytest.skip(report.skipped)
    wrong = [row for row in report.rows if not row.ok]
    assert report.rows and not wrong, "\n".join(
        f"{row.quantity}: {row.reached:.6g}, not {row.reference:g} ± {row.tolerance:g}" for row in wrong
    )


@pytest.mark.parametrize("name", FAST)
def test_quick(name):
    hold(CASES[name].run(True))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_full(name):
    hold(CASES[name].run(False))
