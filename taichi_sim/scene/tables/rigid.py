"""Rigid bodies, what joins them, and what is attached to them."""

from typing import Annotated

from taichi_sim.scene.declare import other, real
from taichi_sim.scene.tables.base import NONNEGATIVE, POSITIVE, Real, ShapeTable, Table

JOINT_KINDS = ("hinge", "prismatic", "ball", "fixed", "free")
ATTACHMENT_KINDS = ("weld",)


class Marker(Table, kw_only=True):
    """A point that goes with a rigid body."""

    point: Annotated[Real, real("m", "where it is in the shape, before the pose", "dim", differentiable=False)]


class Rigid(Table, kw_only=True):
    """A rigid body: geometry, mass and how it moves at time 0. Give ``density`` or ``mass``.

    Where two bodies touch, each of the five contact entries is the harmonic mean of both (the value itself where they
    are alike). At a wall or an obstacle friction is that mean with the wall's; the others are the body's own. Where a
    continuum touches it contact is hard, with the rigid body's own friction and stiction speed.
    """

    shape: Annotated[ShapeTable, other("shape", "geometry before the pose; a union is one body of several pieces")]
    density: Annotated[Real | None, real("kg/m³", "mass per volume", scale="log", **POSITIVE)] = None
    mass: Annotated[Real | None, real("kg", "mass (2-D: of a metre of depth), instead of density", **POSITIVE)] = None
    inertia: Annotated[
        Real | None,
        real("kg m²", "moments about the centre: Izz (2-D), or xx yy zz xy xz yz; default: the shape's", "inertia"),
    ] = None
    center: Annotated[Real | None, real("m", "centre of mass in the shape; default: its centre of volume", "dim")] = (
        None
    )
    scale: Annotated[Real, real("1", "size of the shape about its centre of volume", scale="log", **POSITIVE)] = 1.0
    position: Annotated[Real, real("m", "translation added to the shape", "dim")] = 0.0
    rotation: Annotated[Real, real("rad", "turn about the shape's centre of volume", "rotation")] = 0.0
    velocity: Annotated[Real, real("m/s", "initial velocity of the centre of mass", "dim")] = 0.0
    angular_velocity: Annotated[Real, real("rad/s", "initial angular velocity", "rotation")] = 0.0
    force: Annotated[Real, real("N", "applied at the centre of mass", "dim", also=(("any", "dim"),))] = 0.0
    torque: Annotated[Real, real("N m", "applied, world axes", "rotation", also=(("any", "rotation"),))] = 0.0
    friction: Annotated[Real, real("1", "Coulomb friction coefficient", **NONNEGATIVE)] = 0.5
    restitution: Annotated[Real, real("1", "rebound speed over approach speed in a collision", low=0.0, high=1.0)] = 0.0
    contact_stiffness: Annotated[
        Real, real("N/m", "normal stiffness of a point of contact", scale="log", **POSITIVE)
    ] = 1e5
    contact_damping: Annotated[Real, real("s/m", "Hunt-Crossley damping of contact", **NONNEGATIVE)] = 5.0
    stiction_speed: Annotated[
        Real, real("m/s", "sliding speed below which friction falls off", scale="log", **POSITIVE)
    ] = 1e-4
    fixed: Annotated[bool, other("flag", "held where it stands, whatever acts")] = False
    no_contact: Annotated[list[str], other("text", "bodies it passes through, * for any", shape=("any",))] = []
    color: Annotated[Real | None, real("1", "red, green, blue", 3, differentiable=False, low=0.0, high=1.0)] = None
    markers: dict[str, Marker] = {}


class Joint(Table, kw_only=True):
    """What holds two rigid bodies together.

    ``anchor`` and ``axis`` are places and directions of the scene, where the bodies stand as their own tables say:
    there the joint's coordinate is 0. The child begins at the coordinate ``position``, with ``velocity``; its own
    table then says where it stands at the coordinate 0, and has no velocities. Joints make trees; ``loop`` closes one,
    by stiffness instead of coordinates.
    """

    kind: Annotated[str, other("choice", "what it lets free", choices=JOINT_KINDS)]
    parent: Annotated[str | None, other("path", "rigid body; default: the world")] = None
    child: Annotated[str, other("path", "rigid body that hangs on it")]
    anchor: Annotated[Real, real("m", "where it is", "dim")] = 0.0
    axis: Annotated[Real | None, real("1", "direction it turns about or slides along, any length", "dim")] = None
    position: Annotated[Real, real("rad, m", "coordinate at the start (a ball: rotation vector)", also=((3,),))] = 0.0
    velocity: Annotated[Real, real("rad/s, m/s", "its rate at the start (a ball: 3 numbers)", also=((3,),))] = 0.0
    lower: Annotated[Real | None, real("rad, m", "lower limit of the coordinate; default: none")] = None
    upper: Annotated[Real | None, real("rad, m", "upper limit; default: none")] = None
    limit_stiffness: Annotated[Real, real("N m, N/m", "of the limits", scale="log", **POSITIVE)] = 1e4
    limit_damping: Annotated[Real, real("s/rad, s/m", "Hunt-Crossley damping of the limits", **NONNEGATIVE)] = 1.0
    damping: Annotated[Real, real("N m s, N s/m", "viscous friction", **NONNEGATIVE)] = 0.0
    stiffness: Annotated[Real, real("N m, N/m", "of a spring", **NONNEGATIVE)] = 0.0
    rest: Annotated[Real, real("rad, m", "coordinate at which the spring is at rest")] = 0.0
    armature: Annotated[Real, real("kg m², kg", "inertia of what drives it", **NONNEGATIVE)] = 0.0
    friction: Annotated[Real, real("N m, N", "dry friction", **NONNEGATIVE)] = 0.0
    stiction_speed: Annotated[
        Real, real("rad/s, m/s", "rate below which dry friction falls off", scale="log", **POSITIVE)
    ] = 1e-3
    loop: Annotated[bool, other("flag", "closes a loop of joints")] = False
    loop_stiffness: Annotated[Real, real("N/m", "of a loop's place", scale="log", **POSITIVE)] = 1e6
    loop_turning: Annotated[Real, real("N m", "of a loop's attitude", scale="log", **POSITIVE)] = 1e4


class Attachment(Table, kw_only=True):
    """Holds a body, springs or grains, or a region of them, on a rigid body: their particles keep the place in it that
    they have at the start.

    Both ways: the rigid body carries what hangs on it. What is held touches no rigid body. A rod whose end is held is a
    spring to that place.
    """

    kind: Annotated[str, other("choice", "how it holds", choices=ATTACHMENT_KINDS)] = "weld"
    body: Annotated[str, other("path", "name of a body, springs or grains")]
    region: Annotated[str | None, other("path", "region of the body; default: all of it")] = None
    to: Annotated[str, other("path", "rigid body, a link of an arm for instance")]
