"""What is known while a scene is read: its folder and size, and every problem found so far."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taichi_sim.core.errors import Problem

#: Stands for a value that was refused; a problem has been reported for it.
BAD: Any = type("_Bad", (), {"__repr__": lambda self: "BAD", "__bool__": lambda self: False})()
_MISSING: Any = object()


class Context:
    """Collects problems; ``dim`` is None while it is unknown, ``folder`` is where relative files are looked for."""

    def __init__(self, root: Mapping[str, Any], folder: Path | None = None) -> None:
        self.root = root
        self.folder = folder
        self.dim: int | None = None
        self.problems: list[Problem] = []
        #: The last exception that the user's own code raised, if it is behind a problem.
        self.cause: BaseException | None = None

    def add(self, path: str, message: str, value: Any = _MISSING) -> Any:
        """Report a problem and return ``BAD``."""
        given = value is not _MISSING
        self.problems.append(Problem(path or "scene", message, value if given else None, given))
        return BAD

    def ok(self, *paths: str) -> bool:
        """Whether nothing was reported at or below any of ``paths``."""
        return not any(
            p.path == path or p.path.startswith((f"{path}.", f"{path}[")) for path in paths for p in self.problems
        )


def join(path: str, key: str) -> str:
    """``path.key``, or ``key`` at the top."""
    return f"{path}.{key}" if path else key
