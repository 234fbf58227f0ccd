"""Plans and arrays of the rigid solver from bodies of simple shapes, without a scene."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.solvers.rigid import colliders
from taichi_sim.solvers.rigid.arrays import EventPlan, RigidPlan
from taichi_sim.solvers.rigid.attitude import attitude, combine, inverse, matrices, unturned
from taichi_sim.solvers.rigid.colliders import Collider
from taichi_sim.solvers.rigid.layout import WORLD, Layout, lay_out
from taichi_sim.solvers.rigid.solver import RigidSolver
from taichi_sim.solvers.rigid.topology import BALL, HINGE, KINDS, LOOSE, coordinates_of, freedoms_of, topology

#: A limit that is never reached; infinity would give 0 times infinity.
NEVER = 1e20


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


#: Arrays of what acts along a joint by the name of the argument of :meth:`Assembly.joint`, and their defaults.
LAW = {
    "armature": ("armature", 0.0), "damping": ("joint_damping", 0.0), "stiffness": ("joint_stiffness", 0.0),
    "rest": ("joint_rest", 0.0), "lower": ("joint_lower", -NEVER), "upper": ("joint_upper", NEVER),
    "limit_stiffness": ("limit_stiffness", 1e4), "limit_damping": ("limit_damping", 1.0),
    "friction": ("joint_friction", 0.0), "stiction": ("joint_stiction", 1e-3), "kp": ("drive_stiffness", 0.0),
    "kd": ("drive_damping", 0.0), "limit": ("drive_limit", NEVER),
}  # fmt: skip

#: What of it a ball has: it has no angle to compare with.
OF_BALLS = ("armature", "damping", "friction", "stiction")


@dataclass
class _Joint:
    name: str
    kind: int
    parent: int
    child: int
    values: dict[str, np.ndarray]
    law: dict[str, float]


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
        self.joints: list[_Joint] = []
        self.closures: list[_Joint] = []
        self.values = {
            "friction": 0.5, "stiffness": 1e5, "damping": 5.0, "stiction": 1e-4, "restitution": 0.0,
            "dt": 1e-3,
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

    def joint(
        self,
        kind: str,
        parent: int,
        child: int,
        anchor: Sequence[float],
        axis: Sequence[float] | None = None,
        position: float | Sequence[float] = 0.0,
        velocity: float | Sequence[float] = 0.0,
        name: str = "",
        **law: float,
    ) -> int:
        """Hang body ``child`` on ``parent`` (-1: the world); returns the number of the joint.

        ``kind``: fixed, hinge, prismatic or ball (free: no joint). ``anchor`` [m] and ``axis`` (any length; none for a
        hinge in 2-D) are given in the world at the poses of the bodies as they were added, where the joint's coordinate
        is 0. From there it starts at ``position`` (rad or m; rotation vector of a ball) with ``velocity``; what was
        given as the child's own pose and velocity no longer counts. ``law``: names of :data:`LAW`.
        Raises ``ValueError`` naming the joint.
        """
        name = name or f"joint {len(self.joints)}"
        values = self._place_joint(name, kind, parent, child, anchor, axis)
        number = BALL if kind == "ball" and self.dim == 3 else HINGE if kind == "ball" else KINDS[kind]
        for key, value in law.items():
            if key not in LAW:
                raise ValueError(f"{name}: {unknown('argument', key, LAW)}")
            if number == BALL and key not in OF_BALLS:
                raise ValueError(f"{name}: a ball has no {key}, only {', '.join(OF_BALLS)}")
            if not np.isfinite(value) and key not in ("lower", "upper", "limit"):
                raise ValueError(f"{name}: {key} must be finite, got {value}")
            if value < 0 and key not in ("rest", "lower", "upper"):
                raise ValueError(f"{name}: {key} must not be negative, got {value}")
        size = freedoms_of(number, self.dim) if number != LOOSE else 0
        values["coordinate"] = np.zeros(coordinates_of(number)) + (0.0 if number == BALL else position)
        if number == BALL:
            values["coordinate"] = attitude(np.zeros(3) + position, 3)
        values["rate"] = np.zeros(size) + (velocity if size else 0.0)
        whole = {array: float(np.clip(law.get(key, default), -NEVER, NEVER)) for key, (array, default) in LAW.items()}
        self.joints.append(_Joint(name, number, parent, child, values, whole))
        return len(self.joints) - 1

    def closure(
        self,
        kind: str,
        a: int,
        b: int,
        anchor: Sequence[float],
        axis: Sequence[float] | None = None,
        stiffness: float = 1e6,
        turning: float = 1e4,
        name: str = "",
    ) -> int:
        """Tie body ``a`` to ``b`` (-1: the world) where a tree has no place for a joint: a ball, a hinge, or fixed.

        ``anchor`` and ``axis`` as of :meth:`joint`; ``stiffness`` [N/m] of the place and ``turning`` [N m] of the
        attitude.
        """
        name = name or f"closure {len(self.closures)}"
        if kind not in ("ball", "hinge", "fixed"):
            raise ValueError(f"{name}: a loop can be closed by a ball, a hinge or a fixed joint, not by {kind!r}")
        if not stiffness > 0 or not turning > 0:
            raise ValueError(f"{name}: stiffness and turning must be above 0, got {stiffness} and {turning}")
        values = self._place_joint(name, kind, b, a, anchor, axis)
        law = {"closure_stiffness": stiffness, "closure_turning": turning}
        self.closures.append(_Joint(name, KINDS[kind], b, a, values, law))
        return len(self.closures) - 1

    def _place_joint(
        self, name: str, kind: str, parent: int, child: int, anchor: Sequence[float], axis: Sequence[float] | None
    ) -> dict[str, np.ndarray]:
        """Anchor, axis and attitude of a joint in the axes of its bodies."""
        if kind not in KINDS:
            raise ValueError(f"{name}: {unknown('kind', kind, KINDS)}")
        for body in (parent, child):
            if not -1 <= body < len(self.bodies):
                raise ValueError(f"{name}: there is no body {body}; bodies are 0 … {len(self.bodies) - 1}")
        if child < 0 and kind != "free" and parent < 0:
            raise ValueError(f"{name}: both ends are the world")
        given = np.zeros(self.dim) if axis is None else np.asarray(axis, float)
        needed = kind == "prismatic" or (kind == "hinge" and self.dim == 3)
        if needed and not np.linalg.norm(given) > 0:
            raise ValueError(f"{name}: a {kind} joint needs an axis that is not zero, got {axis}")
        out = {"mount": combine(inverse(self._attitude(parent), self.dim), self._attitude(child), self.dim)}
        for side, body in (("parent", parent), ("child", child)):
            R = matrices(self._attitude(body), self.dim)
            place = self.bodies[body].values["position"] if body >= 0 else np.zeros(self.dim)
            out[f"{side}_anchor"] = R.T @ (np.asarray(anchor, float) - place)
            out[f"{side}_axis"] = R.T @ (given / np.linalg.norm(given) if needed else given)
        return out

    def _attitude(self, body: int) -> np.ndarray:
        if body < 0:
            return unturned(self.dim)
        given = np.asarray(self.bodies[body].values["rotation"], float)
        return given if self.dim == 2 else given / np.linalg.norm(given)

    def ignore(self, a: int, b: int) -> None:
        """Two bodies that pass through each other."""
        self._apart.add(frozenset((a, b)))

    def _surface(self, a: int, b: int) -> int:
        """Surface of two bodies, -1 where they never touch: what shares a joint does not, nor what cannot move."""
        apart = self._apart | {frozenset((j.parent, j.child)) for j in self.joints + self.closures if j.parent != WORLD}
        free = a != b and any(x != WORLD and not self.bodies[x].fixed for x in (a, b))
        return 0 if free and frozenset((a, b)) not in apart else -1

    def _layout(self) -> Layout:
        owners = [body for body, _ in self.shapes]
        return lay_out(self.shapes, lambda i, j: self._surface(owners[i], owners[j]))

    def plan(self, envs: int = 1, capacity: int | None = None, events: EventPlan | None = None) -> RigidPlan:
        """Sizes of the scene; ``capacity`` contacts at most an environment. Impacts are events where bodies rebound.

        Raises ``ValueError`` naming the joint where bodies do not form a tree, or that hangs where a body is held.
        """
        if events is None and self.values["restitution"] > 0.0:
            events = EventPlan()
        joints = tuple((j.kind, j.parent, j.child) for j in self.joints if j.kind != LOOSE)
        topology(self.dim, len(self.bodies), joints, [j.name for j in self.joints if j.kind != LOOSE])
        if (joints or self.closures) and any(b.fixed for b in self.bodies):
            raise ValueError("a body cannot be fixed in a scene with joints; tie it to the world by a fixed joint")
        found = self._layout()
        return RigidPlan(
            self.dim, envs, len(self.bodies), found.point_body, found.plane_body, found.lines, found.rows, found.grids,
            found.samples, found.pairing, tuple(int(b.fixed) for b in self.bodies), 1,
            found.capacity if capacity is None else capacity, events, joints,
            tuple((c.kind, c.child, c.parent) for c in self.closures),
        )  # fmt: skip

    def fill(self, solver: RigidSolver) -> None:
        """Write parameters and the initial state into slot 0, the same in every environment."""
        envs, store = solver.plan.envs, solver.store
        found = self._layout()
        shapes = found.shapes
        lattice, sample = found.lattices()

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
        write("grid_scale", np.ones(len(lattice)))
        write("grid_place", np.zeros((len(lattice), self.dim)))
        write("gravity", [self.gravity])
        for name, value in self.values.items():
            write(name, [value])
        if len(lattice):
            store.write("lattice", lattice)
            store.write("distances", sample)
        state = {
            name: np.concatenate([[b.values[name] for b in self.bodies]] * envs)
            for name in ("position", "rotation", "velocity", "spin")
        }
        real = [j for j in self.joints if j.kind != LOOSE]
        for array, key in (("parent_anchor", "parent_anchor"), ("child_anchor", "child_anchor"),
                           ("joint_axis", "parent_axis"), ("mount", "mount")):  # fmt: skip
            write(array, [j.values[key] for j in real])
        for array, _ in LAW.values():
            write(array, [j.law[array] for j in real for _ in j.values["rate"]])
        for array in ("closure_stiffness", "closure_turning"):
            write(array, [c.law[array] for c in self.closures])
        write("closure_mount", [c.values["mount"] for c in self.closures])
        sides = [(c.values, side) for c in self.closures for side in ("child", "parent")]
        write("closure_anchor", [values[f"{side}_anchor"] for values, side in sides])
        write("closure_axis", [np.append(values[f"{side}_axis"], np.zeros(3 - self.dim)) for values, side in sides])
        for name in ("coordinate", "rate"):
            if real and sum(len(j.values[name]) for j in real):
                state[name] = np.concatenate([j.values[name] for j in real] * envs)
        solver.write_first_slot(state)


def _matrix(i: np.ndarray) -> np.ndarray:
    return np.array([[i[0], i[3], i[4]], [i[3], i[1], i[5]], [i[4], i[5], i[2]]])
