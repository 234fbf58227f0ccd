"""Grains beside the same law, written again in NumPy for the benchmark."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from bench.grains import SEGMENT, Reference, bed, ours


def test_the_law_written_twice():
    """Two programs, one law: normal and tangential springs, their history, spins, a floor."""
    solver = ours(bed(216), "f64", 2)
    reference = Reference(bed(216))
    solver.begin(0)
    solver.forward(0, SEGMENT, False)
    for _ in range(SEGMENT):
        reference.step()
    assert (solver.store.view("partner")[SEGMENT] >= 0).sum() > 500
    for name in ("x", "v", "spin"):
        truth = getattr(reference.b, name)
        assert np.abs(solver.store.view(name)[SEGMENT] - truth).max() < 1e-11 * np.abs(truth).max(), name
