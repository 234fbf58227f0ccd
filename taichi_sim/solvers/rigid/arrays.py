"""The arrays of the rigid body solver, declared once; and the sizes of one compiled scene."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.core.array import Array

#: Kinds of contact candidates: what is looked at in every step.
POINT_PLANE, POINT_POINT, BOX_BOX, POINT_BOX = 0, 1, 2, 3

#: Kind of a contact with an edge through a vertex, plus the plane whose normal it runs along.
POINT_EDGE = 16


@dataclass(frozen=True)
class RigidPlan:
    """Sizes and topology of one compiled scene, the same in all environments.

    ``point_body[i]`` is the body that carries point ``i`` (centre of a sphere or vertex of a box); ``plane_body[i]``
    the body that carries plane ``i``, -1 for the world. ``boxes[i]`` names the first of the ``2^dim`` points of box
    ``i`` and the first of its ``2 dim`` planes, in the order -x, +x, -y, ... ``candidates`` are (kind, a, b, surface):
    a point and a plane, two points, two boxes, or a point and a box. ``capacity`` is the room for contacts of one
    environment.
    """

    dim: int
    envs: int
    bodies: int
    point_body: tuple[int, ...] = ()
    plane_body: tuple[int, ...] = ()
    boxes: tuple[tuple[int, int], ...] = ()
    candidates: tuple[tuple[int, int, int, int], ...] = ()
    surfaces: int = 1
    capacity: int = 0

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
        param("point", v, "point", "m", "centre of a sphere or vertex of a box, body axes"),
        param("radius", (), "point", "m", "radius around a point; 0 for a vertex"),
        param("plane_normal", v, "plane", "1", "outward unit normal, body or world axes"),
        param("plane_offset", (), "plane", "m", "normal · y on the plane"),
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
        scratch("taped", (4,), ("slot", "room"), "contacts of every step: kind, a, b, surface", "int"),
        scratch("taped_count", (2,), ("slot", "env"), "contacts of every step, factorisations of its solve", "int"),
        scratch("candidate", (4,), "candidate", "kind, a, b, surface", "int"),
        scratch("point_body", (), "points", "body of a point", "int"),
        scratch("plane_body", (), "planes", "body of a plane, -1 for the world", "int"),
        scratch("box", (2,), "box", "first point, first plane", "int"),
        scratch("settings", (), "settings", "tolerance of the solve, margin [m], floor [√J]"),
        scratch("extent", (), "extent", "bodies, points, planes, surfaces, candidates, capacity", "int"),
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
        "candidate": len(p.candidates),
        "points": len(p.point_body),
        "planes": len(p.plane_body),
        "box": len(p.boxes),
        "column": 6,
        "settings": 3,
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
