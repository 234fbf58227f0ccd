"""What a run or an optimisation leaves behind: ``result.json``, and the same as a Python object."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["FORMAT", "OptimizationResult", "base_record", "versions", "write_result"]

#: Version of the layout of ``result.json``; it changes only when a key changes its meaning or disappears.
FORMAT = 1


def versions() -> dict[str, str]:
    """Versions of everything that decides the numbers."""
    found = {"python": platform.python_version()}
    for package in ("taichi-sim", "taichi", "numpy", "scipy"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found


def base_record(
    simulation: Any,
    *,
    scene: str,
    seed: int,
    precision: str,
    threads: int,
    envs: int = 1,
    status: str = "finished",
    wall_s: float = 0.0,
    hashed: bool = True,
) -> dict[str, Any]:
    """The keys of ``result.json`` that runs and optimisations share; ``scene`` is the scene's name.

    ``status`` is ``"finished"``, ``"running"`` or ``"failed"``. ``hashed=False`` leaves ``state_hash`` empty, for a
    record written before there is a final state. ``dt`` in s, ``substeps`` per frame, ``particles`` of one environment.
    """
    return {
        "format": FORMAT,
        "scene": scene,
        "versions": versions(),
        "seed": int(seed),
        "precision": precision,
        "threads": int(threads),
        "envs": int(envs),
        "dt": float(simulation.dt),
        "frames": int(simulation.frames),
        "substeps": int(simulation.substeps),
        "particles": int(simulation.n),
        "status": status,
        "wall_s": round(float(wall_s), 3),
        "peak_memory_mb": round(float(simulation.peak_memory_mb), 1),
        "state_hash": simulation.state_hash() if hashed else None,
    }


@dataclass
class OptimizationResult:
    """Best design found, the way there, and what it was found with.

    ``loss`` and ``grad_norm`` have one entry per evaluation, ``None`` where it was rejected; ``best_iteration`` is an
    index into them. ``parameters`` and ``start`` map paths to values at the best evaluation and at the first one.
    ``status`` is ``"finished"``, ``"running"`` or ``"failed"``, ``reason`` says why it stopped. ``base`` holds the keys
    every ``result.json`` has; its ``state_hash`` is that of a rollout with ``parameters``.
    """

    method: str
    best_loss: float
    best_iteration: int
    loss: list[float | None]
    grad_norm: list[float | None]
    parameters: dict[str, np.ndarray]
    start: dict[str, np.ndarray]
    reason: str
    notes: list[str] = field(default_factory=list)
    base: dict[str, Any] = field(default_factory=dict)

    @property
    def evaluations(self) -> int:
        return len(self.loss)

    @property
    def status(self) -> str:
        return self.base.get("status", "finished")

    def to_dict(self) -> dict[str, Any]:
        """The content of ``result.json``: plain values only."""
        return {
            **self.base,
            "method": self.method,
            "best_loss": self.best_loss,
            "best_iteration": self.best_iteration,
            "evaluations": self.evaluations,
            "reason": self.reason,
            "loss": self.loss,
            "grad_norm": self.grad_norm,
            "parameters": _plain(self.parameters),
            "start": _plain(self.start),
            "notes": self.notes,
        }


def _plain(values: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {path: np.asarray(value).tolist() for path, value in values.items()}


def write_result(folder: str | os.PathLike[str], record: Mapping[str, Any] | OptimizationResult) -> Path:
    """Write ``folder/result.json`` atomically, making the folder; returns the file."""
    from taichi_sim.io.atomic import write_json

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "result.json"
    write_json(file, record.to_dict() if isinstance(record, OptimizationResult) else dict(record))
    return file
