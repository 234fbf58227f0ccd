"""``result.json``: what a run leaves for other programs. Documented keys, a format number, written atomically."""

import importlib.metadata
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import taichi_sim
from taichi_sim.io.atomic import write_json

FORMAT = 1
#: keys of every result
KEYS = (
    "format", "scene", "versions", "seed", "precision", "threads", "envs", "dt", "frames", "substeps", "particles",
    "status", "wall_s", "peak_memory_mb", "state_hash",
)  # fmt: skip
#: further keys of a run that finished; one that did not has a ``reason``
RUN_KEYS = ("objectives", "loss", "notes")
#: further keys of an optimisation
OPTIMIZE_KEYS = (
    "loss", "best_loss", "best_iteration", "evaluations", "parameters", "method", "grad_norm", "start", "reason",
    "notes", "stages",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Versions that decide the numbers: ours, Taichi's, NumPy's, SciPy's, Python's."""
    others = {name: importlib.metadata.version(name) for name in ("taichi", "numpy", "scipy")}
    return {"python": platform.python_version(), "taichi-sim": taichi_sim.__version__, **others}


def write_result(folder: str | os.PathLike[str], result: Mapping[str, Any], optimize: bool = False) -> Path:
    """Write ``folder/result.json``; ``format`` and ``versions`` are filled in. Returns the file.

    Raises ``ValueError`` naming the documented keys that are missing. Further keys are welcome.
    """
    whole = {"format": FORMAT, "versions": versions(), **result}
    wanted = KEYS + OPTIMIZE_KEYS if optimize else KEYS
    missing = [key for key in wanted if key not in whole]
    if missing:
        raise ValueError(f"result.json: missing {', '.join(missing)}")
    return write_json(Path(folder) / "result.json", whole)
