"""Plots are pictures with something on them, and do not touch matplotlib's state."""

import sys

import numpy as np
import pytest
from PIL import Image

from taichi_sim.io.plots import BLUE, ORANGE, Series, plot_progress, plot_xy


def share(file, color: str) -> float:
    """Share of pixels of (nearly) this colour."""
    rgb = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)])
    pixels = np.asarray(Image.open(file).convert("RGB")).astype(int)
    return float((np.abs(pixels - rgb).max(axis=2) < 24).mean())


def test_progress_shows_loss_and_gradient_with_gaps(tmp_path):
    loss = np.exp(-np.arange(40) / 9.0)
    loss[7] = np.nan
    file = plot_progress(tmp_path / "p.png", loss, loss * 3, 39, "crawler")
    assert share(file, BLUE) > 1e-3 and share(file, ORANGE) > 1e-3
    bare = plot_progress(tmp_path / "q.png", [1.0])
    assert share(bare, ORANGE) == 0.0
    assert file.read_bytes() == plot_progress(tmp_path / "again.png", loss, loss * 3, 39, "crawler").read_bytes()
    with pytest.raises(ValueError, match="40 losses but 39"):
        plot_progress(tmp_path / "bad.png", loss, loss[:-1])
    with pytest.raises(ValueError, match="no loss"):
        plot_progress(tmp_path / "bad.png", [])
    assert not (tmp_path / "bad.png").exists()


def test_reference_and_measured(tmp_path):
    x = np.linspace(0.1, 5, 60)
    file = plot_xy(
        tmp_path / "xy.png",
        [Series("Euler–Bernoulli", x, x**3), Series("reached", x[::6], x[::6] ** 3 * 1.02, "points", 0.1 * x[::6])],
        "load / N",
        "deflection / m",
        "cantilever",
        logy=True,
    )
    assert share(file, BLUE) > 5e-4 and share(file, ORANGE) > 5e-4
    with pytest.raises(ValueError, match="60 x and 59 y"):
        plot_xy(tmp_path / "bad.png", [Series("a", x, x[:-1])])
    with pytest.raises(ValueError, match="kind of 'a'"):
        plot_xy(tmp_path / "bad.png", [Series("a", x, x, "bars")])
    with pytest.raises(ValueError, match="nothing"):
        plot_xy(tmp_path / "bad.png", [])
    assert "matplotlib.pyplot" not in sys.modules
