"""What is drawn of a scene besides particles: surfaces, rigid bodies, springs, cloth."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from taichi_sim.viz.picture import Line, Mesh, Polygon, activated

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Skin:
    """The surface of a body, carried by its particles: ``weights`` (vertices, particles of all bodies)."""

    weights: "csr_matrix"
    faces: np.ndarray
    color: tuple[float, ...]

    def mesh(self, position: np.ndarray) -> Mesh:
        """The surface where the particles are at ``position`` (n, 3) m."""
        return Mesh(self.weights @ position, self.faces, self.color)


@dataclass(frozen=True)
class Solid:
    """A rigid body as it is drawn: its outline from the centre of mass, in body axes, and the point that is it.

    ``triangles`` (f, 3) index ``vertices`` (v, 3); in 2-D there are ``loops`` instead.
    """

    point: int
    vertices: np.ndarray
    triangles: np.ndarray
    loops: tuple[np.ndarray, ...]
    color: tuple[float, ...]

    def drawn(self, position: np.ndarray, rotation: np.ndarray) -> Iterator[Mesh | Polygon]:
        """Where the points are at ``position`` (n, dim) m and it is turned by ``rotation`` (dim, dim)."""
        place = position[self.point]
        if len(place) == 3:
            yield Mesh(place + self.vertices @ rotation.T, self.triangles, self.color)
        else:
            yield from (Polygon(place + loop @ rotation.T, self.color) for loop in self.loops)


@dataclass(frozen=True)
class Threads:
    """Springs as they are drawn: ``ends`` (m, 2), points of the scene, ``width`` m; ``driven`` (actuators, m) says
    which actuator changes the length of which."""

    ends: np.ndarray
    color: tuple[float, ...]
    width: float
    driven: np.ndarray

    def lines(self, position: np.ndarray, activation: np.ndarray | None) -> Iterator[Line]:
        """Where the points are at ``position`` (n, dim) m."""
        colors = np.broadcast_to(np.asarray(self.color, float), (len(self.ends), 3))
        if activation is not None and self.driven.any():
            colors = activated(colors, strongest(self.driven, activation))
        for (a, b), color in zip(self.ends, colors.tolist(), strict=True):
            yield Line(position[[a, b]], self.width, color)


@dataclass(frozen=True)
class Sheet:
    """A surface between points: ``faces`` (f, 3), points of the scene."""

    faces: np.ndarray
    color: tuple[float, ...]

    def mesh(self, position: np.ndarray) -> Mesh:
        """The surface where the points are at ``position`` (n, 3) m."""
        used, faces = np.unique(self.faces, return_inverse=True)
        return Mesh(position[used], np.asarray(faces).reshape(-1, 3), self.color)


def strongest(driven: np.ndarray, activation: np.ndarray) -> np.ndarray:
    """Of all that drive an item, ``driven`` (actuators, items), the largest activation; NaN where nothing does."""
    loads = np.where(driven, np.asarray(activation, float)[:, None], 0.0)
    strongest = np.argmax(np.abs(loads), axis=0)
    return np.where(driven.any(axis=0), np.take_along_axis(loads, strongest[None], 0)[0], np.nan)
