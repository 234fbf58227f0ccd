"""Pieces of rigid bodies as colliders of particles, and what they are like where a material meets them."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.scene.rigid import RigidGeometry
from taichi_sim.scene.shapes.box import Box
from taichi_sim.solvers.coupling.colliders import Colliders
from taichi_sim.solvers.coupling.samples import BEYOND
from taichi_sim.solvers.coupling.stepper import Coupling

#: Entries of a rigid body, and the arrays of the coupling they are for. A continuum has no such entries: at the pair
#: the rigid body's own count.
ENTRIES = {"friction": "skin_friction", "stiction_speed": "skin_stiction"}


@dataclass(frozen=True)
class Contact:
    """How the rows of the material table meet a collider, each (colliders, rows): distance of touch, m (far inside
    where the two pass through each other), share of penetration taken back per second, and fastest separation, m/s."""

    offset: np.ndarray
    rate: np.ndarray
    cap: np.ndarray


def pieces_of(bodies: list[RigidGeometry], solid: list[int]) -> tuple[Colliders, list[int]]:
    """Colliders of all pieces of the bodies numbered ``solid``, and the body of each; at scale 1, from the pivot."""
    found, owner = Colliders(len(bodies[0].pivot)), []
    for b in solid:
        for piece in bodies[b].pieces:
            if isinstance(piece, Box):
                middle = (piece.lower + piece.upper) / 2 - bodies[b].pivot
                found.box(b, (piece.upper - piece.lower) / 2, middle)
            else:
                found.sphere(b, piece.radius, piece.center - bodies[b].pivot)
            owner.append(b)
    return found, owner


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
