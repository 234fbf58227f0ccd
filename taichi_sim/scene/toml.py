"""TOML text to tables and back: errors with a line, numbers written so that they read back exactly."""

import json
import math
import re
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from taichi_sim.core.errors import Problem, SceneError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WIDTH = 110


def parse(content: bytes, file: str) -> dict[str, Any]:
    """The tables in ``content``; raises ``SceneError`` naming ``file`` and the line of a mistake in the TOML."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise SceneError([Problem(f"line {line}", "is not UTF-8 text; is this a scene file?")], file) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SceneError([_syntax(str(error), text)], file) from None
    except RecursionError:
        raise SceneError([Problem("file", "is nested too deeply")], file) from None
    except ValueError as error:  # numbers of thousands of digits, impossible dates
        raise SceneError([Problem("file", f"is not TOML: {error}")], file) from None


def _syntax(message: str, text: str) -> Problem:
    found = re.search(r"\(at line (\d+), column (\d+)\)", message)
    lines = text.splitlines()
    number = int(found.group(1)) if found else len(lines)
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    reason = re.sub(r"\s*\(at .*\)$", "", message)
    shown = f": {line[:80]}" if line else ""
    twice = re.search(r"twice|Cannot overwrite|Cannot mutate|already|Duplicate", message)
    if twice:
        name = re.match(r"\[*\s*([^\]=]+?)\s*(?:\]+|=)", line)
        return Problem(
            f"line {number}", f"{name.group(1) if name else 'a name'!r} is given twice; each name is given once"
        )
    return Problem(f"line {number}", f"is not TOML ({reason}){shown}")


def dumps(tables: Mapping[str, Any]) -> str:
    """TOML text of nested tables: tables of tables get ``[headers]``, small ones stay in line."""
    lines: list[str] = []
    _write(tables, (), lines)
    return "\n".join(lines).strip() + "\n"


def _write(table: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    sections = [key for key, item in table.items() if _is_section(key, item, path)]
    for key, item in table.items():
        if key not in sections:
            lines.append(f"{_key(key)} = {value_text(item)}")
    for key in sections:
        here, item = (*path, key), table[key]
        header = ".".join(_key(k) for k in here)
        for part in item if isinstance(item, list) else [item]:
            if isinstance(item, list):
                lines += ["", f"[[{header}]]"]
            elif not all(_is_section(k, v, here) for k, v in part.items()):
                lines += ["", f"[{header}]"]
            _write(part, here, lines)


def _is_section(key: str, item: Any, path: tuple[str, ...]) -> bool:
    """Whether an entry gets a header of its own: top tables, their named tables, and the regions of bodies."""
    if isinstance(item, list):
        return not path and bool(item) and all(isinstance(part, Mapping) for part in item)
    if not isinstance(item, Mapping) or not item:
        return False
    return len(path) < 2 or (path[0] == "bodies" and "regions" in (*path[2:3], key if len(path) == 2 else ""))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def value_text(value: Any) -> str:
    """One value as TOML. Raises ``TypeError`` for what TOML cannot hold."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        if math.isfinite(number):
            return repr(number)
        return "nan" if math.isnan(number) else ("inf" if number > 0 else "-inf")
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, np.ndarray):
        return value_text(value.tolist())
    if isinstance(value, list | tuple):
        return _list([value_text(item) for item in value])
    if isinstance(value, Mapping):
        parts = ", ".join(f"{_key(key)} = {value_text(item)}" for key, item in value.items())
        return f"{{{parts}}}"
    raise TypeError(f"{type(value).__name__} {value!r} cannot be written to TOML")


def _list(parts: list[str]) -> str:
    """A list on one line, or wrapped where it is long (TOML allows line ends inside brackets)."""
    text = f"[{', '.join(parts)}]"
    if len(text) <= _WIDTH:
        return text
    lines = [""]
    for part in parts:
        if len(lines[-1]) + len(part) > _WIDTH - 4 and lines[-1]:
            lines.append("")
        lines[-1] += f"{part}, "
    return "[\n" + "".join(f"  {line.rstrip()}\n" for line in lines) + "]"


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
