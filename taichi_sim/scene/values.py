"""Reading one value against its declaration: type, shape, range, finiteness, with a sentence for every mistake."""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.core.registry import Parameter
from taichi_sim.scene.context import BAD, Context
from taichi_sim.scene.declare import PLANAR, Entry, shape_of

#: Numbers beyond this cannot be squared in single precision without overflowing soon after.
HUGE = 1e30
INT_MAX = 2**31 - 1
#: A function in a Python file beside the scene: ``file.py:name``.
FUNCTION_IN_FILE = re.compile(r"(.+\.py):(\w+)")


def read_value(entry: Entry, value: Any, path: str, context: Context) -> Any:
    """``value`` as it is kept in a scene (floats, lists, arrays, text), or ``BAD`` with the problem reported.

    Tables (``kind="shape"``, profiles, overrides) are not handled here.
    """
    parameter = entry.parameter
    if parameter.kind == "real":
        return _real(entry, value, path, context)
    if parameter.kind == "int":
        return _int(parameter, value, path, context)
    if parameter.kind == "flag":
        return value if isinstance(value, bool) else context.add(path, "must be true or false", value)
    if parameter.kind == "choice":
        return _choice(parameter, value, path, context)
    if callable(value) and parameter.kind == "text":
        return value
    if not parameter.shape:
        return _text(parameter, value, path, context)
    if isinstance(value, str):  # a list of one
        return [_text(parameter, value, path, context)]
    if not isinstance(value, list | tuple):
        return context.add(path, 'must be a list of texts, for example ["NAME"]', value)
    return [_text(parameter, item, f"{path}[{i}]", context) for i, item in enumerate(value)]


def expected(parameter: Parameter, dim: int | None) -> str:
    """What a real parameter may be, in words: ``a number > 0 Pa``, ``a list of 2 numbers, m``."""
    pattern = _pattern(parameter.shape, dim)
    if not pattern:
        words = "a number"
    elif pattern == ("any",):
        words = "a list of numbers"
    elif len(pattern) == 1:
        words = f"a list of {pattern[0]} numbers"
    else:
        words = f"nested lists of numbers of shape ({' x '.join(str(size) for size in pattern)})"
    allowed = parameter.range_text()
    if allowed != "finite":
        return f"{words}{' ' if not pattern else ', each '}{allowed}"
    return f"{words}, {parameter.unit}" if parameter.unit not in ("", "1") else words


def _pattern(shape: tuple[Any, ...], dim: int | None) -> tuple[Any, ...]:
    if dim is None:
        return tuple("any" if size == "dim" or size in PLANAR else size for size in shape)
    return shape_of(shape, dim)


def _fits(shape: tuple[int, ...], pattern: tuple[Any, ...]) -> bool:
    return len(shape) == len(pattern) and all(
        want == "any" or want == have for have, want in zip(shape, pattern, strict=True)
    )


def _real(entry: Entry, value: Any, path: str, context: Context) -> Any:
    parameter = entry.parameter
    words = f"must be {expected(parameter, context.dim)}"
    patterns = [_pattern(shape, context.dim) for shape in (parameter.shape, *entry.also)]
    unsure = context.dim is None and any(size == "dim" or size in PLANAR for size in parameter.shape)
    if isinstance(value, Mapping):
        if set(value) != {"file"}:
            return context.add(path, words + (' or {file = "NAME.npy"}' if any(patterns) else ""), dict(value))
        value = _load_array(value["file"], f"{path}.file", context)
        if value is BAD:
            return BAD
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, int | float) and not isinstance(value, bool):
        if () not in patterns and ("any",) not in patterns:
            fixed = patterns[0]
            if value == 0 and fixed and "any" not in fixed and fixed == (fixed[0],):
                return [0.0] * fixed[0]
            return value if unsure else context.add(path, words, value)
        problem = _number(parameter, value)
        return context.add(path, problem, value) if problem else float(value)
    array = _array(value)
    if isinstance(array, str):
        return context.add(path, words if not array else f"{words}; {array}", value)
    if not any(_fits(array.shape, pattern) for pattern in patterns) and not unsure:
        others = [p for p in patterns[1:] if p]
        more = f" (or an array of shape {' or '.join(_shown(p) for p in others)})" if others else ""
        return context.add(path, f"{words}{more}; got shape {_shown(array.shape)}", value)
    if problem := _element(parameter, array):
        return context.add(path + problem[0], problem[1], problem[2])
    return array if isinstance(value, np.ndarray) else array.tolist()


def _shown(shape: tuple[Any, ...]) -> str:
    return f"({' x '.join(str(size) for size in shape)})"


