"""What of rigid bodies can touch what: points, planes and boxes of the solver, and the pairs it looks at.

Body axes are those of the shape before the pose, about its pivot, so that ``scale`` multiplies points, radii and
offsets alike.
"""

import fnmatch
import itertools
from collections.abc import Set
from dataclasses import dataclass, field

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.scene.rigid import RigidGeometry
from taichi_sim.scene.shapes.box import Box
from taichi_sim.solvers.rigid.arrays import BOX_BOX, POINT_BOX, POINT_PLANE, POINT_POINT
from taichi_sim.solvers.rigid.solver import RigidSolver


@dataclass(frozen=True)
class Wall:
    """A half-space of the world nothing rigid enters: ``normal · x < offset`` is solid.

    ``friction`` is the path of its coefficient; ``None`` where it is ``slippery`` or as rough as what touches it.
    """

    name: str
    normal: np.ndarray
    offset: float
    friction: str | None
    slippery: bool = False


@dataclass
class Pair:
    """Two surfaces that may touch: bodies ``a`` and ``b``, or body ``a`` and wall ``wall``."""

    a: int
    b: int = -1
    wall: int = -1


@dataclass
class Touchables:
    """Points, planes and boxes of all bodies and walls, unscaled; which pairs may touch, and how many contacts."""

    points: list[tuple[int, np.ndarray, float]] = field(default_factory=list)
    planes: list[tuple[int, np.ndarray, float]] = field(default_factory=list)
    boxes: list[tuple[int, int]] = field(default_factory=list)
    candidates: list[tuple[int, int, int, int]] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    capacity: int = 0


def touchables(bodies: list[RigidGeometry], walls: list[Wall], joined: Set[frozenset[int]] = frozenset()) -> Touchables:
    """Everything that may touch in a scene. Pairs ``joined`` by a joint do not, nor those named in ``no_contact``,
    where ``*`` stands for anything."""
    found = Touchables()
    dim = len(bodies[0].pivot)
    spheres: list[list[int]] = []
    boxes: list[list[int]] = []
    for b, body in enumerate(bodies):
        first = len(found.points)
        own = []
        for piece in body.pieces:
            if isinstance(piece, Box):
                own.append(len(found.boxes))
                _add_box(found, b, piece, body.pivot)
        balls = []
        for piece in body.pieces:
            if not isinstance(piece, Box):
                balls.append(len(found.points))
                found.points.append((b, piece.center - body.pivot, piece.radius))
        spheres.append(balls)
        boxes.append(own)
        ends = range(first, len(found.points))
        for w in range(len(walls)):
            found.pairs.append(Pair(b, wall=w))
            found.candidates += [(POINT_PLANE, i, -1 - w, len(found.pairs) - 1) for i in ends]
    for a, b in itertools.combinations(range(len(bodies)), 2):
        apart = _avoids(bodies[a], bodies[b].name) or _avoids(bodies[b], bodies[a].name)
        if apart or frozenset((a, b)) in joined:
            continue
        found.pairs.append(Pair(a, b))
        s = len(found.pairs) - 1
        found.candidates += [(POINT_POINT, i, j, s) for i in spheres[a] for j in spheres[b]]
        found.candidates += [(BOX_BOX, i, j, s) for i in boxes[a] for j in boxes[b]]
        found.candidates += [(POINT_BOX, i, j, s) for i in spheres[a] for j in boxes[b]]
        found.candidates += [(POINT_BOX, j, i, s) for i in boxes[a] for j in spheres[b]]
    first = len(found.planes)
    found.planes += [(-1, wall.normal, wall.offset) for wall in walls]
    found.candidates = [(kind, i, first - 1 - j if kind == POINT_PLANE else j, s) for kind, i, j, s in found.candidates]
    room = {POINT_PLANE: 1, POINT_POINT: 1, POINT_BOX: 1, BOX_BOX: 2**dim}
    found.capacity = min(sum(room[kind] for kind, *_ in found.candidates), 64 * len(bodies))
    return found


def _avoids(body: RigidGeometry, other: str) -> bool:
    return any(fnmatch.fnmatchcase(other, pattern) for pattern in body.table.no_contact)


