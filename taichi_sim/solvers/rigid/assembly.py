"""From bodies of simple shapes to the arrays of the solver."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taichi_sim.solvers.rigid import colliders
from taichi_sim.solvers.rigid.arrays import RigidPlan
from taichi_sim.solvers.rigid.closest import SECTORS
from taichi_sim.solvers.rigid.colliders import Collider
from taichi_sim.solvers.rigid.shapes import CYLINDER, HULL, MESH, POINTS_AGAINST, WALL
from taichi_sim.solvers.rigid.solver import RigidSolver

#: The body that nothing moves: shapes of the world.
WORLD = -1


@dataclass
class _Body:
    mass: float
    inertia: np.ndarray
    values: dict[str, np.ndarray]
    fixed: bool = False


def box_inertia(mass: float, half: Sequence[float]) -> np.ndarray:
    """Moments of a solid box about its centre, kg m²: (1,) about z in 2-D, (6,) xx yy zz xy xz yz in 3-D."""
    squares = np.square(half) * mass / 3.0
    if len(squares) == 2:
        return np.array([squares.sum()])
    return np.array([*(squares.sum() - squares), 0.0, 0.0, 0.0])


def sphere_inertia(mass: float, radius: float, dim: int) -> np.ndarray:
    """Moments of a solid sphere (3-D) or a solid disc (2-D), kg m²; shapes as :func:`box_inertia`."""
    if dim == 2:
        return np.array([0.5 * mass * radius**2])
    return np.array([0.4 * mass * radius**2] * 3 + [0.0] * 3)


def cylinder_inertia(mass: float, radius: float, half: float) -> np.ndarray:
    """Moments of a solid cylinder along x, kg m², (6,)."""
    across = mass * (radius**2 / 4 + half**2 / 3)
    return np.array([0.5 * mass * radius**2, across, across, 0.0, 0.0, 0.0])


def capsule_inertia(mass: float, radius: float, half: float, dim: int) -> np.ndarray:
    """Moments of a solid capsule along x, kg m²; shapes as :func:`box_inertia`.

    A middle part and two halves of a ball (disc), whose centres of mass lie 3r/8 (4r/3π) from where they are cut.
    """
    r, h = radius, half
    if dim == 2:
        parts = np.array([4 * r * h, np.pi * r**2])
        middle, ends = parts / parts.sum() * mass
        c = 4 * r / (3 * np.pi)
        return np.array([middle * (r**2 + h**2) / 3 + ends * (r**2 / 2 + h**2 + 2 * h * c)])
    parts = np.array([2 * h * r**2, 4 / 3 * r**3])
    middle, ends = parts / parts.sum() * mass
    along = 0.5 * middle * r**2 + 0.4 * ends * r**2
    across = middle * (r**2 / 4 + h**2 / 3) + ends * (0.4 * r**2 + h**2 + 0.75 * h * r)
    return np.array([along, across, across, 0.0, 0.0, 0.0])


def polygon_moments(corners: np.ndarray) -> tuple[float, np.ndarray, float]:
    """Area (m²), centre (2,) and second moment about the centre over the area (m²) of a polygon (n, 2)."""
    p = np.asarray(corners, float)
    q = np.roll(p, -1, axis=0)
    twice = p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]
    area = 0.5 * twice.sum()
    centre = (twice[:, None] * (p + q)).sum(axis=0) / (6 * area)
    second = (twice * ((p * p).sum(axis=1) + (p * q).sum(axis=1) + (q * q).sum(axis=1))).sum() / 12
    return float(area), centre, float(second / area - centre @ centre)


class Assembly:
    """Collects bodies and world planes, decides what may touch what, and fills a solver.

    Lengths in m, angles in rad, velocities of the centre of mass. Everything touches everything else, with one
    surface for all pairs, but for what :meth:`ignore` names; environments begin alike. Capsules and cylinders lie
    along x of their axes.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.bodies: list[_Body] = []
        self.shapes: list[tuple[int, Collider]] = []
        self._apart: set[frozenset[int]] = set()
        self.values = {
            "friction": 0.5, "stiffness": 1e5, "damping": 5.0, "stiction": 1e-4, "dt": 1e-3,
        }  # fmt: skip
        self.gravity = np.zeros(dim)

    def body(self, mass: float, inertia: Sequence[float] | np.ndarray, position: Sequence[float], **state) -> int:
        """A body without a shape. ``state``: ``rotation`` (angle, or quaternion w x y z), ``velocity``, ``spin``, and
        ``fixed``: held where it is, whatever acts.

        Raises ``ValueError`` for a mass or inertia that is not positive.
        """
        moments = np.asarray(inertia, float)
        if not mass > 0:
            raise ValueError(f"body {len(self.bodies)}: mass must be above 0 kg, got {mass}")
        matrix = moments if self.dim == 2 else _matrix(moments)
        if not np.all(np.isfinite(moments)) or np.min(np.linalg.eigvalsh(np.atleast_2d(matrix))) <= 0:
            raise ValueError(f"body {len(self.bodies)}: inertia must be positive definite, got {moments.tolist()}")
        turn = 1 if self.dim == 2 else 3
        values = {
            "position": np.asarray(position, float),
            "rotation": np.atleast_1d(state.get("rotation", 0.0 if self.dim == 2 else [1.0, 0.0, 0.0, 0.0])),
            "velocity": np.asarray(state.get("velocity", np.zeros(self.dim)), float),
            "spin": np.atleast_1d(state.get("spin", np.zeros(turn))),
        }
        self.bodies.append(_Body(float(mass), moments, values, bool(state.get("fixed", False))))
        return len(self.bodies) - 1

    def add(
        self, body: int, shape: Collider, place: Sequence[float] | np.ndarray | None = None,
        turn: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """A shape of a body, ``WORLD`` for one that nothing moves: turned by a matrix, then moved to ``place``, body
        (world) axes."""
        at = np.zeros(self.dim) if place is None else place
        self.shapes.append((body, shape.placed(at, turn)))

    def sphere(self, mass: float, radius: float, position: Sequence[float], **state) -> int:
        """A solid sphere, or disc in 2-D."""
        b = self.body(mass, sphere_inertia(mass, radius, self.dim), position, **state)
        self.add(b, colliders.ball(radius, self.dim))
        return b

    def box(self, mass: float, half: Sequence[float], position: Sequence[float], **state) -> int:
        """A solid box of half widths ``half``."""
        b = self.body(mass, box_inertia(mass, half), position, **state)
        self.add(b, colliders.box(half))
        return b

    def capsule(self, mass: float, radius: float, half: float, position: Sequence[float], **state) -> int:
        """A solid capsule; ``half`` its length without the round ends, by two."""
        b = self.body(mass, capsule_inertia(mass, radius, half, self.dim), position, **state)
        self.add(b, colliders.capsule(radius, half, self.dim))
        return b

    def cylinder(self, mass: float, radius: float, half: float, position: Sequence[float], **state) -> int:
        """A solid cylinder (3-D)."""
        b = self.body(mass, cylinder_inertia(mass, radius, half), position, **state)
        self.add(b, colliders.cylinder(radius, half))
        return b

    def polygon(self, mass: float, corners: np.ndarray, position: Sequence[float], **state) -> int:
        """A solid convex polygon (2-D), counterclockwise; its centre of mass comes to ``position``."""
        _area, centre, moment = polygon_moments(corners)
        b = self.body(mass, [mass * moment], position, **state)
        self.add(b, colliders.polygon(corners), -centre)
        return b

    def wall(self, normal: Sequence[float], offset: float) -> None:
        """A static half-space: ``normal · x < offset`` is solid."""
        self.add(WORLD, colliders.wall(normal, offset))

    def ignore(self, a: int, b: int) -> None:
        """Two bodies that pass through each other."""
        self._apart.add(frozenset((a, b)))

    def _pairing(self, shapes: list[tuple[int, Collider]]) -> tuple[tuple[int, ...], ...]:
        free = np.array([b != WORLD and not self.bodies[b].fixed for b, _ in shapes], bool)

        def surface(i: int, j: int) -> int:
            a, b = shapes[i][0], shapes[j][0]
            both = a != b and (free[i] or free[j]) and frozenset((a, b)) not in self._apart
            return 0 if both else -1

        return tuple(tuple(surface(i, j) for j in range(len(shapes))) for i in range(len(shapes)))

    def _laid_out(self) -> list[tuple[int, Collider]]:
        """Shapes in the order of the solver: half-spaces last; hulls with places on their edges if there are meshes."""
        lattices = [s.lattice for _, s in self.shapes if s.lattice is not None]
        shapes = sorted(self.shapes, key=lambda entry: entry[1].kind == WALL)
        if not lattices:
            return shapes
        spacing = 2 * min(lattice.spacing for lattice in lattices)
        return [(b, s.with_places(spacing)) for b, s in shapes]

    def plan(self, envs: int = 1, capacity: int | None = None) -> RigidPlan:
        """Sizes of the scene; ``capacity`` contacts at most an environment."""
        shapes = self._laid_out()
        point_body, plane_body, lines, rows, grids = [], [], [], [], []
        samples = 0
        for body, s in shapes:
            lattice = -1
            if s.lattice is not None:
                lattice = len(grids)
                grids.append((samples, *s.lattice.values.shape, body))
                samples += s.lattice.values.size
            rows.append((
                s.kind, body, len(point_body), s.corners, len(s.points), len(plane_body), len(s.planes), len(lines),
                len(s.lines), lattice,
            ))  # fmt: skip
            lines += [(len(point_body) + i, len(point_body) + j) for i, j in s.lines]
            point_body += [body] * len(s.points)
            plane_body += [body] * len(s.planes)
        pairing = self._pairing(shapes)
        if capacity is None:
            capacity = min(
                sum(_room(a, b) for i, (_, a) in enumerate(shapes) for j, (_, b) in enumerate(shapes[:i])
                    if pairing[i][j] >= 0),
                64 * max(1, len(self.bodies)) + sum(len(s.points) for _, s in shapes if s.kind == MESH),
            )  # fmt: skip
        return RigidPlan(
            self.dim, envs, len(self.bodies), tuple(point_body), tuple(plane_body), tuple(lines), tuple(rows),
            tuple(grids), samples, pairing, tuple(int(b.fixed) for b in self.bodies), 1, capacity,
        )  # fmt: skip

    def fill(self, solver: RigidSolver) -> None:
        """Write parameters and the initial state into slot 0, the same in every environment."""
        envs, store = solver.plan.envs, solver.store
        shapes = [s for _, s in self._laid_out()]
        lattices = [s.lattice for s in shapes if s.lattice is not None]

        def write(name: str, rows) -> None:
            if len(rows):
                store.write(name, np.concatenate([np.asarray(rows, float)] * envs))

        write("mass", [b.mass for b in self.bodies])
        write("inertia", [b.inertia for b in self.bodies])
        write("centre", np.zeros((len(self.bodies), self.dim)))
        write("point", [x for s in shapes for x in s.points])
        write("radius", [r for s in shapes for r in s.radii])
        write("plane_normal", [normal for s in shapes for normal, _ in s.planes])
        write("plane_offset", [offset for s in shapes for _, offset in s.planes])
        write("grid_scale", np.ones(len(lattices)))
        write("gravity", [self.gravity])
        for name, value in self.values.items():
            write(name, [value])
        if lattices:
            store.write("lattice", np.array([[*g.origin, g.spacing] for g in lattices]))
            store.write("sample", np.concatenate([g.values.ravel() for g in lattices]))
        state = {
            name: np.concatenate([[b.values[name] for b in self.bodies]] * envs)
            for name in ("position", "rotation", "velocity", "spin")
        }
        solver.write_first_slot(state)


def _room(a: Collider, b: Collider) -> int:
    """Contacts two shapes may have."""
    if WALL in (a.kind, b.kind):
        other = a if b.kind == WALL else b
        return 2 * SECTORS if other.kind == CYLINDER else other.corners
    count = sum(len(x.points) for x, y in ((a, b), (b, a)) if y.kind in POINTS_AGAINST[x.kind])
    if a.kind in (HULL, CYLINDER) and b.kind in (HULL, CYLINDER):
        count += sum(2 * SECTORS if s.kind == CYLINDER else s.corners for s in (a, b))  # on faces, and on sides
        count += sum(len(x.points) for x, y in ((a, b), (b, a)) if y.kind == CYLINDER)
    return count + min(8, len(a.lines) * len(b.lines))


def _matrix(i: np.ndarray) -> np.ndarray:
    return np.array([[i[0], i[3], i[4]], [i[3], i[1], i[5]], [i[4], i[5], i[2]]])
