"""Everything a scene can name, with parameters, units, defaults and ranges: the data behind ``taichi-sim list``."""

import math
from typing import Any

import msgspec

from taichi_sim.core.registry import Parameter
from taichi_sim.scene import presets, robots, schema
from taichi_sim.scene.declare import entries
from taichi_sim.scene.kinds import kinds

_KINDS = {
    "laws": "law",
    "shapes": "shape",
    "networks": "network",
    "actuators": "actuator",
    "signals": "signal",
    "objectives": "objective",
    "fields": "field",
}
_TABLES = {
    "scene": schema.Scene,
    "domain": schema.Domain,
    "domain.walls.NAME": schema.Wall,
    "solver": schema.SolverSettings,
    "materials.NAME": schema.Material,
    "bodies.NAME": schema.Body,
    "bodies.NAME.regions.NAME": schema.Region,
    "rigid.NAME": schema.Rigid,
    "rigid.NAME.markers.NAME": schema.Marker,
    "robots.NAME": robots.Robot,
    "joints.NAME": schema.Joint,
    "attachments.NAME": schema.Attachment,
    "springs.NAME": schema.Springs,
    "grains.NAME": schema.Grains,
    "obstacles.NAME": schema.Obstacle,
    "fields.NAME": schema.Field,
    "actuators.NAME": schema.Actuator,
    "sensors.NAME": schema.Sensor,
    "objectives.NAME": schema.Objective,
    "[[design]]": schema.Design,
    "camera": schema.Camera,
}


def describe() -> dict[str, list[dict[str, Any]]]:
    """Rows of ``name, doc, parameters`` for ``laws, materials, shapes, networks, actuators, signals, objectives,
    fields`` and the fixed ``tables``; a parameter has ``name, unit, default, range, shape, kind, doc``. Only plain
    values.
    """
    found = {
        title: [{"name": k.name, "doc": k.doc, "parameters": [_row(p) for p in k.parameters]} for k in kinds(what)]
        for title, what in _KINDS.items()
    }
    found["materials"] = [_preset(presets.load(name)) for name in presets.names()]
    found["tables"] = [
        {"name": name, "doc": (table.__doc__ or "").split("\n")[0], "parameters": _entries(table)}
        for name, table in _TABLES.items()
    ]
    return found


def _entries(table: type[schema.Table]) -> list[dict[str, Any]]:
    defaults = {f.name: _default(f) for f in msgspec.structs.fields(table)}
    required = {f.name for f in msgspec.structs.fields(table) if f.required}
    return [
        {**_row(entry.parameter), "default": defaults[name], "required": name in required}
        for name, entry in entries(table).items()
    ]


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.required:
        return None
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _row(p: Parameter) -> dict[str, Any]:
    default = [_finite(x) for x in p.default] if isinstance(p.default, tuple) else _finite(p.default)
    allowed = ", ".join(map(str, p.choices)) if p.choices else p.range_text() if p.kind in ("real", "int") else ""
    return {
        "name": p.name,
        "unit": p.unit,
        "default": default,
        "required": p.default is None,
        "range": allowed,
        "shape": list(p.shape),
        "kind": p.kind,
        "doc": p.doc,
    }


def _finite(value: Any) -> Any:
    """Infinity as text: JSON has no number for it."""
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _preset(preset: presets.Preset) -> dict[str, Any]:
    law = kinds("law").get(preset.law)
    units = {"density": "kg/m³", **{p.name: p.unit for p in law.parameters}}
    docs = {"density": "mass per volume at rest", **{p.name: p.doc for p in law.parameters}}
    rows = [
        {"name": n, "unit": units[n], "default": v, "doc": docs[n], "source": preset.sources[n]}
        for n, v in preset.values.items()
    ]
    return {"name": preset.name, "family": preset.family, "law": preset.law, "doc": preset.doc, "parameters": rows}
