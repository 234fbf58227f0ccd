"""Material presets: cited values shipped as ``materials/<family>/<name>.toml``."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taichi_sim.core.errors import Problem, SceneError, unknown
from taichi_sim.data import data_root
from taichi_sim.scene.declare import entries
from taichi_sim.scene.kinds import kinds
from taichi_sim.scene.schema import Body, Material, Override, Scene
from taichi_sim.scene.toml import parse


@dataclass(frozen=True)
class Preset:
    """A shipped material: SI values with the source of each; ``values`` and ``sources`` include the density."""

    name: str
    family: str
    law: str
    doc: str
    values: Mapping[str, float]
    sources: Mapping[str, str]


@dataclass(frozen=True)
class ResolvedMaterial:
    """A law and a value for each of its parameters (floats, or arrays (n,) per particle).

    ``overridden`` names the values a body replaced; ``shared`` is the name of the material the rest comes from.
    """

    law: str
    density: Any
    parameters: dict[str, Any]
    shared: str = ""
    overridden: frozenset[str] = frozenset()


@functools.cache
def files() -> dict[str, Path]:
    """Preset files by name."""
    return {file.stem: file for file in sorted((data_root() / "materials").glob("*/*.toml"))}


def names() -> list[str]:
    """Names of all presets, sorted."""
    return sorted(files())


@functools.cache
def load(name: str) -> Preset:
    """The preset called ``name``. Raises ``ValueError`` with the nearest name on a typo."""
    found = files()
    if name not in found:
        raise ValueError(unknown("preset", name, found))
    return read(found[name])


def read(file: Path) -> Preset:
    """The preset in ``file``; ``SceneError`` lists values without a source, unknown or missing ones."""
    table = parse(file.read_bytes(), str(file))
    law = kinds("law").get(str(table.get("law")))
    declared = {"density": entries(Material)["density"].parameter, **{p.name: p for p in law.parameters}}
    problems, values, sources = [], {}, {}
    for key, item in table.items():
        if key in ("law", "doc"):
            continue
        if key not in declared:
            problems.append(Problem(key, unknown(f"entry of {law.name}", key, ["law", "doc", *declared])))
        elif not isinstance(item, dict) or set(item) != {"value", "source"} or not str(item["source"]).strip():
            problems.append(Problem(key, 'must be {value = NUMBER, source = "where it is from"}', item, True))
        elif isinstance(item["value"], bool) or not isinstance(item["value"], int | float):
            problems.append(Problem(key, "its value must be a number", item["value"], True))
        elif message := declared[key].check(float(item["value"])):
            problems.append(Problem(key, message, item["value"], True))
        else:
            values[key], sources[key] = float(item["value"]), item["source"]
    for name in ["density", *(p.name for p in law.parameters if p.default is None)]:
        if name not in table:
            problems.append(Problem(name, "is missing"))
    if problems:
        raise SceneError(problems, str(file))
    return Preset(file.stem, file.parent.name, law.name, str(table.get("doc", "")), values, sources)


def resolve_material(scene: Scene, material: "str | Override | Material | Body") -> ResolvedMaterial:
    """Law, density and all parameters of a material by name, of a body's own version of it, or of a body.

    Raises ``ValueError`` for a name the scene does not have.
    """
    if isinstance(material, Body):
        return resolve_material(scene, material.material)
    if isinstance(material, Override):
        base = resolve_material(scene, material.base)
        own = dict(material.parameters)
        density = base.density if material.density is None else material.density
        changed = frozenset(own) | ({"density"} if material.density is not None else frozenset())
        return ResolvedMaterial(base.law, density, {**base.parameters, **own}, material.base, changed)
    if isinstance(material, str):
        if material not in scene.materials:
            raise ValueError(unknown("material", material, scene.materials))
        found = resolve_material(scene, scene.materials[material])
        return ResolvedMaterial(found.law, found.density, found.parameters, material)
    preset = load(material.preset) if material.preset else None
    law = kinds("law").get(str(preset.law if preset else material.law))
    values = {p.name: p.default for p in law.parameters if p.default is not None}
    values.update(preset.values if preset else {})
    density = values.pop("density", None) if material.density is None else material.density
    values.pop("density", None)
    return ResolvedMaterial(law.name, density, {**values, **material.parameters})
