"""Tables to scene structs, entry by entry, so that every mistake of a file is found in one pass.

A struct comes back even where entries were refused: those hold their default, or None where there is none, and the
problems are in the context.
"""

import re
import types
import typing
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from taichi_sim.core.errors import nearest, unknown
from taichi_sim.scene import presets
from taichi_sim.scene.context import BAD, Context, join
from taichi_sim.scene.declare import Entry, entries
from taichi_sim.scene.kinds import kinds
from taichi_sim.scene.schema import (
    AXES,
    FORMAT,
    Kinded,
    Material,
    Override,
    Profile,
    Scene,
    Table,
    Wall,
    wall_names,
)
from taichi_sim.scene.values import read_value

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def read_scene(raw: Mapping[str, Any], context: Context) -> Scene:
    """The scene of ``raw``; problems of single entries are added to ``context``."""
    given = dict(raw)
    version = given.pop("format", None)
    if version is None:
        context.add("format", f"is missing; this version reads format = {FORMAT}")
    elif type(version) is not int or version != FORMAT:
        context.add("format", f"is not known; this version reads format = {FORMAT}", version)
    if isinstance(given.get("dim"), int | float) and given["dim"] in (2, 3):
        context.dim = int(given["dim"])
    return read_table(Scene, given, "", context)


def read_table(table: type[Table], raw: Any, path: str, context: Context) -> Any:
    """A struct of class ``table`` from the mapping ``raw`` found at ``path``; None if it is not a mapping."""
    if table is Wall and isinstance(raw, str):
        raw = {"kind": raw}
    if not isinstance(raw, Mapping):
        context.add(path, f"must be a table of {table.__name__.lower()} entries", raw)
        return None
    declared, nested = entries(table), nested_tables(table)
    infos = {f.name: f for f in msgspec.structs.fields(table) if f.name not in ("parameters", "source")}
    kind, own = kind_of(table, raw, path, context) if issubclass(table, Kinded) else (None, None)
    names = [*infos, *(p.name for p in own or ())]
    meant = (
        _unknown_keys(raw, names, kind, path, context) if own is not None or not issubclass(table, Kinded) else set()
    )
    values: dict[str, Any] = {}
    for name, info in infos.items():
        here, value = join(path, name), raw.get(name)
        if value is None:
            if info.required or (name == "density" and table is Material and own and raw.get("preset") is None):
                doc = declared[name].parameter.doc if name in declared else f"a table [{name}]"
                if name not in meant and not (name == "kind" and issubclass(table, Kinded)):
                    context.add(here, f"is missing: {doc}")
                values[name] = None
            continue
        if name in nested:
            found = _nested(*nested[name], value, here, context)
        else:
            found = _entry(declared[name], value, here, context)
        if found is not BAD and found is not None:
            values[name] = found
        elif info.required:
            values[name] = None
    if own is not None:
        partial = table is Override or (table is Material and raw.get("preset") is not None)
        needed = set() if partial else {p.name for p in own if p.default is None} - meant
        values["parameters"] = read_parameters(own, raw, path, context, needed, per_particle=table is Override)
    return table(**values)


def _unknown_keys(
    raw: Mapping[str, Any], names: list[str], kind: str | None, path: str, context: Context
) -> set[str | None]:
    """Report keys that are not in ``names``; returns the names they were probably meant to be."""
    wrong = [str(key) for key in raw if key not in names]
    for key in wrong:
        context.add(join(path, key), unknown(f"entry of {kind}" if kind else "entry", key, names))
    return {nearest(key, names) for key in wrong}


def read_parameters(
    declared: tuple[Any, ...],
    raw: Mapping[str, Any],
    path: str,
    context: Context,
    needed: set[str],
    per_particle: bool = False,
) -> dict[str, Any]:
    """A kind's parameters out of the table ``raw``; those in ``needed`` must be there."""
    values = {}
    for parameter in declared:
        here, value = join(path, parameter.name), raw.get(parameter.name)
        if value is None:
            if parameter.name in needed:
                context.add(here, f"is missing: {parameter.doc}")
            continue
        entry = Entry(parameter, also=(("any",),) if per_particle and not parameter.shape else ())
        found = _entry(entry, value, here, context)
        if found is not BAD and found is not None:
            values[parameter.name] = found
    return values


def _entry(entry: Entry, value: Any, path: str, context: Context) -> Any:
    parameter = entry.parameter
    if parameter.kind == "shape":
        if parameter.shape:
            if not isinstance(value, list | tuple) or not value:
                return context.add(path, "must be a list of shapes", value)
            return [read_shape(item, f"{path}[{i}]", context) for i, item in enumerate(value)]
        return read_shape(value, path, context)
    if entry.profile and isinstance(value, Mapping) and "file" not in value:
        return read_table(Profile, value, path, context)
    if isinstance(value, Mapping) and parameter.name == "material":
        return read_table(Override, value, path, context)
    if parameter.name == "axis" and parameter.choices == tuple(AXES) and context.dim:
        entry = replace(entry, parameter=replace(parameter, choices=tuple(AXES[: context.dim])))
    if parameter.name in ("kind", "law", "preset") and not parameter.choices:
        return value if isinstance(value, str) else BAD  # reported by kind_of
    return read_value(entry, value, path, context)


