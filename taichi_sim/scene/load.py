"""Scenes from files and tables: read, check, and report every mistake at once."""

import difflib
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from taichi_sim.core.errors import Problem, SceneError, nearest
from taichi_sim.data import shipped_scenes
from taichi_sim.scene.check import check
from taichi_sim.scene.context import Context
from taichi_sim.scene.reader import read_scene
from taichi_sim.scene.robots import expanded
from taichi_sim.scene.schema import Scene
from taichi_sim.scene.toml import parse

#: A scene file larger than this is not one: arrays belong in .npy files beside it.
LARGEST_FILE = 64 * 2**20


def load(scene: "str | PathLike[str]") -> Scene:
    """The scene in a TOML file, or the shipped one of that name.

    Raises ``SceneError`` listing every mistake, each with file, path, value and what is allowed.
    """
    file = find(scene)
    try:
        size = file.stat().st_size
        content = file.read_bytes() if size <= LARGEST_FILE else b""
    except OSError as error:
        raise SceneError([Problem(str(file), f"cannot be read: {error.strerror}")]) from None
    if size > LARGEST_FILE:
        raise SceneError([Problem(str(file), "is too large for a scene; keep arrays in .npy files beside it")])
    return from_dict(parse(content, str(scene)), source=str(file), shown=str(scene))


def find(scene: "str | PathLike[str]") -> Path:
    """File of a scene given by path or by the name of a shipped one; ``SceneError`` with the nearest name."""
    if not isinstance(scene, str | PathLike):
        hint = "; nested tables become a scene by Scene.from_dict" if isinstance(scene, Mapping) else ""
        message = f"must be a Scene, a file or the name of a shipped scene, not {type(scene).__name__}{hint}"
        raise SceneError([Problem("scene", message)])
    text = fspath(scene)
    file = Path(text).expanduser()
    if file.is_file():
        return file.resolve()
    shipped = shipped_scenes()
    if text in shipped:
        return shipped[text]
    if file.is_dir():
        raise SceneError([Problem(text, "is a folder; give a scene file")])
    if file.suffix or len(file.parts) > 1:
        there = [f.name for f in file.parent.glob("*.toml")] if file.parent.is_dir() else []
        close = difflib.get_close_matches(file.name, there, n=1)
        if close:
            raise SceneError([Problem(text, f"there is no such file; did you mean {str(file.parent / close[0])!r}?")])
    close = nearest(file.stem, shipped)
    hint = f"did you mean the shipped scene {close!r}?" if close else f"shipped scenes: {', '.join(shipped)}"
    raise SceneError([Problem(text, f"is neither a file nor a shipped scene; {hint}")])


def from_dict(table: Mapping[str, Any], source: str | None = None, shown: str | None = None) -> Scene:
    """The scene of nested ``table``s; ``source`` is the file they came from: relative files are looked for beside it.

    Raises ``SceneError`` listing every mistake.
    """
    if not isinstance(table, Mapping):
        raise SceneError([Problem("scene", "must be a table", table, True)])
    folder = Path(source).parent if source else None
    context = Context(table, folder)
    table = expanded(table, context)
    context.root = table
    scene = read_scene(table, context)
    check(scene, context)
    if context.problems:
        raise SceneError(context.problems, shown or source) from context.cause
    scene.source = source
    return scene
