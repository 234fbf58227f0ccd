"""The arrays of the rigid body solver, declared once; and the sizes of one compiled scene."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.core.array import Array
from taichi_sim.solvers.rigid.shapes import WALL, pair_bit
from taichi_sim.solvers.rigid.topology import Topology, topology


@dataclass(frozen=True)
class EventPlan:
    """How impacts split a step (``events``): at most ``most`` in a step, after which contact is compliant.

    ``threshold`` is the speed of approach from which an impact rebounds, m/s; ``touch`` the gap below which bodies
    touch, m (about 1e-5 of their size). ``reserve`` impacts a step are kept for the adjoint, on the average over a
    segment and in each environment.
    """

    most: int = 8
    threshold: float = 0.05
    touch: float = 1e-5
    reserve: int = 2

    def __post_init__(self) -> None:
        if self.most < 1 or self.reserve < 1 or not self.threshold > 0 or not self.touch > 0:
            raise ValueError(f"events: most, reserve, threshold and touch must be above 0, got {self}")

    def pool(self, slots: int) -> int:
        """Slots that hold the pieces of steps, two for each impact."""
        return 2 * (self.reserve * (slots - 1) + self.most)


@dataclass(frozen=True)
class RigidPlan:
    """Sizes and topology of one compiled scene, the same in all environments.

    ``point_body[i]`` and ``plane_body[i]`` are the bodies that carry points and planes, -1 for the world; ``lines[i]``
    two points of a body; ``shapes[i]`` a row of ``shapes.py``, half-spaces last; ``grids[i]`` the first sample of a
    signed distance, nodes along x, y, z, and its body; there are ``samples`` in all. ``pairing[i][j]`` is the surface
    of shapes ``i`` and ``j``, -1 where they never meet; ``met`` says which kinds of shapes do, and ``also`` which to
    compile for all the same, so that scenes share a kernel. ``held`` bodies do not move. ``capacity`` is the room for
    contacts of one environment. Without ``events`` contact is compliant only, and ``restitution`` is not looked at.
    ``joints`` are (kind, parent, child) and ``closures`` (kind, a, b), kinds of ``topology``, bodies or -1 for the
    world; with them there are no events, and nothing is held. ``contact_gradient`` is a policy of ``softening``.
    """

    dim: int
    envs: int
    bodies: int
    point_body: tuple[int, ...] = ()
    plane_body: tuple[int, ...] = ()
    lines: tuple[tuple[int, int], ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    grids: tuple[tuple[int, ...], ...] = ()
    samples: int = 0
    pairing: tuple[tuple[int, ...], ...] = ()
    held: tuple[int, ...] = ()
    surfaces: int = 1
    capacity: int = 0
    events: EventPlan | None = None
    joints: tuple[tuple[int, int, int], ...] = ()
    closures: tuple[tuple[int, int, int], ...] = ()
    also: int = 0
    contact_gradient: str = "exact"

    @property
    def bounded(self) -> int:
        """Number of shapes that are not half-spaces."""
        return sum(row[0] != WALL for row in self.shapes)

    @property
    def met(self) -> int:
        """Bits of the pairs of kinds that may meet."""
        found = self.also
        for row, surfaces in zip(self.shapes, self.pairing, strict=True):
            for other, surface in zip(self.shapes, surfaces, strict=True):
                found |= pair_bit(row[0], other[0]) if surface >= 0 else 0
        return found

    @property
    def jointed(self) -> bool:
        """Whether bodies hang on joints, or are tied by closures."""
        return bool(self.joints or self.closures)

    @property
    def topology(self) -> Topology:
        """Who hangs on whom."""
        return topology(self.dim, self.bodies, self.joints)

    @property
    def freedoms(self) -> int:
        """Degrees of freedom of one environment."""
        return self.topology.freedoms

    def pool(self, slots: int) -> int:
        """Slots beyond those of steps, for the pieces of steps that impacts split."""
        return self.events.pool(slots) if self.events else 0


def declare(dim: int) -> tuple[Array, ...]:
    """All arrays of the solver in ``dim`` dimensions."""
    turn = (1,) if dim == 2 else (3,)
    attitude = (1,) if dim == 2 else (4,)
    moments = (1,) if dim == 2 else (6,)
    v = ("dim",)

    def param(name: str, element: tuple, domain: str, unit: str, doc: str) -> Array:
        return Array(name, element, domain, "param", unit, doc, exclusive=True)

    state = (
        Array("position", v, "body", "state", "m", "centre of mass"),
        Array("rotation", attitude, "body", "state", "1", "angle [rad] in 2-D, quaternion w x y z in 3-D"),
        Array("velocity", v, "body", "state", "m/s", "of the centre of mass, half a kick behind the position"),
        Array("spin", turn, "body", "state", "rad/s", "angular velocity in world axes, half a kick behind"),
        Array("kick", (), "env", "state", "s", "length of the last drift: velocities stand at t - kick/2"),
        Array("coordinate", (), "coordinate", "state", "rad, m", "of a hinge or a slide; a ball has a quaternion"),
        Array("rate", (), "joint_freedom", "state", "rad/s, m/s", "velocity of a joint, half a kick behind"),
        Array("touching", (), "body", "state", "1", "1 where contact acted in the last step", differentiable=False),
    )
    parameters = (
        param("mass", (), "body", "kg", "mass"),
        param("inertia", moments, "body", "kg m²", "about the centre of mass in body axes: zz, or xx yy zz xy xz yz"),
        param("centre", v, "body", "m", "centre of mass in the axes in which points and planes are given"),
        param("point", v, "point", "m", "centre, end, vertex or place on a shape, body axes"),
        param("radius", (), "point", "m", "radius around a point, or of the cap it is the centre of; 0 for a vertex"),
        param("plane_normal", v, "plane", "1", "outward unit normal, body or world axes"),
        param("plane_offset", (), "plane", "m", "normal · y on the plane"),
        param("grid_scale", (), "grid", "1", "factor of a lattice and its distances, about the origin of its axes"),
        param("grid_place", v, "grid", "m", "where the axes of a lattice have their origin, body or world axes"),
        param("friction", (), "surface", "1", "Coulomb coefficient of a pair of surfaces"),
        param("stiffness", (), "surface", "N/m", "k, normal stiffness of a point of contact"),
        param("damping", (), "surface", "s/m", "d, Hunt-Crossley damping"),
        param("stiction", (), "surface", "m/s", "vs, sliding speed below which friction falls off"),
        param("restitution", (), "surface", "1", "e, speed after an impact over the speed before"),
        param("gravity", v, "env", "m/s²", "acceleration of everything"),
        param("dt", (), "env", "s", "step"),
        param("parent_anchor", v, "joint", "m", "the joint in the axes of the parent, or the world"),
        param("child_anchor", v, "joint", "m", "the joint in the axes of the child"),
        param("joint_axis", v, "joint", "1", "unit axis of a hinge or a slide in the axes of the parent"),
        param("mount", attitude, "joint", "1", "attitude of the child in the parent where the coordinate is 0"),
        param("armature", (), "joint_freedom", "kg m², kg", "inertia of what the joint drives along"),
        param("joint_damping", (), "joint_freedom", "N m s, N s/m", "viscous friction"),
        param("joint_stiffness", (), "joint_freedom", "N m, N/m", "spring"),
        param("joint_rest", (), "joint_freedom", "rad, m", "where the spring is at rest"),
        param("joint_lower", (), "joint_freedom", "rad, m", "lower limit"),
        param("joint_upper", (), "joint_freedom", "rad, m", "upper limit"),
        param("limit_stiffness", (), "joint_freedom", "N m, N/m", "stiffness of the limits"),
        param("limit_damping", (), "joint_freedom", "s/rad, s/m", "Hunt-Crossley damping of the limits"),
        param("joint_friction", (), "joint_freedom", "N m, N", "dry friction"),
        param("joint_stiction", (), "joint_freedom", "rad/s, m/s", "velocity below which dry friction falls off"),
        param("drive_stiffness", (), "joint_freedom", "N m, N/m", "kp of the drive"),
        param("drive_damping", (), "joint_freedom", "N m s, N s/m", "kd of the drive"),
        param("drive_limit", (), "joint_freedom", "N m, N", "the most the drive gives"),
        param("closure_anchor", v, "closure_side", "m", "where a closure holds A, and B, in their axes"),
        param("closure_axis", (3,), "closure_side", "1", "unit axis a hinge holds, in the axes of A, and of B; 3-D"),
        param("closure_mount", attitude, "closure", "1", "attitude of A in B that a weld holds"),
        param("closure_stiffness", (), "closure", "N/m", "of the places"),
        param("closure_turning", (), "closure", "N m", "of the attitudes"),
    )
    inputs = (
        Array("force", v, "body", "input", "N", "applied at the centre of mass, world axes"),
        Array("torque", turn, "body", "input", "N m", "applied, world axes"),
        Array("joint_force", (), "joint_freedom", "input", "N m, N", "torque or force of an actuator"),
        Array("target", (), "joint_freedom", "input", "rad, m", "coordinate the drive goes for"),
        Array("target_rate", (), "joint_freedom", "input", "rad/s, m/s", "velocity the drive goes for"),
    )

    def scratch(name: str, element: tuple, domain: str | tuple[str, ...], doc: str, dtype: str = "real") -> Array:
        return Array(name, element, domain, "scratch", "mixed", doc, dtype=dtype)

    work = (
        scratch("turned", (3, 3), "body", "rotation matrix of the step"),
        scratch("turned_bar", (3, 3), "body", "its adjoint"),
        scratch("velocity_out", v, "body", "synchronous velocity, or its adjoint"),
        scratch("spin_out", turn, "body", "synchronous spin, or its adjoint"),
        scratch("rate_out", (), "joint_freedom", "synchronous velocity of joints, or its adjoint"),
        scratch("arm", (3,), "point", "points from the centre of mass, world axes"),
        scratch("arm_bar", (3,), "point", "its adjoint"),
        scratch("face", (4,), "plane", "normal in world axes, offset from the centre of mass"),
        scratch("face_bar", (4,), "plane", "its adjoint"),
        scratch("inertia_world", (3, 3), "body", "inertia in world axes"),
        scratch("heft", (), "body", "mass, as the velocity problem takes it"),
        scratch("dof", (), ("motions", "column"), "columns of newton.py, a row a degree of freedom"),
        scratch("matrix", (), "square", "matrix of the velocity problem, rows one after the other"),
        scratch("reduced", (), ("tree_freedom", "column"), "the same columns, a row a degree of freedom with joints"),
        scratch("motion", (6,), "tree_freedom", "what a degree of freedom adds to its body: sliding, turning"),
        scratch("motion_bar", (6,), "tree_freedom", "its adjoint"),
        scratch("lever", (6,), "tree_body", "from the parent's centre of mass to the joint, to the body's"),
        scratch("lever_bar", (6,), "tree_body", "its adjoint"),
        scratch("jacobian", (3,), "tree_freedom", "three rows of a contact"),
        scratch("composite", (4,), "tree_body", "mass and centre of mass of a branch"),
        scratch("composite_inertia", (3, 3), "tree_body", "its inertia"),
        scratch("mass_matrix", (), "tree_square", "of the degrees of freedom"),
        scratch("factor", (), "tree_square", "its Cholesky factor"),
        scratch("row", (11,), "joint_freedom", "what acts along a joint, columns of drive.py"),
        scratch("bond", (13,), "closure_row", "closures of the step, columns of closure.py"),
        scratch("link", (6,), "link", "parent, kind, joint, first degree of freedom, their number, coordinate", "int"),
        scratch("order", (), "link", "bodies, parents first", "int"),
        scratch("closure", (3,), "closures", "kind, A, B", "int"),
        scratch("contact", (21,), "room", "contacts of the step, columns of geometry.py"),
        scratch("contact_body", (2,), "room", "their bodies A and B, -1 for the world", "int"),
        scratch("push", (3,), "room", "impulses of contacts that were read again, on A"),
        scratch("told", (2,), "env", "of contacts that were read again: slot they are taped in, their number", "int"),
        scratch("taped", (4,), ("slot", "room"), "contacts of every step: kind, features of A and B, surface", "int"),
        scratch("taped_count", (3,), ("slot", "env"), "contacts of every step, factorisations, law (law.py)", "int"),
        scratch("chain", (2,), ("slot", "env"), "pieces of every step: first slot in the pool, impacts", "int"),
        scratch("piece", (2,), ("pool", "env"), "before an impact: flight, 1 if the gap set it; after: rest, scale"),
        scratch("flown", (6,), ("pool", "body"), "velocity and spin the flight to an impact would have ended with"),
        scratch("pool", (), "three", "most impacts in a step, first slot of the pool, its end", "int"),
        scratch("event_settings", (), "four", "threshold [m/s], touch [m], stiffness of impacts, resolution of time"),
        scratch("spot", (3,), "point", "where points are, world axes"),
        scratch("level", (), "plane", "offsets of planes from the origin of the world"),
        scratch("bound", (5,), "bound", "sphere around a shape: centre, radius, reach"),
        scratch("sequence", (), "bound", "shapes by where their spheres begin", "int"),
        scratch("census", (), "census", "bounded shapes, shapes, lines, grids", "int"),
        scratch("shape", (10,), "shape", "columns of shapes.py", "int"),
        scratch("pairing", (), "pairing", "surface of two shapes, -1: they never meet", "int"),
        scratch("line", (2,), "line", "its two points", "int"),
        scratch("point_body", (), "points", "body of a point, -1 for the world", "int"),
        scratch("plane_body", (), "planes", "body of a plane, -1 for the world", "int"),
        scratch("held", (), "bodies", "1: does not move", "int"),
        scratch("grid", (5,), "lattice", "first sample, nodes along x, y, z, body", "int"),
        scratch("lattice", (4,), "lattice", "place of the first node, spacing"),
        scratch("distances", (), "sample", "signed distances, or coefficients of splines through them"),
        scratch("settings", (), "settings", "tolerance of the solve, margin of detection [m], floor [√J], softening"),
        scratch("extent", (), "extent", "sizes of an environment, in the order of the solver", "int"),
        scratch("flag", (3,), "env", "kind, slot, detail of what went wrong", "int"),
    )
    return state + parameters + inputs + work


def domain_sizes(p: RigidPlan, slots: int) -> dict[str, int]:
    """Sizes of all domains."""
    t = p.topology
    trees = p.envs if p.jointed else 0
    return {
        "body": p.envs * p.bodies,
        "env": p.envs,
        "point": p.envs * len(p.point_body),
        "plane": p.envs * len(p.plane_body),
        "surface": p.envs * p.surfaces,
        "motions": p.envs * p.bodies * (3 if p.dim == 2 else 6),
        "tree_body": trees * p.bodies,
        "tree_freedom": trees * t.freedoms,
        "tree_square": trees * t.freedoms**2,
        "coordinate": p.envs * t.coordinates,
        "joint": p.envs * len(p.joints),
        "joint_freedom": p.envs * t.joint_freedoms,
        "closure": p.envs * len(p.closures),
        "closure_side": 2 * p.envs * len(p.closures),
        "closure_row": 2 * p.envs * len(p.closures),
        "closures": len(p.closures),
        "link": p.bodies,
        "square": p.envs * t.freedoms**2,
        "room": p.envs * max(1, p.capacity),
        "slot": slots + p.pool(slots),
        "pool": p.pool(slots),
        "bound": p.envs * p.bounded,
        "census": 4,
        "shape": len(p.shapes),
        "pairing": len(p.shapes) ** 2,
        "line": len(p.lines),
        "points": len(p.point_body),
        "planes": len(p.plane_body),
        "bodies": p.bodies,
        "grid": p.envs * len(p.grids),
        "lattice": len(p.grids),
        "sample": p.samples,
        "column": 17 if p.jointed else 10,
        "settings": 7,
        "extent": 11,
        "three": 3,
        "four": 4,
    }


def footprint(plan: RigidPlan, frames: int, slots: int) -> int:
    """Bytes the solver's arrays will take."""
    sizes = domain_sizes(plan, slots)
    total = 0
    for a in declare(plan.dim):
        count = int(np.prod(a.domain_shape(sizes), dtype=np.int64))
        each = a.bytes_each("f64", plan.dim)
        lead = {"state": sizes["slot"], "input": frames}.get(a.role, 1)
        total += lead * count * each
        if a.role == "state" and a.differentiable:
            total += count * each
        elif a.role in ("param", "input"):
            total += lead * count * each
    return total
