"""What the tables of a scene have in common: shapes, friction, regions, and names of one another."""

import fnmatch
from collections.abc import Mapping
from typing import Any

import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.scene.context import Context
from taichi_sim.scene.schema import Profile, Region, Scene
from taichi_sim.scene.shapes.shape import check_shape

#: Tables that hold matter, in the order of a scene's points; names are unique over all of them.
MATTER = ("bodies", "rigid", "springs", "grains")


def check_shape_table(context: Context, path: str, table: Any, bounded: bool) -> None:
    """What is wrong between the entries of a shape; mesh files are read when the scene is built, not here."""
    if context.dim is not None and table is not None and context.ok(path):
        context.problems += check_shape(table, context.dim, path, context.folder, bounded)


def check_friction(context: Context, path: str, contact: Any) -> None:
    """Only a contact that may separate has friction."""
    if contact.kind != "separate" and contact.friction != 0.0 and context.ok(path):
        context.add(f"{path}.friction", f"belongs to kind 'separate', not {contact.kind!r}", contact.friction)


def check_regions(context: Context, path: str, regions: Mapping[str, Region]) -> None:
    """Their shapes, which may be unbounded."""
    for name, region in regions.items():
        check_shape_table(context, f"{path}.regions.{name}.shape", region.shape, bounded=False)


def check_apart(context: Context, path: str, patterns: list[str], names: list[str]) -> None:
    """Every pattern of ``no_contact`` means something."""
    for i, other in enumerate(patterns or []):
        if isinstance(other, str) and not fnmatch.filter(names, other) and context.ok(f"{path}.no_contact"):
            context.add(f"{path}.no_contact[{i}]", unknown("body", other, names), other)


def check_reference(
    scene: Scene,
    context: Context,
    path: str,
    body: str | None,
    region: str | None,
    tables: tuple[str, ...] = MATTER,
) -> None:
    """``body``, which must be in one of the ``tables``, and a ``region`` (a pattern) or marker of it."""
    if body is None:
        if region is not None and context.ok(path):
            context.add(f"{path}.region", "needs a body", region)
        return
    table = next((table for table in MATTER if body in getattr(scene, table)), None)
    if table not in tables:
        known = [name for each in tables for name in getattr(scene, each)]
        if table is not None:
            context.add(f"{path}.body", f"is of [{table}]; this is for {' and '.join(f'[{t}]' for t in tables)}", body)
        elif known and context.ok(f"{path}.body", *(f"{each}.{body}" for each in MATTER)):
            context.add(f"{path}.body", unknown("body", body, known), body)
        return
    part = "marker" if table == "rigid" else "region"
    parts = getattr(getattr(scene, str(table))[body], f"{part}s")
    if region is not None and not fnmatch.filter(parts, region):
        if context.ok(f"{path}.region", f"{table}.{body}.{part}s"):
            what = {"bodies": "body", "rigid": "rigid body"}.get(str(table), str(table))
            context.add(f"{path}.region", unknown(f"{part} of {what} {body!r},", region, parts), region)


def numbers_of(value: Any) -> np.ndarray:
    """An entry as an array; of no axes where it is missing, or a profile."""
    return np.zeros(()) if value is None or isinstance(value, Profile) else np.asarray(value)
