"""Plots as PNG files, drawn without a display and without matplotlib's global state."""

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from taichi_sim.io.atomic import write_atomic

BLUE, ORANGE, GREY, GREEN, RED = "#3c76b8", "#e0662f", "#7a8290", "#4f9a4a", "#c23b54"
COLORS = (BLUE, ORANGE, GREEN, RED, GREY)


@dataclass
class Series:
    """Values for :func:`plot_xy`: x, y of equal length; ``kind`` "line", "points" or "steps"; error bars ±."""

    label: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    kind: str = "line"
    error: Sequence[float] | np.ndarray | None = None
    color: str | None = None


def plot_xy(
    path: str | os.PathLike[str],
    series: Sequence[Series],
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    logx: bool = False,
    logy: bool = False,
) -> Path:
    """Plot series over each other (a reference as line, what was measured as points) to a PNG; returns the path.

    Units belong into the labels. Values that are not finite leave a gap. Raises ``ValueError`` for no series, unequal
    lengths or an unknown kind.
    """
    if not series:
        raise ValueError(f"plot {path}: there is nothing to plot")
    figure, axes = _figure()
    for k, one in enumerate(series):
        x, y = np.asarray(one.x, float).ravel(), np.asarray(one.y, float).ravel()
        if x.shape != y.shape:
            raise ValueError(f"plot {path}: {one.label!r} has {len(x)} x and {len(y)} y values")
        color = one.color or COLORS[k % len(COLORS)]
        if one.error is not None:
            axes.errorbar(x, y, np.asarray(one.error, float), fmt="none", ecolor=color, alpha=0.5, capsize=2)
        if one.kind == "line":
            axes.plot(x, y, color=color, lw=1.8, label=one.label)
        elif one.kind == "points":
            axes.plot(x, y, "o", color=color, ms=4.5, mew=0, label=one.label)
        elif one.kind == "steps":
            axes.step(x, y, where="post", color=color, lw=1.8, label=one.label)
        else:
            raise ValueError(f"plot {path}: kind of {one.label!r} must be line, points or steps, got {one.kind!r}")
    axes.set_xscale("log" if logx else "linear")
    axes.set_yscale("log" if logy else "linear")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    return _save(figure, path)


def plot_progress(
    path: str | os.PathLike[str],
    loss: Sequence[float],
    gradient_norm: Sequence[float] | None = None,
    best_iteration: int | None = None,
    title: str = "",
    stages: Sequence[tuple[int, str]] = (),
) -> Path:
    """Plot the loss of every evaluation (left axis), its gradient's norm (right axis, logarithmic) and the best one.

    ``stages`` (first evaluation, name) are told apart, where there are several; the best so far is that of each.
    Entries that are not finite leave a gap. Raises ``ValueError`` when there is no loss, or counts differ.
    """
    losses = np.asarray(loss, float).ravel()
    if not len(losses):
        raise ValueError(f"plot {path}: there is no loss to plot")
    from matplotlib.ticker import MaxNLocator

    figure, axes = _figure()
    counts = np.arange(len(losses))
    axes.plot(counts, losses, color=BLUE, lw=2.0, marker="o", ms=3.0 if len(losses) < 120 else 0, label="loss")
    firsts = [0, *(first for first, _ in stages[1:]), len(losses)]
    best = np.concatenate([np.fmin.accumulate(losses[a:b]) for a, b in pairwise(firsts)])
    axes.plot(counts, best, color=BLUE, lw=1.0, ls=":", alpha=0.8, drawstyle="steps-post", label="best so far")
    for first, name in stages if len(stages) > 1 else ():
        if first:
            axes.axvline(first - 0.5, color=GREY, lw=1.0)
        axes.annotate(name, (first - 0.4, 0.98), xycoords=("data", "axes fraction"), color=GREY, fontsize=8, va="top")
    if best_iteration is not None and 0 <= best_iteration < len(losses) and np.isfinite(losses[best_iteration]):
        axes.plot(
            best_iteration, losses[best_iteration], "*", color=RED, ms=12, label=f"best: {losses[best_iteration]:.4g}"
        )
    axes.set_xlabel("evaluation")
    axes.set_ylabel("loss", color=BLUE)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    handles, labels = axes.get_legend_handles_labels()
    if gradient_norm is not None:
        norm = np.asarray(gradient_norm, float).ravel()
        if norm.shape != losses.shape:
            raise ValueError(f"plot {path}: {len(losses)} losses but {len(norm)} gradient norms")
        right = axes.twinx()
        right.plot(counts, np.where(norm > 0, norm, np.nan), color=ORANGE, lw=1.3, alpha=0.9, label="gradient norm")
        if (norm > 0).any():
            right.set_yscale("log")
        right.set_ylabel("gradient norm", color=ORANGE)
        right.spines["top"].set_visible(False)
        more = right.get_legend_handles_labels()
        handles, labels = handles + more[0], labels + more[1]
    axes.legend(handles, labels, frameon=False)
    return _save(figure, path)


def _figure():
    """A figure of our look: (figure, axes)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.2), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.grid(True, color="#e3e6eb", lw=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _save(figure, path: str | os.PathLike[str]) -> Path:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return write_atomic(path, buffer.getvalue())
