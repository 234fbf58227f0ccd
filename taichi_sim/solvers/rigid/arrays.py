"""The arrays of the rigid body solver, declared once; and the sizes of one compiled scene."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.core.array import Array
from taichi_sim.solvers.rigid.shapes import WALL, pair_bit


@dataclass(frozen=True)
class RigidPlan:
    """Sizes and topology of one compiled scene, the same in all environments.

    ``point_body[i]`` and ``plane_body[i]`` are the bodies that carry points and planes, -1 for the world; ``lines[i]``
    two points of a body; ``shapes[i]`` a row of ``shapes.py``, half-spaces last; ``grids[i]`` the first sample of a
    signed distance, nodes along x, y, z, and its body; there are ``samples`` in all. ``pairing[i][j]`` is the surface
    of shapes ``i`` and ``j``, -1 where they never meet; ``met`` says which kinds of shapes do, and ``also`` which to
    compile for all the same, so that scenes share a kernel. ``held`` bodies do not move. ``capacity`` is the room for
    contacts of one environment.
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
    also: int = 0

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
    def freedoms(self) -> int:
        """Degrees of freedom of one environment."""
        return self.bodies * (3 if self.dim == 2 else 6)


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
        param("grid_scale", (), "grid", "1", "factor of a lattice and its distances, about the origin of body axes"),
        param("friction", (), "surface", "1", "Coulomb coefficient of a pair of surfaces"),
        param("stiffness", (), "surface", "N/m", "k, normal stiffness of a point of contact"),
        param("damping", (), "surface", "s/m", "d, Hunt-Crossley damping"),
        param("stiction", (), "surface", "m/s", "vs, sliding speed below which friction falls off"),
        param("gravity", v, "env", "m/s²", "acceleration of everything"),
        param("dt", (), "env", "s", "step"),
    )
    inputs = (
        Array("force", v, "body", "input", "N", "applied at the centre of mass, world axes"),
        Array("torque", turn, "body", "input", "N m", "applied, world axes"),
    )

    def scratch(name: str, element: tuple, domain: str | tuple[str, ...], doc: str, dtype: str = "real") -> Array:
        return Array(name, element, domain, "scratch", "mixed", doc, dtype=dtype)

    work = (
        scratch("turned", (3, 3), "body", "rotation matrix of the step"),
        scratch("turned_bar", (3, 3), "body", "its adjoint"),
        scratch("velocity_out", v, "body", "synchronous velocity, or its adjoint"),
        scratch("spin_out", turn, "body", "synchronous spin, or its adjoint"),
        scratch("arm", (3,), "point", "points from the centre of mass, world axes"),
        scratch("arm_bar", (3,), "point", "its adjoint"),
        scratch("face", (4,), "plane", "normal in world axes, offset from the centre of mass"),
        scratch("face_bar", (4,), "plane", "its adjoint"),
        scratch("inertia_world", (3, 3), "body", "inertia in world axes"),
        scratch("heft", (), "body", "mass, as the velocity problem takes it"),
        scratch("dof", (), ("freedom", "column"), "columns of newton.py, a row a degree of freedom"),
        scratch("matrix", (), "square", "matrix of the velocity problem, rows one after the other"),
        scratch("contact", (17,), "room", "contacts of the step, columns of geometry.py"),
        scratch("contact_body", (2,), "room", "their bodies A and B, -1 for the world", "int"),
        scratch("taped", (4,), ("slot", "room"), "contacts of every step: kind, features of A and B, surface", "int"),
        scratch("taped_count", (2,), ("slot", "env"), "contacts of every step, factorisations of its solve", "int"),
        scratch("spot", (3,), "point", "where points are, world axes"),
        scratch("level", (), "plane", "offsets of planes from the origin of the world"),
        scratch("bound", (5,), "bound", "sphere around a shape: centre, radius, reach"),
        scratch("order", (), "bound", "shapes by where their spheres begin", "int"),
        scratch("census", (), "census", "bounded shapes, shapes, lines, grids", "int"),
        scratch("shape", (10,), "shape", "columns of shapes.py", "int"),
        scratch("pairing", (), "pairing", "surface of two shapes, -1: they never meet", "int"),
        scratch("line", (2,), "line", "its two points", "int"),
        scratch("point_body", (), "points", "body of a point, -1 for the world", "int"),
        scratch("plane_body", (), "planes", "body of a plane, -1 for the world", "int"),
        scratch("held", (), "bodies", "1: does not move", "int"),
        scratch("grid", (5,), "lattice", "first sample, nodes along x, y, z, body", "int"),
        scratch("lattice", (4,), "lattice", "place of the first node, spacing"),
        scratch("sample", (), "sample", "signed distances, or coefficients of splines through them"),
        scratch("settings", (), "settings", "tolerance of the solve, margin of detection [m]"),
        scratch("extent", (), "extent", "bodies, points, planes, surfaces, shapes, capacity", "int"),
        scratch("flag", (3,), "env", "kind, slot, detail of what went wrong", "int"),
    )
    return state + parameters + inputs + work


def domain_sizes(p: RigidPlan, slots: int) -> dict[str, int]:
    """Sizes of all domains."""
    return {
        "body": p.envs * p.bodies,
        "env": p.envs,
        "point": p.envs * len(p.point_body),
        "plane": p.envs * len(p.plane_body),
        "surface": p.envs * p.surfaces,
        "freedom": p.envs * p.freedoms,
        "square": p.envs * p.freedoms**2,
        "room": p.envs * max(1, p.capacity),
        "slot": slots,
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
        "column": 6,
        "settings": 2,
        "extent": 6,
    }


def footprint(plan: RigidPlan, precision: str, frames: int, slots: int) -> int:
    """Bytes the solver's arrays will take."""
    sizes = domain_sizes(plan, slots)
    total = 0
    for a in declare(plan.dim):
        count = int(np.prod(a.domain_shape(sizes), dtype=np.int64))
        each = a.bytes_each(precision, plan.dim)
        lead = {"state": slots, "input": frames}.get(a.role, 1)
        total += lead * count * each
        if a.role == "state" and a.differentiable:
            total += count * each
        elif a.role in ("param", "input"):  # adjoints of parameters are always f64
            total += lead * count * each * (2 if precision == "f32" else 1)
    return total
