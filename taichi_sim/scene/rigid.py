"""Rigid bodies of a scene as geometry: volume, centre, moments, and the simple pieces that touch."""

import fnmatch
from dataclasses import dataclass

import numpy as np

from taichi_sim.core.errors import Problem, SceneError
from taichi_sim.scene.inertia import mass_properties
from taichi_sim.scene.pieces import Piece, pieces
from taichi_sim.scene.schema import Rigid, Scene
from taichi_sim.scene.shapes.shape import Shape, Surface, resolve_shape


@dataclass(frozen=True)
class RigidGeometry:
    """A rigid body as its shape says, before the pose; lengths in m.

    ``pivot`` (dim,) is the centre of volume; ``moments`` (1,) or (6,) are those of a body of density 1 about it.
    """

    name: str
    table: Rigid
    shape: Shape
    volume: float
    pivot: np.ndarray
    moments: np.ndarray
    pieces: tuple[Piece, ...]

    def avoids(self, other: str) -> bool:
        """Whether it passes through what is called ``other``."""
        return any(fnmatch.fnmatchcase(other, pattern) for pattern in self.table.no_contact)

    def surface(self) -> Surface:
        """Outline before the pose, for drawing."""
        return self.shape.surface()


def build_rigid(scene: Scene) -> list[RigidGeometry]:
    """Geometry of every rigid body of a resolved scene, in the order declared.

    Raises ``SceneError`` listing every mistake: shapes that cannot be read or cannot touch.
    """
    problems: list[Problem] = []
    built = []
    for name, table in scene.rigid.items():
        path = f"rigid.{name}.shape"
        try:
            built.append(_build(name, table, resolve_shape(table.shape, scene.dim, path, scene.folder), path))
        except SceneError as error:
            problems += error.problems
    if problems:
        raise SceneError(problems, scene.source)
    return built


def _build(name: str, table: Rigid, shape: Shape, path: str) -> RigidGeometry:
    volume, pivot = shape.moments()
    return RigidGeometry(name, table, shape, volume, pivot, _moments(shape), tuple(pieces(shape, path)))


def _moments(shape: Shape) -> np.ndarray:
    """(1,) or (6,) moments of a shape of density 1 about its centre of volume."""
    inertia = mass_properties(shape, density=1.0).inertia
    if shape.dim == 2:
        return inertia.reshape(1)
    return np.array([inertia[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))])
