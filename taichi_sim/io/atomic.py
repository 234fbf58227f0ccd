"""Files that are there whole or not at all, and JSON that is the same text for the same values."""

import contextlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np


class WriteError(OSError):
    """A file that could not be written, said in one line that names it: a full disk, a folder that went away."""


@contextlib.contextmanager
def writing(path: str | os.PathLike[str], temporary: Path | None = None) -> Iterator[None]:
    """Errors of the system while ``path`` (by its name, or a ``temporary`` one) is written, as :class:`WriteError`."""
    try:
        yield
    except WriteError:
        raise
    except OSError as error:
        whole = Path(path).absolute()
        ours = (whole, *whole.parents, temporary and temporary.absolute())
        if error.filename is not None and Path(error.filename).absolute() not in ours:  # something read meanwhile
            raise
        raise WriteError(f"{path}: cannot be written ({error.strerror or error})") from None


def write_atomic(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Write ``content`` (text as UTF-8) to ``path``, making missing folders; returns the path.

    Readers see the old file or the new one, never a part, even if the machine stops in between: the content goes to a
    temporary name in the same folder, to the disk, and is then renamed. Raises ``ValueError`` if the path is a folder.
    """
    data = content.encode("utf-8") if isinstance(content, str) else bytes(content)
    with replacing(path) as temporary, open(temporary, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return Path(path)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary name beside ``path``, with its ending, that takes its place when the block ends well.

    When the block raises, the temporary file is removed and ``path`` stays as it was. Raises :class:`WriteError`
    where the system does not let it be written.
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path}: is a folder, expected the name of a file")
    target = Path(os.path.realpath(path))  # a link stays a link
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.stem}.{os.getpid()}-{os.urandom(4).hex()}{target.suffix}")
    try:
        with writing(path, temporary):
            yield temporary
            os.replace(temporary, target)
        _sync_folder(target.parent)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # not every file system lets a folder be synced
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_json(path: str | os.PathLike[str], value: Any) -> Path:
    """Write ``value`` as :func:`to_json` text, atomically; returns the path."""
    return write_atomic(path, to_json(value))


def to_json(value: Any) -> str:
    """JSON text of a value, equal for equal values; keys sorted, plain lists on one line, newline at the end.

    NumPy arrays become (nested) lists, NumPy numbers plain ones, paths text. JSON has no NaN and no infinity: both
    become ``null``. Raises ``TypeError`` for anything else, naming where it is, and for keys that are not text.
    """
    return _text(_plain(value, "value"), "") + "\n"


def _plain(value: Any, where: str) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), where)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{where}: the key {key!r} must be text to be written as JSON")
        return {key: _plain(value[key], f"{where}.{key}") for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{where}[{k}]") for k, item in enumerate(value)]
    raise TypeError(f"{where}: {type(value).__name__} cannot be written as JSON")


def _text(value: Any, indent: str) -> str:
    deeper = indent + "  "
    if isinstance(value, dict) and value:
        rows = [f"{deeper}{json.dumps(key, ensure_ascii=False)}: {_text(item, deeper)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, (list, dict)) for item in value):
        return "[\n" + ",\n".join(deeper + _text(item, deeper) for item in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
