"""Errors written for people: what is wrong, where, and what would be right."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class SceneError(ValueError):
    """Everything that is wrong with a scene, reported at once.

    ``problems`` holds one :class:`Problem` per mistake; ``str()`` prints one line each.
    """

    def __init__(self, problems: "Iterable[Problem]", file: str | None = None) -> None:
        self.problems = list(problems)
        self.file = file
        super().__init__("\n".join(p.line(file) for p in self.problems))


class RolloutError(RuntimeError):
    """A rollout that cannot be trusted: a particle left the domain, a value is not finite, a step was too large."""


class StartError(RolloutError, ValueError):
    """A rollout that cannot begin as it is given: bodies start deep in each other or outside the domain, or the step is
    beyond the limit. What was given is the mistake, so it is a ``ValueError`` too."""


@dataclass(frozen=True)
class Problem:
    """One mistake: the path of the entry, its value, and a sentence that says what is allowed."""

    path: str
    message: str
    value: object = None
    has_value: bool = False

    def line(self, file: str | None = None) -> str:
        """``file: path = value: message`` on one line."""
        where = f"{file}: " if file else ""
        shown = f" = {short(self.value)}" if self.has_value else ""
        return f"{where}{self.path}{shown}: {self.message}"


def short(value: object) -> str:
    """``value`` on one line of at most 80 characters."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The allowed name closest to a mistyped one, or ``None``."""
    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return found[0] if found else None


def unknown(what: str, name: str, names: Iterable[str]) -> str:
    """Sentence for an unknown name, with the nearest allowed one or the list."""
    names = sorted(names)
    close = nearest(name, names)
    hint = f"did you mean {close!r}?" if close else f"allowed: {', '.join(names) or 'none'}"
    return f"unknown {what} {name!r}; {hint}"
