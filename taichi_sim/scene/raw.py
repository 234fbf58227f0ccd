"""Scene structs as nested tables of plain values, the form that files hold and that is read and compared."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from taichi_sim.scene.schema import FORMAT, Kinded, Scene, Table, Wall

#: Arrays of up to this many numbers are written as lists; larger ones stay arrays (and go to .npy files).
INLINE = 64
#: Fields that say where a scene came from, not what it is.
_PROVENANCE = ("source",)


def to_raw(value: Any) -> Any:
    """``value`` as dicts, lists and plain numbers; entries that hold their default are left out."""
    if isinstance(value, Wall):
        table = _table(value)
        return table if len(table) > 1 else table["kind"]
    if isinstance(value, Table):
        return _table(value)
    if isinstance(value, Mapping):
        return {key: to_raw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_raw(item) for item in value]
    if isinstance(value, np.ndarray) and value.size <= INLINE:
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return str(value) if isinstance(value, Path) else value


def function_name(function: Any) -> str:
    """``package.module:function`` of a Python function; empty if it cannot be imported again by that name."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "<")
    return f"{module}:{name}" if module and module != "__main__" and "<" not in name else ""


def _table(table: Table) -> dict[str, Any]:
    result: dict[str, Any] = {"format": FORMAT} if isinstance(table, Scene) else {}
    for field in msgspec.structs.fields(table):
        if field.name == "parameters" or field.name in _PROVENANCE:
            continue
        item = to_raw(getattr(table, field.name))
        kept = field.required or (isinstance(table, Wall) and field.name == "kind")
        if not kept and (item is None or _is_default(field, item)):
            continue
        result[field.name] = item
    if isinstance(table, Kinded):
        result.update({key: to_raw(item) for key, item in table.parameters.items()})
    return result


def _is_default(field: msgspec.structs.FieldInfo, item: Any) -> bool:
    if field.default_factory is not msgspec.NODEFAULT:
        return isinstance(item, dict | list) and not item
    return not isinstance(item, np.ndarray) and type(item) is type(field.default) and item == field.default


def same(a: Any, b: Any) -> bool:
    """Whether two raw values are equal: a list and an array of the same numbers are, two names of one file, and a
    function and its name."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same_entry(key, a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        try:
            a, b = np.asarray(a), np.asarray(b)
        except ValueError:  # rows of different lengths
            return False
        return np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f")
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if callable(a) != callable(b):
        a, b = (function_name(value) if callable(value) else value for value in (a, b))
    missing = isinstance(a, float) and isinstance(b, float) and np.isnan(a) and np.isnan(b)  # a marker not seen
    return bool(missing or a == b)


def _same_entry(key: Any, a: Any, b: Any) -> bool:
    if key == "file" and isinstance(a, str) and isinstance(b, str):
        return os.path.realpath(a) == os.path.realpath(b)
    return same(a, b)