def _add_box(found: Touchables, body: int, box: Box, pivot: np.ndarray) -> None:
    """``2^dim`` points and ``2 dim`` planes, in the order the solver wants them."""
    dim = box.dim
    found.boxes.append((len(found.points), len(found.planes)))
    lower, upper = box.lower - pivot, box.upper - pivot
    for corner in np.ndindex(*(2,) * dim):
        found.points.append((body, np.where(corner, upper, lower), 0.0))
    for axis in range(dim):
        for end, sign in ((lower, -1.0), (upper, 1.0)):
            normal = np.zeros(dim)
            normal[axis] = sign
            found.planes.append((body, normal, float(sign * end[axis])))


class Shapes(Binding):
    """Fills points, planes and centres of mass, all of them times their body's ``scale``."""

    def __init__(self, bodies: list[RigidGeometry], found: Touchables, envs: int) -> None:
        self.bodies, self.found, self.envs = bodies, found, envs

    def _scales(self, values: Values, owners: list[int]) -> np.ndarray:
        """(envs, n) scale of whatever ``owners`` (bodies, -1: the world) have."""
        one = np.ones(self.envs)
        scales = [values[f"rigid.{self.bodies[b].name}.scale"] if b >= 0 else one for b in owners]
        return np.stack(scales, axis=1) if scales else np.zeros((self.envs, 0))

    def apply(self, values: Values, solver: RigidSolver) -> None:
        store, dim = solver.store, solver.plan.dim
        points, planes = self.found.points, self.found.planes
        if points:
            scale = self._scales(values, [b for b, *_ in points])
            places = np.array([place for _, place, _ in points])
            store.write("point", (scale[:, :, None] * places).reshape(-1, dim))
            store.write("radius", (scale * [radius for *_, radius in points]).reshape(-1))
        if planes:
            scale = self._scales(values, [b for b, *_ in planes])
            store.write("plane_normal", np.tile([normal for _, normal, _ in planes], (self.envs, 1)))
            store.write("plane_offset", (scale * [offset for *_, offset in planes]).reshape(-1))
        store.write("centre", self.centres(values).reshape(-1, dim))

    def centres(self, values: Values) -> np.ndarray:
        """(envs, bodies, dim) centre of mass from the pivot, in the axes of the shape, m."""
        out = []
        for body in self.bodies:
            scale, path = values[f"rigid.{body.name}.scale"], f"rigid.{body.name}.center"
            offset = values[path] - body.pivot if path in values else np.zeros((self.envs, len(body.pivot)))
            out.append(scale[:, None] * offset)
        return np.stack(out, axis=1)

    def centres_vjp(self, values: Values, bar: np.ndarray, out: Values) -> None:
        """Add to ``out`` from the gradient by :meth:`centres`."""
        for b, body in enumerate(self.bodies):
            path = f"rigid.{body.name}.center"
            if path in values:
                scale = f"rigid.{body.name}.scale"
                out[path] = out.get(path, 0.0) + values[scale][:, None] * bar[:, b]
                out[scale] = out.get(scale, 0.0) + np.einsum("ed,ed->e", values[path] - body.pivot, bar[:, b])

    def pullback(self, values: Values, solver: RigidSolver) -> Values:
        store, dim, envs = solver.store, solver.plan.dim, self.envs
        out: Values = {f"rigid.{body.name}.scale": np.zeros(envs) for body in self.bodies}
        if self.found.points:
            place_bar = store.reduced_adjoint("point").reshape(envs, -1, dim)
            radius_bar = store.reduced_adjoint("radius").reshape(envs, -1)
            for i, (b, place, radius) in enumerate(self.found.points):
                out[f"rigid.{self.bodies[b].name}.scale"] += place_bar[:, i] @ place + radius * radius_bar[:, i]
        if self.found.planes:
            offset_bar = store.reduced_adjoint("plane_offset").reshape(envs, -1)
            for i, (b, _, offset) in enumerate(self.found.planes):
                if b >= 0:
                    out[f"rigid.{self.bodies[b].name}.scale"] += offset * offset_bar[:, i]
        self.centres_vjp(values, store.reduced_adjoint("centre").reshape(envs, -1, dim), out)
        return out