def read_shape(raw: Any, path: str, context: Context) -> Any:
    """A checked geometry table, without defaults, or ``BAD``. What its parts make together is checked later."""
    if not isinstance(raw, Mapping):
        return context.add(path, 'must be a table such as {kind = "box", lower = [...], upper = [...]}', raw)
    kind = _lookup("shape", raw.get("kind"), f"{path}.kind", context)
    if kind is None:
        return BAD
    if context.dim is not None and context.dim not in kind.dims:
        others = ", ".join(k.name for k in kinds("shape") if context.dim in k.dims)
        message = f"exists in {kind.dims[0]}-D only; in {context.dim}-D: {others}"
        return context.add(f"{path}.kind", message, kind.name)
    before = len(context.problems)
    names = ["kind", *(p.name for p in kind.parameters)]
    needed = {p.name for p in kind.parameters if p.default is None}
    needed -= _unknown_keys(raw, names, kind.name, path, context)
    values = read_parameters(kind.parameters, raw, path, context, needed)
    return BAD if len(context.problems) > before else {"kind": kind.name, **values}


def _lookup(what: str, name: Any, path: str, context: Context) -> Any:
    registry = kinds(what)
    if name is None:
        return context.add(path, f"is missing; allowed: {', '.join(registry.names())}") or None
    if not isinstance(name, str):
        return context.add(path, f"must be the name of a {what}", name) or None
    try:
        return registry.get(name)
    except ValueError as error:
        return context.add(path, str(error)) or None


def kind_of(
    table: type[Kinded], raw: Mapping[str, Any], path: str, context: Context
) -> tuple[str | None, tuple[Any, ...] | None]:
    """Name and declared parameters of the kind of a table; (None, None) where it is not known."""
    if table is Material:
        return _law_of(raw, path, context)
    if table is Override:
        base = raw.get("base")
        materials = context.root.get("materials")
        parent = materials.get(base) if isinstance(materials, Mapping) and isinstance(base, str) else None
        if not isinstance(parent, Mapping):
            return None, None  # a wrong or missing base is reported with the references
        return _law_of(parent, path, Context(context.root, context.folder))
    kind = _lookup(table.registry, raw.get("kind"), f"{path}.kind", context)
    return (kind.name, kind.parameters) if kind is not None else (None, None)


def _law_of(raw: Mapping[str, Any], path: str, context: Context) -> tuple[str | None, tuple[Any, ...] | None]:
    preset, name, where = raw.get("preset"), raw.get("law"), join(path, "law")
    if preset is not None and name is not None:
        return context.add(path, "give either preset or law, not both") or None, None
    if preset is not None:
        where = join(path, "preset")
        if not isinstance(preset, str):
            return context.add(where, "must be the name of a preset", preset) or None, None
        try:
            name = presets.load(preset).law
        except ValueError as error:
            return context.add(where, str(error)) or None, None
    elif name is None:
        context.add(
            path,
            f"needs a law ({', '.join(kinds('law').names())}) or a preset ({', '.join(presets.names())})",
        )
        return None, None
    law = _lookup("law", name, where, context)
    return (law.name, law.parameters) if law is not None else (None, None)


def _nested(form: str, table: type[Table], value: Any, path: str, context: Context) -> Any:
    if form == "table":
        return read_table(table, value, path, context)
    if form == "list":
        if not isinstance(value, list | tuple):
            return context.add(path, f"must be a list of tables ([[{path}]])", value)
        return [read_table(table, item, f"{path}[{i}]", context) for i, item in enumerate(value)]
    if not isinstance(value, Mapping):
        return context.add(path, f"must hold one table a name ([{path}.NAME])", value)
    if table is Wall:
        return _walls(value, path, context)
    found = {}
    for name, item in value.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            context.add(join(path, str(name)), "names are letters, digits, _ and -, beginning with a letter or _")
            continue
        found[name] = read_table(table, item, join(path, name), context)
    return {name: item for name, item in found.items() if item is not None}


def _walls(value: Mapping[str, Any], path: str, context: Context) -> dict[str, Wall]:
    allowed = ["default", *wall_names(context.dim or 3)]
    found = {}
    for name, item in value.items():
        if name not in allowed:
            context.add(join(path, str(name)), unknown("wall", str(name), allowed))
        elif (wall := read_table(Wall, item, join(path, name), context)) is not None:
            found[name] = wall
    return found


def nested_tables(table: type[Table]) -> dict[str, tuple[str, type[Table]]]:
    """Fields of a struct that hold other structs: name → ("table" | "dict" | "list", class)."""
    found: dict[str, tuple[str, type[Table]]] = {}
    declared = entries(table)
    for name, hint in typing.get_type_hints(table).items():
        if name in declared:
            continue
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        form = {dict: "dict", list: "list"}.get(origin, "table") if origin else "table"
        inner = args[-1] if form != "table" else hint
        options = typing.get_args(inner) if isinstance(inner, types.UnionType) else (inner,)
        for option in options:
            if isinstance(option, type) and issubclass(option, Table):
                found[name] = (form, option)
                break
    return found
