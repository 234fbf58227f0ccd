"""Snapshots of the state between segments: in memory, or on disk where memory is short."""

import shutil
import tempfile
import weakref
from pathlib import Path

import numpy as np
from checkpoint_schedules import StorageType

State = dict[str, np.ndarray]


class Snapshots:
    """States by segment number.

    The folder of those on disk is made when needed, and removed by :meth:`close`, or with this object, or when the
    program ends.
    """

    def __init__(self) -> None:
        self._memory: dict[int, State] = {}
        self._disk: dict[int, Path] = {}
        self._folder: Path | None = None

    def save(self, segment: int, state: State, storage: StorageType) -> None:
        """Keep ``state`` as the start of ``segment``."""
        if storage != StorageType.DISK:
            self._memory[segment] = state
            return
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="taichi-sim-"))
            self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        file = self._folder / f"{segment}.npz"
        np.savez(file, **state)  # type: ignore[arg-type]
        self._disk[segment] = file

    def load(self, segment: int, keep: bool) -> State:
        """The state at the start of ``segment``; forgotten afterwards unless ``keep``."""
        if segment in self._memory:
            return self._memory[segment] if keep else self._memory.pop(segment)
        file = self._disk[segment]
        with np.load(file) as stored:
            state = dict(stored)
        if not keep:
            del self._disk[segment]
            file.unlink()
        return state

    def clear(self) -> None:
        """Forget all."""
        self._memory.clear()
        for file in self._disk.values():
            file.unlink(missing_ok=True)
        self._disk.clear()

    def close(self) -> None:
        """Forget all and remove the folder."""
        self.clear()
        if self._folder is not None:
            self._remove()
            self._folder = None
