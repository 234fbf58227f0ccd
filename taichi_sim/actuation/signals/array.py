"""One given activation per frame: recorded or computed elsewhere, or optimised frame by frame."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from taichi_sim.actuation.signal import SignalKind, Values, signals
from taichi_sim.core.registry import Parameter


@lru_cache(maxsize=8)
def _read(path: Path, changed: int) -> np.ndarray:
    """The numbers of a file, shape (frames, columns); ``changed`` (time of change) keeps the cache honest."""
    try:
        table = np.load(path) if path.suffix == ".npy" else np.loadtxt(path, delimiter=",", ndmin=2)
        table = np.asarray(table, np.float64)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"signal 'array': {path} could not be read ({error}); allowed: .npy, or comma-separated numbers, one row "
            "a frame, comments after #"
        ) from None
    return table[:, None] if table.ndim == 1 else table


def _load(p: Values, folder: Path) -> Values:
    if not p["file"]:
        if p["values"].size == 0:
            raise ValueError("signal 'array': give values, or a file that holds them")
        return p
    if p["values"].size:
        raise ValueError("signal 'array': give values or file, not both")
    path = folder / p["file"]
    if not path.is_file():
        raise ValueError(f"signal 'array': there is no file {path}")
    table = _read(path, path.stat().st_mtime_ns)
    column = p["column"]
    if table.ndim != 2 or not 0 <= column < table.shape[1]:
        raise ValueError(f"signal 'array': {path} has shape {table.shape}; there is no column {column}")
    return {**p, "values": table[:, column].copy(), "file": ""}


def _raw(p: Values, times: np.ndarray) -> np.ndarray:
    if p["values"].shape != times.shape:
        raise ValueError(f"signal 'array': values has shape {p['values'].shape}, the rollout has {times.size} frames")
    return p["values"]


def _raw_vjp(p: Values, times: np.ndarray, bar: np.ndarray) -> dict[str, np.ndarray]:
    return {"values": bar.copy()}


signals.add(
    SignalKind(
        name="array",
        doc="one given activation per frame, listed or read from a file",
        own=(
            Parameter("values", "1", (), "activation of each frame", shape=("any",)),
            Parameter(
                "file", "", "", "file to read the values from instead: .npy or .csv, one row a frame", kind="file"
            ),
            Parameter("column", "", 0, "which column of the file, from 0", kind="int", low=0),
        ),
        raw=_raw,
        raw_vjp=_raw_vjp,
        example=lambda times, rng: {"values": rng.normal(size=times.size)},
        load=_load,
    )
)
