"""Pieces of rigid bodies as colliders of particles, and what they are like where a material meets them."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.rigid.collider import turn_of_x
from taichi_sim.compile.rigid.mesh_collider import coefficients
from taichi_sim.scene.distance import distance_grid
from taichi_sim.scene.pieces import Piece
from taichi_sim.scene.rigid import RigidGeometry
from taichi_sim.scene.shapes.box import Box
from taichi_sim.scene.shapes.mesh_file import MeshShape
from taichi_sim.scene.shapes.placed import Placed
from taichi_sim.scene.shapes.polygon import Polygon
from taichi_sim.scene.shapes.round import Capsule, Cylinder, Sphere
from taichi_sim.solvers.coupling.colliders import Colliders
from taichi_sim.solvers.coupling.stepper import Coupling
from taichi_sim.solvers.shapes.samples import BEYOND

#: Entries of a rigid body, and the arrays of the coupling they are for. A continuum has no such entries: at the pair
#: the rigid body's own count.
ENTRIES = {"friction": "skin_friction", "stiction_speed": "skin_stiction"}

#: Samples along the longest side of what has no formula, by dimension, and beyond its surface.
NODES, MARGIN = {2: 96, 3: 48}, 4


@dataclass(frozen=True)
class Contact:
    """How the rows of the material table meet a collider, each (colliders, rows): distance of touch, m (far inside
    where the two pass through each other), share of penetration taken back per second, and fastest separation, m/s."""

    offset: np.ndarray
    rate: np.ndarray
    cap: np.ndarray


def pieces_of(bodies: list[RigidGeometry], solid: list[int], reach: float) -> tuple[Colliders, list[int]]:
    """Colliders of all pieces of the bodies numbered ``solid``, and the body of each; at scale 1, from the pivot.
    ``reach``, m, is how far from a surface a particle is looked at.

    Raises ``ValueError`` for pieces that continua do not know.
    """
    found, owner = Colliders(len(bodies[0].pivot)), []
    for b in solid:
        for piece in bodies[b].pieces:
            _add(found, b, piece, bodies[b], reach)
            owner.append(b)
    return found, owner


def _add(found: Colliders, b: int, piece: Piece, body: RigidGeometry, reach: float) -> None:
    turn = np.eye(piece.dim)
    if isinstance(piece, Placed) and isinstance(piece.shape, Box):
        turn, inner = piece.turn, piece.shape
        found.box(b, list((inner.upper - inner.lower) / 2), piece.centre - body.pivot, turn)
    elif isinstance(piece, Box):
        found.box(b, list((piece.upper - piece.lower) / 2), piece.centre - body.pivot)
    elif isinstance(piece, Sphere):
        found.sphere(b, piece.radius, piece.center - body.pivot)
    elif isinstance(piece, Capsule | Cylinder):
        along = piece.end - piece.start
        length = float(np.linalg.norm(along))
        add = found.capsule if isinstance(piece, Capsule) else found.cylinder
        add(b, piece.radius, length / 2, (piece.start + piece.end) / 2 - body.pivot, turn_of_x(along / length))
    elif isinstance(piece, Polygon | MeshShape):
        lower, upper = piece.bounds()
        spacing = float((upper - lower).max()) / NODES[piece.dim]
        grid = distance_grid(piece, 2 * spacing, reach / np.min(body.table.scale) + MARGIN * spacing)
        found.sampled(b, coefficients(grid.values), grid.origin - body.pivot, grid.spacing)
    else:
        raise ValueError(
            f"rigid.{body.name}.shape: a {piece.kind} cannot touch continua; use boxes, spheres, capsules, cylinders, "
            "ellipsoids, polygons and meshes, or no_contact"
        )


class Skins(Binding):
    """Fills places and sizes of colliders, times their body's ``scale``, and their skins."""

    def __init__(self, names: list[str], colliders: Colliders, contact: Contact, envs: int) -> None:
        self.names, self.contact, self.envs = names, contact, envs
        self.place, size = colliders.places(), colliders.sizes()
        self.finite = size < BEYOND  # in 2-D a box is endless along z
        self.size, self.length = size, np.where(self.finite, size, 0.0)

    def _each(self, values: Values, entry: str) -> np.ndarray:
        """(envs, colliders) the entry of each collider's body."""
        return np.stack([values[f"rigid.{name}.{entry}"] for name in self.names], axis=1)

    def apply(self, values: Values, solver: Coupling) -> None:
        if not self.names:
            return
        store, scale = solver.store, self._each(values, "scale")[:, :, None]
        store.write("place", (scale * self.place).reshape(-1, self.place.shape[1]))
        store.write("size", np.where(self.finite, scale * self.length, self.size).reshape(-1, 4))
        shape = (self.envs, *self.contact.offset.shape)
        for entry, array in ENTRIES.items():
            store.write(array, np.broadcast_to(self._each(values, entry)[:, :, None], shape).reshape(-1))
        for name in ("offset", "rate", "cap"):
            store.write(f"skin_{name}", np.broadcast_to(getattr(self.contact, name), shape).reshape(-1))

    def pullback(self, values: Values, solver: Coupling) -> Values:
        store, out = solver.store, {}
        if not self.names:
            return out
        place_bar = store.reduced_adjoint("place").reshape(self.envs, *self.place.shape)
        size_bar = store.reduced_adjoint("size").reshape(self.envs, *self.length.shape)
        bars = {"scale": (place_bar * self.place).sum(axis=2) + (size_bar * self.length).sum(axis=2)}
        for entry, array in ENTRIES.items():
            bars[entry] = store.reduced_adjoint(array).reshape(self.envs, len(self.names), -1).sum(axis=2)
        for entry, bar in bars.items():
            for c, name in enumerate(self.names):
                path = f"rigid.{name}.{entry}"
                out[path] = out.get(path, 0.0) + bar[:, c]
        return out
