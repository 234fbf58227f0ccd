"""From bodies of simple shapes to the arrays of the solver."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from taichi_sim.solvers.rigid.arrays import BOX_BOX, POINT_BOX, POINT_PLANE, POINT_POINT, EventPlan, RigidPlan
from taichi_sim.solvers.rigid.solver import RigidSolver


@dataclass
class _Body:
    mass: float
    inertia: np.ndarray
    values: dict[str, np.ndarray]
    spheres: list[int] = field(default_factory=list)
    boxes: list[int] = field(default_factory=list)


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


class Assembly:
    """Collects bodies and world planes, decides what may touch what, and fills a solver.

    Lengths in m, angles in rad, velocities of the centre of mass. Everything touches everything else, with one
    surface for all pairs; environments begin alike.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.bodies: list[_Body] = []
        self._points: list[tuple[int, np.ndarray, float]] = []
        self._planes: list[tuple[int, np.ndarray, float]] = []
        self._boxes: list[tuple[int, int]] = []
        self._walls: list[int] = []
        self.values = {
            "friction": 0.5, "stiffness": 1e5, "damping": 5.0, "stiction": 1e-4, "restitution": 0.0,
            "dt": 1e-3,
        }  # fmt: skip
        self.gravity = np.zeros(dim)

    def body(self, mass: float, inertia: Sequence[float] | np.ndarray, position: Sequence[float], **state) -> int:
        """A body without a shape. ``state``: ``rotation`` (angle, or quaternion w x y z), ``velocity``, ``spin``.

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
        self.bodies.append(_Body(float(mass), moments, values))
        return len(self.bodies) - 1

    def sphere(self, mass: float, radius: float, position: Sequence[float], **state) -> int:
        """A solid sphere, or disc in 2-D."""
        b = self.body(mass, sphere_inertia(mass, radius, self.dim), position, **state)
        self.add_point(b, np.zeros(self.dim), radius)
        return b

    def box(self, mass: float, half: Sequence[float], position: Sequence[float], **state) -> int:
        """A solid box of half widths ``half``."""
        b = self.body(mass, box_inertia(mass, half), position, **state)
        self.bodies[b].boxes.append(len(self._boxes))
        self._boxes.append((len(self._points), len(self._planes)))
        for corner in np.ndindex(*(2,) * self.dim):
            self._points.append((b, (2 * np.array(corner) - 1) * np.asarray(half, float), 0.0))
        for axis in range(self.dim):
            for sign in (-1.0, 1.0):
                normal = np.zeros(self.dim)
                normal[axis] = sign
                self._planes.append((b, normal, float(half[axis])))
        return b

    def add_point(self, body: int, place: np.ndarray, radius: float) -> None:
        """A sphere fixed to a body; ``place`` in body axes."""
        self.bodies[body].spheres.append(len(self._points))
        self._points.append((body, np.asarray(place, float), float(radius)))

    def wall(self, normal: Sequence[float], offset: float) -> None:
        """A static half-space: ``normal · x < offset`` is solid."""
        unit = np.asarray(normal, float) / np.linalg.norm(normal)
        self._walls.append(len(self._planes))
        self._planes.append((-1, unit, float(offset)))

    def candidates(self) -> list[tuple[int, int, int, int]]:
        """All pairs of shapes of different bodies, and of shapes and walls."""
        found = [(POINT_PLANE, i, w, 0) for w in self._walls for i in range(len(self._points))]
        for a in range(len(self.bodies)):
            for b in range(a):
                A, B = self.bodies[a], self.bodies[b]
                found += [(POINT_POINT, i, j, 0) for i in A.spheres for j in B.spheres]
                found += [(BOX_BOX, i, j, 0) for i in A.boxes for j in B.boxes]
                found += [(POINT_BOX, i, j, 0) for i in A.spheres for j in B.boxes]
                found += [(POINT_BOX, j, i, 0) for i in A.boxes for j in B.spheres]
        return found

    def plan(self, envs: int = 1, capacity: int | None = None, events: EventPlan | None = None) -> RigidPlan:
        """Sizes of the scene; ``capacity`` contacts at most an environment. Impacts are events where bodies rebound."""
        if events is None and self.values["restitution"] > 0.0:
            events = EventPlan()
        found = self.candidates()
        room = {POINT_PLANE: 1, POINT_POINT: 1, POINT_BOX: 1, BOX_BOX: 2**self.dim}
        most = min(sum(room[kind] for kind, *_ in found), 64 * max(1, len(self.bodies)))
        return RigidPlan(
            self.dim, envs, len(self.bodies), tuple(b for b, *_ in self._points), tuple(b for b, *_ in self._planes),
            tuple(self._boxes), tuple(found), 1, most if capacity is None else capacity, events,
        )  # fmt: skip

    def fill(self, solver: RigidSolver) -> None:
        """Write parameters and the initial state into slot 0, the same in every environment."""
        envs, store = solver.plan.envs, solver.store

        def write(name: str, rows) -> None:
            if len(rows):
                store.write(name, np.concatenate([np.asarray(rows, float)] * envs))

        write("mass", [b.mass for b in self.bodies])
        write("inertia", [b.inertia for b in self.bodies])
        write("centre", np.zeros((len(self.bodies), self.dim)))
        write("point", [place for _, place, _ in self._points])
        write("radius", [radius for *_, radius in self._points])
        write("plane_normal", [normal for _, normal, _ in self._planes])
        write("plane_offset", [offset for *_, offset in self._planes])
        write("gravity", [self.gravity])
        for name, value in self.values.items():
            write(name, [value])
        state = {
            name: np.concatenate([[b.values[name] for b in self.bodies]] * envs)
            for name in ("position", "rotation", "velocity", "spin")
        }
        solver.write_first_slot(state)


def _matrix(i: np.ndarray) -> np.ndarray:
    return np.array([[i[0], i[3], i[4]], [i[3], i[1], i[5]], [i[4], i[5], i[2]]])
