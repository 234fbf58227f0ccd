"""Scenes to files: readable TOML, exact numbers, large arrays beside it, nothing half written."""

import os
import secrets
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from taichi_sim.core.errors import Problem, SceneError
from taichi_sim.core.places import check_place
from taichi_sim.scene.raw import INLINE, function_name, to_raw
from taichi_sim.scene.schema import Scene
from taichi_sim.scene.toml import dumps
from taichi_sim.scene.values import FUNCTION_IN_FILE


def save(scene: Scene, path: "str | PathLike[str]") -> str:
    """Write ``scene`` to ``path`` and arrays of more than 64 numbers to ``<stem>.<entry>.npy`` beside it.

    Each file appears whole or not at all; the scene last. Raises ``SceneError`` naming entries that a file cannot
    hold (a local function), ``ValueError`` for a place that cannot be written to.
    """
    file = Path(path).expanduser().resolve()
    check_place("scene", file, shown=path)
    problems: list[Problem] = []
    arrays: dict[Path, np.ndarray] = {}
    table = _portable(to_raw(scene), "", file, arrays, problems)
    if problems:
        raise SceneError(problems, str(path))
    file.parent.mkdir(parents=True, exist_ok=True)
    for target, array in arrays.items():
        _write(target, lambda stream, array=array: np.save(stream, array, allow_pickle=False))
    text = dumps(table).encode()
    _write(file, lambda stream: stream.write(text))
    return str(path)


def _portable(value: Any, path: str, file: Path, arrays: dict[Path, np.ndarray], problems: list[Problem]) -> Any:
    """``value`` as a file can hold it: arrays as references, files relative where they lie beside the scene."""
    if isinstance(value, Mapping):
        return {
            key: _portable(item, f"{path}.{key}" if path else str(key), file, arrays, problems)
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list):
        return [_portable(item, f"{path}[{i}]", file, arrays, problems) for i, item in enumerate(value)]
    if isinstance(value, np.ndarray) and value.size > INLINE:
        target = file.with_name(f"{file.stem}.{path.replace('[', '.').replace(']', '')}.npy")
        arrays[target] = np.ascontiguousarray(value, np.float64)
        return {"file": target.name}
    if callable(value):
        return _importable(value, path, problems)
    if isinstance(value, str) and path.endswith(".file"):
        return _relative(value, file.parent)
    if isinstance(value, str) and path.endswith(".function") and (found := FUNCTION_IN_FILE.fullmatch(value)):
        return f"{_relative(found[1], file.parent)}:{found[2]}"
    if not isinstance(value, str | int | float | np.ndarray):
        problems.append(Problem(path, "cannot be written to a file", value, True))
    return value


def _relative(file: str, folder: Path) -> str:
    """``file`` relative to ``folder`` if it lies inside it, so that both can be moved together; else absolute."""
    whole = Path(file).expanduser().resolve()
    return "" if not file else whole.relative_to(folder).as_posix() if whole.is_relative_to(folder) else str(whole)


def _importable(function: Any, path: str, problems: list[Problem]) -> str:
    name = function_name(function)
    if not name:
        message = "is a local Python function, which a file cannot hold; put it in a module: 'package.module:function'"
        problems.append(Problem(path, message, function, True))
    return name


def _write(file: Path, write: Callable[[BinaryIO], Any]) -> None:
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
