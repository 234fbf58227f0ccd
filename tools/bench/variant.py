"""What a variant of the step offers to the worker that serves it, and helpers shared by them."""

import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np

from bench.scenes import BenchScene


class Unavailable(Exception):
    """This variant cannot run here; the message says why."""


@dataclass
class Result:
    """What a run ended with, in a form that does not depend on the order of particles."""

    mean_height: float  # m above the floor, after the last step
    gradient_sum: list[float] = field(default_factory=list)  # of d mean height / d starting velocity, per axis; s
    gradient_norm: list[float] = field(default_factory=list)  # root of the sum of squares over particles, per axis; s
    extra: dict[str, float] = field(default_factory=dict)


class Variant(ABC):
    """One implementation of the scene. Both calls start from the initial state and return when all work is done."""

    has_gradient = True

    @abstractmethod
    def forward(self) -> None:
        """Run the scene once."""

    def forward_backward(self) -> None:
        """Run the scene once and differentiate the mean final height with respect to all starting velocities."""
        raise Unavailable("forward only")

    @abstractmethod
    def result(self) -> Result:
        """What the last run ended with."""


@dataclass(frozen=True)
class Kind:
    """How a variant is loaded, and where."""

    name: str
    doc: str
    scenes: tuple[str, ...]
    slow_cold_start: bool = False  # minutes of compilation: measured when its cache is empty, then remembered


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "ours",
            "taichi_sim.Simulation",
            ("box_3d", "muscle_3d", "box_2d", "tiny_2d", "tiny_2d_x8", "long_2d", "longer_2d"),
        ),
        Kind(
            "difftaichi_style",
            "the usual Taichi program: fields, every step stored, atomics, kernel.grad; particles sorted at the start",
            ("box_3d", "box_2d", "tiny_2d"),
            slow_cold_start=True,
        ),
        Kind("warp_style", "Warp, wp.Tape, on the CPU; particles sorted at the start", ("box_3d", "box_2d", "tiny_2d")),
        Kind(
            "plain_launches",
            "hand-written adjoints on ndarrays, every kernel an ordinary Taichi call; particles sorted at the start",
            ("tiny_2d",),
        ),
        Kind("plain_reference", "C++ with OpenMP, forward only: what the machine can do", ("box_3d", "muscle_3d")),
    )
}


def load(kind: str, scene: BenchScene, threads: int) -> Variant:
    """The variant ``kind`` of ``scene``. Raises ``Unavailable`` with the reason where it cannot run."""
    module: ModuleType = importlib.import_module(f"bench.{kind}")
    return module.load(scene, threads)


def gradient_result(mean_height: float, gradient: np.ndarray | None) -> Result:
    """``Result`` of a run. ``gradient``: (n, dim), or (dim,) where all particles share one starting velocity."""
    if gradient is None:
        return Result(mean_height)
    rows = np.atleast_2d(np.asarray(gradient, np.float64))
    norm = np.sqrt((rows**2).sum(0)).tolist() if len(rows) > 1 else []
    return Result(mean_height, rows.sum(0).tolist(), norm)
