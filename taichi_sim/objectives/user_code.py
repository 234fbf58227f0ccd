"""Errors of the user's own code in one line: the file, function and line they come from, and what they are."""

import importlib
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from taichi_sim.core.errors import RolloutError

#: Places whose frames lie between us and the user's code: this package, and what Python imports with.
_OURS = (str(Path(__file__).parents[1]), str(Path(importlib.__file__).parent), "<frozen importlib")

#: Where Taichi found fault with a kernel, as its message says it.
_IN_KERNEL = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>\w+):')


@contextmanager
def user_code(what: str) -> Iterator[None]:
    """Turn whatever the block raises into a ``ValueError``: ``what: FILE, line N, in FUNCTION: ERROR: message``.

    The error itself is its cause. ``RolloutError`` (the way to reject a rollout) and an interrupt pass unchanged.
    """
    try:
        yield
    except RolloutError:
        raise
    except (Exception, SystemExit) as error:
        raise ValueError(f"{what}: {_place(error)}{_said(error)}") from error


def _place(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}: "
    if in_kernel := list(_IN_KERNEL.finditer(str(error))):
        return "{file}, line {line}, in {function}: ".format(**in_kernel[-1].groupdict())
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_OURS)]
    if not frames:
        return ""
    last = [f for f in frames if f.filename == frames[0].filename][-1]  # in the user's file, not what it calls
    name = "" if last.name == "<module>" else f", in {last.name}"
    return f"{last.filename}, line {last.lineno}{name}: "


def _said(error: BaseException) -> str:
    """Name and message of an error on one line; of a kernel's, without the listing of its code."""
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    if _IN_KERNEL.search(said):
        said = said.strip().splitlines()[-1]
    return f"{type(error).__name__}: {' '.join(said.split())}".removesuffix(": ")
