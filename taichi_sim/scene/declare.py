"""How the fixed tables of the scene format declare their entries.

Every field of a scene struct is ``Annotated`` with an :class:`Entry`; unit, range, shape and meaning are written there
once, and reading, checking, paths, defaults and ``taichi-sim list`` are derived from it. Kinds (laws, actuators, …)
declare theirs as :class:`~taichi_sim.core.registry.Parameter` in their own files.
"""

import functools
import typing
from dataclasses import dataclass, replace
from typing import Any

from taichi_sim.core.registry import Parameter

#: Sizes that are one number in 2-D, and how many they are in 3-D.
PLANAR = {"rotation": 3, "inertia": 6}


@dataclass(frozen=True)
class Entry:
    """What one field of a table may hold.

    ``also`` lists further array shapes besides ``parameter.shape`` (per-particle data, say); ``profile`` allows a
    :class:`~taichi_sim.scene.schema.Profile`.
    """

    parameter: Parameter
    also: tuple[tuple[Any, ...], ...] = ()
    profile: bool = False


def real(unit: str, doc: str, *shape: Any, **options: Any) -> Entry:
    """A number or array with a unit; ``options`` are those of ``Parameter`` and ``Entry``."""
    extra = {key: options.pop(key) for key in ("also", "profile") if key in options}
    return Entry(Parameter("", unit, None, doc, shape=shape, **options), **extra)


def other(kind: str, doc: str, **options: Any) -> Entry:
    """An entry without a gradient: ``int``, ``text``, ``flag``, ``choice``, ``shape``, ``file`` or ``path``."""
    extra = {key: options.pop(key) for key in ("also", "profile") if key in options}
    options.setdefault("differentiable", False)
    return Entry(Parameter("", options.pop("unit", ""), None, doc, kind=kind, **options), **extra)


@functools.cache
def entries(table: type) -> dict[str, Entry]:
    """Declared entries of a struct class by field name, in order, with names filled in."""
    found = {}
    for name, hint in typing.get_type_hints(table, include_extras=True).items():
        for note in getattr(hint, "__metadata__", ()):
            if isinstance(note, Entry):
                found[name] = replace(note, parameter=replace(note.parameter, name=name))
    return found


def shape_of(pattern: tuple[Any, ...], dim: int) -> tuple[Any, ...]:
    """A declared shape with the sizes known from ``dim`` filled in; ``"any"`` stays.

    ``"dim"`` is the number of axes; ``"rotation"`` is an angle in 2-D (no axis) and a rotation vector (3,) in 3-D;
    ``"inertia"`` is a number in 2-D and (6,) in 3-D.
    """
    shape: list[Any] = []
    for size in pattern:
        if size in PLANAR:
            shape += [] if dim == 2 else [PLANAR[size]]
        else:
            shape.append(dim if size == "dim" else size)
    return tuple(shape)
