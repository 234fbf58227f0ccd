"""What a shape is, the registry of shapes, and the reading of shape tables."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.core.errors import Problem, SceneError, unknown
from taichi_sim.core.registry import Parameter, Registry


@dataclass(frozen=True)
class Surface:
    """The boundary of a shape, for drawing, m.

    In 3-D ``vertices`` (v, 3) and triangles ``faces`` (f, 3), outward; ``loops`` is empty. In 2-D ``loops`` are
    closed polygons (m, 2), counterclockwise around matter and clockwise around holes, and ``vertices``, ``faces``
    (f, 2) are the same as segments.
    """

    vertices: np.ndarray
    faces: np.ndarray
    loops: tuple[np.ndarray, ...] = ()

    @classmethod
    def of_loops(cls, loops: "list[np.ndarray] | tuple[np.ndarray, ...]") -> "Surface":
        """The 2-D surface made of closed polygons (m, 2)."""
        segments, first = [], 0
        for loop in loops:
            index = first + np.arange(len(loop))
            segments.append(np.column_stack([index, np.roll(index, -1)]))
            first += len(loop)
        if not segments:
            return cls(np.zeros((0, 2)), np.zeros((0, 2), dtype=np.int64))
        return cls(np.concatenate(loops), np.concatenate(segments), tuple(loops))


class Shape(ABC):
    """A region of the plane (``dim`` 2, areas per metre of depth) or of space (``dim`` 3). Lengths in m."""

    dim: int
    #: Kind of the shape, as in the scene file.
    kind: str
    #: Whether bounds and volume are finite (a plane's are not).
    bounded: bool = True
    #: How particles are placed in it unless the body says.
    seeding: str = "jittered"
    #: Whether distances take long (a mesh): fewer of them are asked for.
    costly: bool = False
    #: What was changed or should be known about it.
    notes: tuple[str, ...] = ()

    @abstractmethod
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner (dim,) of a box around the shape."""

    @abstractmethod
    def moments(self) -> tuple[float, np.ndarray]:
        """Volume (m³; in 2-D m², times a metre) and centre of volume (dim,)."""

    @abstractmethod
    def spread(self) -> np.ndarray:
        """Second moment of volume about the centre, ∫(x − c)(x − c)ᵀ dV (dim, dim), m⁵ (2-D: m⁴, times a metre).

        Density times tr(S) I − S is the inertia of the body (2-D: density times tr S).
        """

    @abstractmethod
    def signed_distance(self, points: np.ndarray) -> np.ndarray:
        """Distance (n,) from ``points`` (n, dim) to the boundary, negative inside; exact, or never too large."""

    @abstractmethod
    def surface(self, lower: np.ndarray | None = None, upper: np.ndarray | None = None) -> Surface:
        """The boundary for drawing; ``lower`` and ``upper`` say how far to draw what has no end."""

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Which of ``points`` (n, dim) are inside or on the boundary, bool (n,)."""
        return self.signed_distance(points) <= 0

    @property
    def volume(self) -> float:
        """Volume, m³ (2-D: m², times a metre)."""
        return self.moments()[0]

    @property
    def centre(self) -> np.ndarray:
        """Centre of volume (dim,)."""
        return self.moments()[1]


@dataclass(frozen=True)
class ShapeKind:
    """A kind of shape: its parameters, the dimensions it exists in, and how it is built.

    A parameter whose default is ``()`` may be left out and is then missing from ``values``. ``verify(values, dim)``
    returns ``(parameter, message)`` for what is wrong between parameters; ``build(values, dim, context)`` returns the
    shape and may raise ``ValueError``. ``cuts`` names the nested shapes that need no volume of their own.
    """

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    build: "Callable[[dict[str, Any], int, Context], Shape]"
    dims: tuple[int, ...] = (2, 3)
    verify: Callable[[dict[str, Any], int], list[tuple[str, str]]] | None = None
    cuts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Context:
    """Where a shape table stands: its path in the scene (for messages), the folder relative files start from, and
    whether files are read (else a shape from a file is an empty one: only its table is checked)."""

    path: str = "shape"
    folder: Path | None = None
    reading: bool = True

    def at(self, entry: str) -> "Context":
        """The context of a table nested in this one."""
        return replace(self, path=f"{self.path}.{entry}")

    def file(self, name: str) -> Path:
        """Full path of a file named in the table."""
        path = Path(name).expanduser()
        return path if path.is_absolute() or self.folder is None else self.folder / path


shapes: Registry[ShapeKind] = Registry("shape", "taichi_sim.scene.shapes")


def numbers(value: Any, shape: tuple[Any, ...]) -> tuple[np.ndarray | None, str]:
    """``value`` as a float array of ``shape`` (``"any"`` for a free length), or ``None`` and what is allowed."""
    wanted = "a number" if not shape else f"numbers of shape ({', '.join(map(str, shape))})"
    if len(shape) == 1 and shape[0] != "any":
        wanted = f"{shape[0]} numbers"
    if isinstance(value, (str, bytes, bool, Mapping)) or value is None:
        return None, f"must be {wanted}"
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        return None, f"must be {wanted}"
    if array.dtype.kind not in "iuf":
        return None, f"must be {wanted}"
    fits = array.ndim == len(shape) and all(s == "any" or n == s for n, s in zip(array.shape, shape, strict=True))
    if not fits:
        return None, f"must be {wanted}, has shape {array.shape}"
    array = array.astype(float)
    return (array, "") if np.isfinite(array).all() else (None, "must be finite")


def _size(pattern: tuple[Any, ...], dim: int) -> tuple[Any, ...]:
    if "rotation" in pattern:
        return () if dim == 2 else (3,)
    return tuple(dim if size == "dim" else size for size in pattern)


def _read(parameter: Parameter, value: Any, dim: int, context: Context, problems: list[Problem]) -> Any:
    """The value of one parameter in its final form; mistakes are appended to ``problems``."""
    where = f"{context.path}.{parameter.name}"

    def wrong(message: str) -> None:
        problems.append(Problem(where, message, value, True))

    if parameter.kind == "shape":
        if not parameter.shape:
            return _build(value, dim, context.at(parameter.name), problems)
        if not isinstance(value, (list, tuple)) or not value:
            return wrong("must be a list of at least one shape table")
        return [_build(v, dim, context.at(f"{parameter.name}[{i}]"), problems) for i, v in enumerate(value)]
    if parameter.kind == "flag":
        return value if isinstance(value, bool) else wrong("must be true or false")
    if parameter.kind == "file":
        if not isinstance(value, (str, Path)) or not str(value):
            return wrong("must be the name of a file")
        path = context.file(str(value))
        return path if path.is_file() else wrong(f"no such file ({path})")
    array, allowed = numbers(value, _size(parameter.shape, dim))
    if array is None:
        return wrong(allowed)
    for number in array.reshape(-1):
        message = parameter.check(float(number))
        if message:
            return wrong(message)
    return array if array.ndim else float(array)


def _values(table: Any, dim: int, context: Context, problems: list[Problem]) -> tuple[ShapeKind, dict[str, Any]] | None:
    """The kind named by a table and its checked parameters (nested shapes built), or ``None`` after a mistake."""
    before = len(problems)
    if not isinstance(table, Mapping):
        problems.append(Problem(context.path, 'must be a table such as {kind = "box", …}', table, True))
        return None
    name = table.get("kind")
    if not isinstance(name, str):
        message = f"must be one of {', '.join(shapes.names())}"
        problems.append(Problem(f"{context.path}.kind", message, name, "kind" in table))
        return None
    if name not in shapes.names():
        problems.append(Problem(f"{context.path}.kind", unknown("shape", name, shapes.names())))
        return None
    kind = shapes.get(name)
    if dim not in kind.dims:
        others = [k.name for k in shapes if dim in k.dims]
        message = f"a {name} exists in {kind.dims[0]}-D only; in {dim}-D: {', '.join(others)}"
        problems.append(Problem(f"{context.path}.kind", message, name, True))
        return None
    known = {p.name: p for p in kind.parameters}
    for entry in table:
        if entry != "kind" and entry not in known:
            problems.append(Problem(f"{context.path}.{entry}", unknown(f"entry of a {name}", str(entry), known)))
    values: dict[str, Any] = {}
    for key, parameter in known.items():
        optional = isinstance(parameter.default, tuple) and len(parameter.default) == 0
        if table.get(key) is not None and not (optional and np.size(table[key]) == 0):
            values[key] = _read(parameter, table[key], dim, context, problems)
        elif parameter.default is None:
            problems.append(Problem(f"{context.path}.{key}", f"is missing; a {name} needs it ({parameter.doc})"))
        elif not optional:
            default = parameter.default
            whole = _size(parameter.shape, dim)
            values[key] = np.full(whole, default, float) if parameter.kind == "real" and whole else default
    for key, parameter in known.items():
        if parameter.kind == "shape" and key not in kind.cuts and len(problems) == before:
            for inner in values[key] if parameter.shape else [values[key]]:
                if not inner.bounded:
                    problems.append(Problem(f"{context.path}.{key}", f"a {inner.kind} has no volume of its own"))
    if len(problems) == before and kind.verify is not None:
        for key, message in kind.verify(values, dim):
            where = f"{context.path}.{key}" if key else context.path
            problems.append(Problem(where, message, table.get(key), key in table))
    return (kind, values) if len(problems) == before else None


def _build(table: Any, dim: int, context: Context, problems: list[Problem]) -> Shape | None:
    if isinstance(table, Shape):
        if table.dim != dim:
            problems.append(Problem(context.path, f"is a {table.dim}-D shape in a {dim}-D scene"))
        return table
    read = _values(table, dim, context, problems)
    if read is None:
        return None
    kind, values = read
    try:
        return kind.build(values, dim, context)
    except SceneError as error:
        problems.extend(error.problems)
    except ValueError as error:
        problems.append(Problem(context.path, str(error)))
    return None


def check_shape(
    table: Any, dim: int, path: str = "shape", folder: Path | None = None, bounded: bool = False
) -> list[Problem]:
    """Every mistake of a shape table, without reading mesh files; empty if there is none.

    With ``bounded`` a shape without a volume (a plane) is a mistake: bodies need one.
    """
    problems: list[Problem] = []
    shape = _build(table, dim, Context(path, folder, reading=False), problems)
    if bounded and shape is not None and not shape.bounded:
        message = f"a {shape.kind} has no volume; it can be an obstacle, a region or cut a shape"
        problems.append(Problem(path, message))
    return problems


def resolve_shape(table: Any, dim: int, path: str = "shape", folder: Path | None = None) -> Shape:
    """The shape a table describes; a mesh file is read and checked here. A ``Shape`` is returned as it is.

    ``folder`` is where relative file names start. Raises ``SceneError`` listing every mistake under ``path``.
    """
    problems: list[Problem] = []
    shape = _build(table, dim, Context(path, folder), problems)
    if problems or shape is None:
        raise SceneError(problems)
    return shape


class Nothing(Shape):
    """A shape with nothing in it."""

    kind = "nothing"

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(self.dim), np.zeros(self.dim)

    def moments(self) -> tuple[float, np.ndarray]:
        return 0.0, np.zeros(self.dim)

    def spread(self) -> np.ndarray:
        return np.zeros((self.dim, self.dim))

    def signed_distance(self, points: np.ndarray) -> np.ndarray:
        return np.full(len(points), np.inf)

    def surface(self, lower: np.ndarray | None = None, upper: np.ndarray | None = None) -> Surface:
        return Surface.of_loops([]) if self.dim == 2 else Surface(np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64))
