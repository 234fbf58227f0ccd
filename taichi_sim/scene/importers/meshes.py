"""Meshes of robots as shapes that a scene can hold."""

import os
import re
from pathlib import Path

import numpy as np

from taichi_sim.scene.importers.robot import Geometry, Link, Pose
from taichi_sim.scene.importers.shapes import Table, numbers, posed
from taichi_sim.scene.importers.xml import Note
from taichi_sim.scene.mesh import load_mesh, read_mesh


def plain(name: str) -> str:
    """A name as scenes allow them."""
    word = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return word if re.match(r"[A-Za-z_]", word) else f"_{word}"


class Meshes:
    """Tables of the meshes of one robot, called ``name``, for a scene in ``folder``."""

    def __init__(self, robot: Path, name: str, folder: Path | None, notes: list[Note]) -> None:
        self.robot, self.name, self.folder, self.notes = robot, name, folder, notes

    def table(self, table: Table, geometry: Geometry, link: Link, pose: Pose) -> Table:
        """The mesh in ``table``, its file as the scene names it: closed, or filled, or (with a note) the box around it.

        ``pose`` is that of the link. Raises ``ValueError`` for a file that cannot be read.
        """
        own = geometry.vertices is not None
        file = self.save(link, geometry) if own else Path(table["file"])
        points, _, _ = read_mesh(file)
        shown = os.path.relpath(file, self.folder) if self.folder is not None else str(file)
        table = {**table, "file": Path(shown).as_posix()}
        try:
            load_mesh(file)
            return table
        except ValueError as error:
            reason = str(error).split(";")[0]
        try:
            load_mesh(file, repair=True)
        except ValueError:
            self.notes.append(Note(f"mesh {file.name} ({reason})", link.where, "the box around it stands for it"))
            return self.box(points, geometry, pose)
        self.notes.append(Note(f"mesh {file.name} ({reason})", link.where, "filled (repair = true)"))
        return {**table, "repair": True}

    def box(self, points: np.ndarray, geometry: Geometry, pose: Pose) -> Table:
        """The box around a mesh, sides along the axes of its file."""
        shape = geometry.shape
        corners = points * shape.get("scale", 1.0) * np.asarray(shape.get("stretch", 1.0))
        low, high = corners.min(axis=0), corners.max(axis=0)
        size = np.maximum(high - low, 1e-3 * (high - low).max())
        if not size.any():
            raise ValueError(f"{shape.get('file', 'mesh')}: all vertices are one point")
        inner = Pose.of(shape.get("position", np.zeros(3)), shape.get("rotation", np.zeros(3)))
        table = {"kind": "box", "center": numbers((low + high) / 2), "size": numbers(size)}
        return posed(table, pose @ geometry.pose @ inner)

    def save(self, link: Link, geometry: Geometry) -> Path:
        """Write a mesh that the robot's file holds itself beside the scene."""
        if self.folder is None:
            raise ValueError(f"{self.robot}: {link.where}: the file holds a mesh itself; say folder = … to save it")
        number = next((n for n, g in enumerate((*link.collision, *link.visual)) if g is geometry), 0)
        file = self.folder / f"{self.name}_{plain(link.name)}_{plain(geometry.name or str(number))}.obj"
        lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in np.asarray(geometry.vertices).tolist()]
        lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in np.asarray(geometry.faces).tolist()]
        self.folder.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file