def _number(parameter: Parameter, value: float) -> str | None:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if np.isinf(number) and np.isinf(np.asarray(0.0 if parameter.default is None else parameter.default)).any():
        return None  # a limit that is infinite by default may be infinite
    if np.isnan(number) and parameter.gaps:
        return None
    if not np.isfinite(number) or abs(number) > HUGE:
        allowed = parameter.range_text()
        return f"must be finite (at most {HUGE:g} in size)" + ("" if allowed == "finite" else f" and {allowed}")
    return parameter.check(number)


def _element(parameter: Parameter, array: np.ndarray) -> tuple[str, str, float] | None:
    """First offending element as (index text, sentence, value)."""
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(array) <= HUGE)
    for limit, open_, side in (
        (parameter.low, parameter.low_open, -1),
        (parameter.high, parameter.high_open, 1),
    ):
        if limit is not None:
            beyond = side * (array - limit)
            bad |= (beyond > 0) | ((beyond == 0) & open_)
    for index in np.argwhere(bad):
        where, value = "".join(f"[{i}]" for i in index), float(array[tuple(index)])
        if message := _number(parameter, value):
            return where, message, value
    return None


def _array(value: Any) -> np.ndarray | str:
    """A float64 array, or why there is none ("" where the plain expectation says it all)."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float64) if value.dtype.kind in "fiu" else "its elements are not real numbers"
    if not isinstance(value, list | tuple):
        return ""
    flat = list(value)
    while flat:
        item = flat.pop()
        if isinstance(item, list | tuple):
            flat.extend(item)
        elif isinstance(item, np.ndarray):
            flat.extend(item.ravel().tolist())
        elif isinstance(item, bool | np.bool_) or not isinstance(item, int | float | np.integer | np.floating):
            return f"{item!r} is not a number"
    try:
        return np.array(value, dtype=np.float64)
    except OverflowError:
        return "a number in it is too large"
    except ValueError:
        return "its rows differ in length"


def _int(parameter: Parameter, value: Any, path: str, context: Context) -> Any:
    low = -INT_MAX if parameter.low is None else int(parameter.low)
    high = INT_MAX if parameter.high is None else int(parameter.high)
    words = f"must be a whole number from {low} to {high}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= int(value) <= high:
        return context.add(path, words, value)
    return int(value)


def _choice(parameter: Parameter, value: Any, path: str, context: Context) -> Any:
    if isinstance(value, str | int | float) and not isinstance(value, bool) and value in parameter.choices:
        return next(choice for choice in parameter.choices if choice == value)
    if isinstance(value, str) and all(isinstance(c, str) for c in parameter.choices):
        return context.add(path, unknown(parameter.name or "value", value, parameter.choices), value)
    return context.add(path, f"must be one of {', '.join(map(repr, parameter.choices))}", value)


def _text(parameter: Parameter, value: Any, path: str, context: Context) -> Any:
    if not isinstance(value, str | Path) or not str(value):
        hint = ": 'package.module:function'; in Python the function itself" if parameter.name == "function" else ""
        return context.add(path, f"must be a text in quotes{hint}", value)
    if parameter.kind == "file":
        return find_file(str(value), path, context)
    if parameter.name == "function" and context.folder and (found := FUNCTION_IN_FILE.fullmatch(str(value))):
        return f"{context.folder / found[1]}:{found[2]}"
    return str(value)


def find_file(name: str, path: str, context: Context) -> Any:
    """Absolute path of an existing file named relative to the scene's folder, or ``BAD``."""
    file = Path(name).expanduser()
    if not file.is_absolute():
        file = (context.folder or Path.cwd()) / file
    if file.is_file():
        return str(file.resolve())
    there = [f.name for f in file.parent.iterdir()] if file.parent.is_dir() else []
    close = difflib.get_close_matches(file.name, there, n=1)
    hint = f"; did you mean {str(Path(name).parent / close[0])!r}?" if close else f" in {file.parent}"
    return context.add(path, f"there is no such file{hint}", name)


def _load_array(name: Any, path: str, context: Context) -> Any:
    if not isinstance(name, str) or not name:
        return context.add(path, "must be the name of a .npy or .csv file", name)
    file = find_file(name, path, context)
    if file is BAD:
        return BAD
    try:
        if file.endswith(".npy"):
            array = np.load(file, allow_pickle=False)
        elif file.endswith(".csv"):
            array = np.loadtxt(file, delimiter=",", comments="#", ndmin=1)
        else:
            return context.add(path, "must be a .npy or .csv file", name)
    except (ValueError, OSError, EOFError) as error:
        return context.add(path, f"cannot be read as an array: {error}", name)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        return context.add(path, "must hold real numbers", name)
    return array.astype(np.float64)
