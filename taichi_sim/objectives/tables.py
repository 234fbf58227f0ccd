"""Numbers from files: point sets and recorded motion."""

from functools import lru_cache
from pathlib import Path

import numpy as np


def read_table(what: str, path: Path) -> np.ndarray:
    """Numbers of a ``.npy`` or comma-separated file; empty fields are NaN. The array is shared and read-only.

    In a text file everything after ``#`` is a comment, and a first line of column names is skipped. Raises
    ``ValueError`` naming ``what`` and the file if it cannot be read.
    """
    if not path.is_file():
        raise ValueError(f"{what}: there is no file {path}")
    try:
        return _read(path, path.stat().st_mtime_ns)
    except (OSError, ValueError, TypeError) as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(
            f"{what}: {path} could not be read ({reason}); allowed: .npy, or comma-separated numbers"
        ) from None


@lru_cache(maxsize=16)
def _read(path: Path, changed: int) -> np.ndarray:
    """``changed``, the time of the file's last change, makes a changed file a new entry of the cache."""
    if path.suffix == ".npy":
        table = np.asarray(np.load(path), np.float64)
    else:
        lines = [line.split("#")[0].strip() for line in path.read_text().splitlines()]
        rows = [[field.strip() for field in line.split(",")] for line in lines if line]
        if rows and not any(_is_number(field) for field in rows[0]):
            rows = rows[1:]
        if not rows:
            raise ValueError("it holds no numbers")
        if len({len(row) for row in rows}) > 1:
            raise ValueError("its rows differ in length")
        table = np.array([[float(field) if field else np.nan for field in row] for row in rows])
    table.setflags(write=False)
    return table


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
