"""Reading and changing entries of a scene by path, as ``--set PATH=VALUE`` does."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.core.errors import Problem, SceneError, unknown
from taichi_sim.scene.load import from_dict
from taichi_sim.scene.paths import quantities
from taichi_sim.scene.raw import to_raw
from taichi_sim.scene.schema import Scene, Signal
from taichi_sim.scene.toml import parse

#: Tables whose entries have names given by the user.
_NAMED = ("materials", "bodies", "obstacles", "fields", "actuators", "sensors", "objectives", "regions", "design")


def parse_assignment(text: str, option: str = "--set") -> tuple[str, Any]:
    """``PATH=VALUE`` as path and value; VALUE is written as in a scene file, a single word needs no quotes.

    Raises ``ValueError`` saying what is wrong.
    """
    path, equals, value = text.partition("=")
    path, value = path.strip(), value.strip()
    if not equals or not path or not value:
        raise ValueError(f"{option} {text!r}: write PATH=VALUE, for example materials.jelly.youngs_modulus=2e4")
    try:
        return path, parse(f"value = {value}".encode(), option)["value"]
    except SceneError:
        if re.fullmatch(r"[A-Za-z_][\w.:/-]*", value):
            return path, value
        raise ValueError(f"{option} {text!r}: {value!r} is not a number, list, table or word") from None


def get_value(scene: Scene, path: str) -> Any:
    """What ``path`` holds, with defaults filled in: a float64 array for numbers with a gradient, else the entry.

    Raises ``ValueError`` with the nearest name for an unknown path.
    """
    known = quantities(scene)
    if path in known and known[path].value is not None:
        return known[path].value
    here: Any = scene.resolved()
    for i, key in enumerate(tokens := _tokens(path)):
        names = _names(here)
        if key not in names:
            where = ".".join(tokens[:i]) or "the scene"
            raise ValueError(f"{path}: {unknown(f'entry of {where},', key, names)}")
        here = here[int(key)] if isinstance(here, list) else here[key] if isinstance(here, Mapping) else _get(here, key)
    return here


def _get(table: Any, key: str) -> Any:
    return getattr(table, key)


def _names(table: Any) -> list[str]:
    if isinstance(table, Mapping):
        return list(table)
    if isinstance(table, list):
        return [str(i) for i in range(len(table))]
    fields = getattr(table, "__struct_fields__", ())
    return [f for f in fields if f not in ("parameters", "source")] + list(getattr(table, "parameters", ()))


def set_values(scene: Scene, values: Mapping[str, Any]) -> Scene:
    """A copy of ``scene`` with entries replaced by path; ``*`` stands for every name of a table.

    Works for every entry, with a gradient or not. Raises ``SceneError`` listing every mistake of the new scene.
    """
    raw = _copy(to_raw(scene))
    raw["design"] = {str(i): entry for i, entry in enumerate(raw.get("design", []))}
    problems = []
    for path, value in values.items():
        try:
            if path == "dt":  # the name of the substep's length, which only a simulation has
                raise ValueError("is what the build makes of solver.dt, the largest substep: set that")
            _set(raw, _tokens(path), (), value)
        except ValueError as error:
            problems.append(Problem(path, str(error), value, True))
    if problems:
        raise SceneError(problems, scene.source)
    if isinstance(raw["design"], dict):
        raw["design"] = list(raw["design"].values())
    return from_dict(raw, scene.source)


def actuate(scene: Scene, activation: Any) -> None:
    """Give every actuator of ``scene`` its column of ``activation`` (frames, actuators) as an ``array`` signal."""
    try:
        array = np.array(activation, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"activation must be an array of numbers, got {type(activation).__name__}") from None
    wanted = (scene.frames, len(scene.actuators))
    if array.shape != wanted:
        listed = ", ".join(scene.actuators) or "none"
        raise ValueError(f"activation must have shape (frames, actuators) = {wanted} ({listed}), got {array.shape}")
    if not np.isfinite(array).all():
        frame, column = (int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"activation[{frame}, {column}] = {array[frame, column]} must be finite")
    for column, actuator in enumerate(scene.actuators.values()):
        actuator.signal = Signal(kind="array", values=array[:, column].copy())


def _tokens(path: str) -> list[str]:
    return re.sub(r"\[(\d+)\]", r".\1", path).split(".")


def _copy(raw: Any) -> Any:
    if isinstance(raw, Mapping):
        return {key: _copy(item) for key, item in raw.items()}
    return [_copy(item) for item in raw] if isinstance(raw, list) else raw


def _set(table: dict[str, Any], tokens: list[str], done: tuple[str, ...], value: Any) -> None:
    key, rest = tokens[0], tokens[1:]
    if key == "*" and rest:
        for name in list(table):
            _set(table, [name, *rest], done, value)
        return
    if key not in table and done and done[-1] in _NAMED:
        raise ValueError(unknown(f"entry of {'.'.join(done)},", key, table))
    if not rest:
        table[key] = _plain(value)
        return
    if not isinstance(table.get(key), dict):
        table[key] = _opened(table.get(key), key, done, table)
    _set(table[key], rest, (*done, key), value)


def _opened(inner: Any, key: str, done: tuple[str, ...], table: Mapping[str, Any]) -> dict[str, Any]:
    """The table an entry stands for where it is written short, or is left out."""
    if done[:1] == ("bodies",) and key == "material" and isinstance(inner, str):
        return {"base": inner}
    if done == ("domain", "walls"):
        default = table.get("default", "separate") if inner is None else inner
        return dict(default) if isinstance(default, Mapping) else {"kind": default}
    if done[:1] == ("fields",) and key == "signal" and inner is None:
        return {"kind": "constant", "value": 1.0}
    if inner is not None:
        raise ValueError(f"{'.'.join((*done, key))} = {inner!r} has no entries of its own")
    return {}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value if isinstance(value, np.ndarray) else to_raw(value)
