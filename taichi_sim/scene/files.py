"""The files a scene names: what it is, beside its own entries."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def named_files(table: Mapping[str, Any], folder: Path | None) -> dict[str, Path]:
    """Files that the tables of a scene (``Scene.to_dict``) name, by the name they give: meshes, data, Python code.

    ``folder`` is where relative names start (``None``: the working folder). What does not exist is left out.
    """
    found = {name: (folder or Path()) / name for name in _names(table)}
    return {name: path for name, path in found.items() if path.is_file()}


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _names(item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key == "file" and isinstance(item, str):
                yield item
            elif key == "function" and isinstance(item, str):
                yield _code(item.rpartition(":")[0])
            else:
                yield from _names(item)


def _code(place: str) -> str:
    """File of ``file.py`` or of a module that was imported; empty if it has none."""
    if place.endswith(".py"):
        return place
    return str(getattr(sys.modules.get(place), "__file__", None) or "")
