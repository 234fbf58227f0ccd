"""What a run or an optimisation leaves behind: the content of ``result.json``, and the same as a Python object."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from taichi_sim.core.errors import RolloutError
from taichi_sim.io.results import FORMAT, versions

__all__ = ["OptimizationResult", "base_record", "ending"]


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

    ``status`` is ``"finished"``, ``"running"``, ``"interrupted"`` or ``"failed"``. ``hashed=False`` leaves
    ``state_hash`` empty, for a record written before there is a final state. ``dt`` in s, ``substeps`` per frame,
    ``particles`` of one environment.
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


def ending(error: BaseException) -> dict[str, str]:
    """``status`` and ``reason`` of a record whose run was ended by ``error``."""
    if isinstance(error, KeyboardInterrupt):
        return {"status": "interrupted", "reason": "interrupted"}
    said = str(error) if isinstance(error, ValueError | RolloutError) else f"{type(error).__name__}: {error}"
    return {"status": "failed", "reason": said}


@dataclass
class OptimizationResult:
    """Best design found, the way there, and what it was found with.

    ``loss`` and ``grad_norm`` have one entry per evaluation, ``None`` where it was rejected; ``best_iteration`` is an
    index into them. ``parameters`` and ``start`` map paths to values at the best evaluation and at the first one.
    ``stages`` say which evaluations belong to which horizon: plain ``horizon`` (frames), ``first`` (index of the first
    one), ``evaluations``, ``best_iteration``, ``best_loss``; one, unless there is a curriculum. Losses over different
    horizons cannot be compared: the best is that of the last stage begun. ``reason`` says why it stopped. ``base``
    holds the keys every ``result.json`` has (see :func:`base_record`); its ``state_hash`` is that of a rollout with
    ``parameters``, its ``wall_s`` includes what was replayed after a kill.
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
    stages: list[dict[str, Any]] = field(default_factory=list)

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
            "stages": self.stages,
            "reason": self.reason,
            "loss": self.loss,
            "grad_norm": self.grad_norm,
            "parameters": _plain(self.parameters),
            "start": _plain(self.start),
            "notes": self.notes,
        }


def _plain(values: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {path: np.asarray(value).tolist() for path, value in values.items()}
