"""Robot files as trees of elements that know their line and remember what was read of them.

What nobody asked for is what was not understood: :func:`leftovers` lists it. Document types are refused, with them
entities that stand for files or for gigabytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from taichi_sim.core.errors import Problem, SceneError, unknown

#: Deepest nesting that is read, and the largest file, bytes.
DEPTH, SIZE = 200, 64 * 1024 * 1024

_REQUIRED: Any = object()


@dataclass(frozen=True)
class Note:
    """Something that was not understood, or was read differently: what, where first, what was done instead."""

    what: str
    where: str
    instead: str
    count: int = 1

    def line(self) -> str:
        """``<light> (line 3 and 4 more): not read``."""
        more = f" and {self.count - 1} more" if self.count > 1 else ""
        return f"{self.what} ({self.where}{more}): {self.instead}"


def gather(notes: Sequence[Note]) -> tuple[Note, ...]:
    """Notes that say the same joined into one, in the order of their first."""
    found: dict[tuple[str, str], Note] = {}
    for note in notes:
        first = found.get((note.what, note.instead))
        found[note.what, note.instead] = note if first is None else replace(first, count=first.count + note.count)
    return tuple(found.values())


@dataclass(eq=False)
class Element:
    """One element. ``fallback`` are elements that supply attributes it lacks (the defaults of MJCF, nearest first);
    ``read`` holds the attributes somebody asked for, ``known`` whether somebody looked at the element."""

    tag: str
    file: Path
    line: int
    attributes: dict[str, str]
    children: "list[Element]" = field(default_factory=list)
    text: str = ""
    fallback: "tuple[Element, ...]" = ()
    read: set[str] = field(default_factory=set)
    known: bool = False

    @property
    def place(self) -> str:
        """``robot.urdf line 12``."""
        return f"{self.file.name} line {self.line}"

    @property
    def title(self) -> str:
        """``<joint name="knee">``."""
        name = self.attributes.get("name")
        return f'<{self.tag} name="{name}">' if name is not None else f"<{self.tag}>"

    def wrong(self, message: str, attribute: str = "") -> SceneError:
        """The error that says what is wrong with this element (or one attribute of it), to be raised."""
        value = next((e.attributes[attribute] for e in self._chain() if attribute in e.attributes), None)
        where = f"line {self.line}, {self.title}" + (f" {attribute}" if attribute else "")
        return SceneError([Problem(where, message, value, value is not None)], str(self.file))

    def note(self, what: str, instead: str) -> Note:
        """A note about this element."""
        return Note(what, self.place, instead)

    def _chain(self) -> "tuple[Element, ...]":
        return (self, *self.fallback)

    def all(self, *tags: str) -> "list[Element]":
        """Children with one of ``tags``, which are known from now on."""
        found = [child for child in self.children if child.tag in tags]
        for child in found:
            child.known = True
        return found

    def one(self, tag: str) -> "Element | None":
        """The child ``tag``, or ``None``; an error if there are two."""
        found = self.all(tag)
        if len(found) > 1:
            raise found[1].wrong(f"<{tag}> is given twice; leave one")
        return found[0] if found else None

    def has(self, *names: str) -> bool:
        """Whether any of these attributes is given, here or as a default."""
        return any(name in element.attributes for element in self._chain() for name in names)

    def skip(self, *names: str) -> None:
        """Take attributes as read: they have no meaning here."""
        for element in self._chain():
            element.known = True
            element.read.update(names)

    def string(self, name: str, default: Any = _REQUIRED) -> Any:
        """An attribute as text, or ``default``; an error if it is missing and there is none."""
        self.skip(name)
        for element in self._chain():
            if name in element.attributes:
                return element.attributes[name]
        if default is _REQUIRED:
            raise self.wrong(f'the attribute "{name}" is missing')
        return default

    def numbers(self, name: str, count: int | tuple[int, ...] | None = None, default: Any = _REQUIRED) -> Any:
        """An attribute as finite numbers (n,), ``count`` of them (several allowed counts, or any)."""
        text = self.string(name, default)
        if not isinstance(text, str):
            return None if text is None else np.asarray(text, dtype=float)
        try:
            values = np.array([float(word) for word in text.split()])
        except ValueError:
            hint = "; this looks like xacro: expand it first" if "${" in text else ""
            raise self.wrong(f"must be numbers separated by blanks{hint}", name) from None
        counts = (count,) if isinstance(count, int) else count
        if counts is not None and len(values) not in counts:
            wanted = " or ".join(map(str, counts))
            raise self.wrong(f"must be {wanted} number{'' if wanted == '1' else 's'}, has {len(values)}", name)
        if not np.isfinite(values).all():
            raise self.wrong("must be finite", name)
        return values

    def number(self, name: str, default: Any = _REQUIRED) -> Any:
        """An attribute as one finite number."""
        values = self.numbers(name, 1, default)
        return None if values is None else float(np.asarray(values).reshape(-1)[0])

    def choice(self, name: str, allowed: Sequence[str], default: Any = _REQUIRED) -> Any:
        """An attribute as one of some words."""
        value = self.string(name, default)
        if isinstance(value, str) and value not in allowed:
            raise self.wrong(unknown("value", value, allowed), name)
        return value

    def flag(self, name: str, default: bool) -> bool:
        """An attribute that is true or false."""
        return self.choice(name, ("true", "false"), "true" if default else "false") == "true"


def read(path: Path) -> Element:
    """The root element of an XML file.

    Raises ``SceneError`` naming the file and the line for what is missing, not XML, too large, nested too deeply, or
    declares a document type.
    """

    def refuse(where: str, message: str) -> SceneError:
        return SceneError([Problem(where, message)], str(path))

    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= SIZE and path.is_file() else b""
    except OSError as error:
        raise refuse("file", f"cannot be read: {error.strerror or error}") from None
    if path.is_dir():
        raise refuse("file", "is a folder; name the robot's URDF or MJCF file")
    if size > SIZE:
        raise refuse("file", f"has {size / 1e6:.0f} MB; a robot file has at most {SIZE // 1_000_000} MB")
    # some editors leave blank lines before the declaration or a zero byte behind the end; nothing is lost with them
    start_of_text = content.lstrip()
    skipped = content[: len(content) - len(start_of_text)].count(b"\n")
    content = start_of_text.rstrip(b"\0 \t\r\n")
    parser = expat.ParserCreate()
    parser.buffer_text = True
    stack: list[Element] = []
    roots: list[Element] = []

    def line() -> int:
        return skipped + parser.CurrentLineNumber

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(stack) >= DEPTH:
            raise refuse(f"line {line()}", f"elements are nested deeper than {DEPTH}")
        element = Element(tag, path, line(), attributes)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def text(data: str) -> None:
        if stack:
            stack[-1].text += data

    def doctype(*_: Any) -> None:
        raise refuse(f"line {line()}", "document types and entities are refused; take <!DOCTYPE …> out")

    parser.StartElementHandler, parser.CharacterDataHandler = start, text
    parser.EndElementHandler = lambda tag: stack.pop()
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        raise refuse(f"line {skipped + error.lineno}", f"is not XML: {what} (column {error.offset + 1})") from None
    except (ValueError, LookupError) as error:
        if isinstance(error, SceneError):
            raise
        raise refuse("file", f"is not XML: {error}") from None
    roots[0].known = True
    return roots[0]


def leftovers(root: Element, reasons: Mapping[str, str]) -> list[Note]:
    """A note for every element nobody looked at and every attribute nobody read, below ``root``.

    ``reasons`` says what was done instead, by ``"tag"``, ``"tag@attribute"`` or ``"@attribute"``, and for all that
    is in an element by ``"tag/"``; an empty text: not worth a line. What is within an element that nobody looked at is
    not listed.
    """
    notes: list[Note] = []
    waiting = [root]
    while waiting:
        element = waiting.pop()
        for name in element.attributes:
            if name not in element.read and not name.startswith("xmlns"):
                reason = reasons.get(f"{element.tag}@{name}", reasons.get(f"@{name}", "not read"))
                if reason:
                    notes.append(element.note(f'attribute "{name}" of <{element.tag}>', reason))
        for child in element.children:
            if not child.known:
                reason = reasons.get(f"{element.tag}/", reasons.get(child.tag, "not read"))
                if reason:
                    notes.append(child.note(f"<{child.tag}> in <{element.tag}>", reason))
        waiting += [child for child in reversed(element.children) if child.known]
    return notes
