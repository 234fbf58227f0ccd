"""The scene format: plain mutable data, one to one with the TOML file.

A number is a ``float``; a vector or larger array is a list or a NumPy array. ``None`` means "not given": the default
applies, which :meth:`Scene.resolved` fills in. Entries of a kind (the parameters of a law, an actuator, …) live flat
in their table and are held in ``parameters``, so that a new kind needs no change here.
"""

import copy
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from taichi_sim.scene.declare import other, real
from taichi_sim.scene.sensors import SENSORS

FORMAT = 1
WALL_KINDS = ("sticky", "slip", "separate", "periodic")
OBSTACLE_KINDS = ("sticky", "slip", "separate")
JOINT_KINDS = ("hinge", "prismatic", "ball", "fixed", "free")
ATTACHMENT_KINDS = ("weld",)
AXES = "xyz"

#: A number, a (nested) list of numbers, or an array.
Real = Any
#: A geometry table: ``{"kind": "box", "lower": [...], "upper": [...]}``.
ShapeTable = Mapping[str, Any]

NONNEGATIVE = {"low": 0.0}
ANY_SHAPE = (("any",), ("any", "any"), ("any", "any", "any"))
POSITIVE = {"low": 0.0, "low_open": True}


class Table(msgspec.Struct, kw_only=True, eq=False):
    """Base of every table. Two tables are equal when they hold the same numbers, lists and arrays alike."""

    #: Registry the table's ``kind`` comes from (``""``: the table has no kinds).
    registry: ClassVar[str] = ""

    def __eq__(self, other: object) -> bool:
        from taichi_sim.scene.raw import same, to_raw

        return type(self) is type(other) and same(to_raw(self), to_raw(other))

    __hash__ = None  # type: ignore[assignment]


class _Flat(msgspec.StructMeta):
    """Lets a kind's parameters be given as keywords beside the common ones."""

    def __call__(cls, *args: Any, **given: Any) -> Any:
        fields = cls.__struct_fields__  # type: ignore[attr-defined]
        extra = {key: given.pop(key) for key in list(given) if key not in fields}
        if extra:
            given["parameters"] = {**given.get("parameters", {}), **extra}
        return super().__call__(*args, **given)


class Kinded(Table, kw_only=True, metaclass=_Flat):
    """A table with the parameters of its kind, readable and writable as attributes too."""

    parameters: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and name in self.parameters:
            return self.parameters[name]
        raise AttributeError(f"{type(self).__name__} has no entry {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__struct_fields__:
            super().__setattr__(name, value)
        else:
            self.parameters[name] = value


class Signal(Kinded, kw_only=True):
    """A number over time. ``kind`` and its parameters: see ``taichi-sim list``."""

    registry: ClassVar[str] = "signal"
    kind: Annotated[str, other("choice", "kind of signal")]


class Profile(Table, kw_only=True):
    """Piecewise linear in one rest coordinate: ``values[i]`` at ``points[i]``, constant beyond the ends."""

    axis: Annotated[str, other("choice", "rest coordinate the profile runs along", choices=("x", "y", "z"))]
    points: Annotated[Real, real("m", "rest coordinates, increasing", "any", differentiable=False)]
    values: Annotated[Real, real("", "one vector a point", "any", "dim", differentiable=False)]


class Wall(Table, kw_only=True):
    """What happens to matter at one side of the domain."""

    kind: Annotated[str, other("choice", "boundary condition", choices=WALL_KINDS)] = "separate"
    friction: Annotated[Real, real("1", "Coulomb friction coefficient of a separating wall", **NONNEGATIVE)] = 0.0


class Domain(Table, kw_only=True):
    """The box matter lives in, its walls and its grid. Walls stand exactly at ``lower`` and ``upper``.

    Through periodic sides positions go on, continuously: displacements and centres of mass do not jump, and a target is
    reached where it stands, not one period away. Obstacles act in every period.
    """

    lower: Annotated[Real, real("m", "lower corner", "dim", differentiable=False)] = 0.0
    upper: Annotated[Real, real("m", "upper corner", "dim", differentiable=False)]
    spacing: Annotated[float | None, real("m", "grid spacing", differentiable=False, **POSITIVE)] = None
    cells: Annotated[int | None, other("int", "cells along x, instead of spacing", low=1)] = None
    walls: dict[str, Wall | str] = {}

    def wall(self, name: str) -> Wall:
        """The wall called ``name``: as given, else the ``default`` one, else separating without friction."""
        found = self.walls.get(name, self.walls.get("default", Wall()))
        return Wall(kind=found) if isinstance(found, str) else found

    def step(self) -> float:
        """Grid spacing, m."""
        if self.spacing is not None:
            return float(self.spacing)
        lower = np.ravel(np.asarray(self.lower, float))[0]
        return float((np.asarray(self.upper, float)[0] - lower) / (self.cells or 1))

    def counts(self, dim: int) -> tuple[int, ...]:
        """Cells along each axis."""
        extent = vector(self.upper, dim) - vector(self.lower, dim)
        return tuple(int(n) for n in np.rint(extent / self.step()))


#: Contact-gradient policies (``solvers.rigid.softening``, which says when to use which).
CONTACT_GRADIENTS = ("exact", "event", "smoothed", "distance")


class SolverSettings(Table, kw_only=True):
    """How time and space are stepped. Nothing here needs to be given."""

    dt: Annotated[Real | None, real("s", "largest substep; default: chosen from the step limit", **POSITIVE)] = None
    max_speed: Annotated[
        float | None, real("m/s", "fastest particle expected; default |v0| + |g| T", differentiable=False, **POSITIVE)
    ] = None
    cfl: Annotated[
        float, real("1", "cells a wave may cross in a substep", differentiable=False, high=1.0, **POSITIVE)
    ] = 0.5
    sort_every: Annotated[int, other("int", "substeps between sorts of the particles", low=1)] = 10
    partitions: Annotated[int, other("int", "private grid copies (decides the bits)", low=1, high=64)] = 2
    contact_gradient: Annotated[
        str,
        other(
            "choice",
            "law of rigid contact in the backward sweep: the simulated one (exact; event: of bodies that rebound), a "
            "softer one (smoothed), or one that already pushes before touch (distance)",
            choices=CONTACT_GRADIENTS,
        ),
    ] = "exact"


class Material(Kinded, kw_only=True):
    """A constitutive law with its parameters, from a preset or given in full."""

    registry: ClassVar[str] = "law"
    preset: Annotated[str | None, other("choice", "name of a shipped material")] = None
    law: Annotated[str | None, other("choice", "name of a constitutive law")] = None
    density: Annotated[Real | None, real("kg/m³", "mass per volume at rest", scale="log", **POSITIVE)] = None


class Override(Kinded, kw_only=True):
    """A body's own version of a material: ``base`` names the material, the rest replaces its values."""

    registry: ClassVar[str] = "law"
    base: Annotated[str, other("path", "name of a material", refers="materials")]
    density: Annotated[Real | None, real("kg/m³", "mass per volume at rest", scale="log", **POSITIVE)] = None


class Region(Table, kw_only=True):
    """Part of a body: the particles whose rest position, before the pose, lies inside ``shape``."""

    shape: Annotated[ShapeTable, other("shape", "geometry in rest coordinates")]


class Body(Table, kw_only=True):
    """A piece of matter: where it is, what it is made of and how it moves at time 0."""

    shape: Annotated[ShapeTable, other("shape", "geometry before the pose")]
    material: Annotated[str | Override, other("path", "name of a material", refers="materials")]
    position: Annotated[Real, real("m", "translation added to the shape", "dim")] = 0.0
    rotation: Annotated[Real, real("rad", "turn about the shape's centre of volume", "rotation")] = 0.0
    velocity: Annotated[
        Real | Profile, real("m/s", "initial velocity", "dim", also=(("any", "dim"),), profile=True)
    ] = 0.0
    angular_velocity: Annotated[Real, real("rad/s", "initial turn about the centre", "rotation")] = 0.0
    deformation: Annotated[
        Real | Profile | None,
        real("1", "initial deformation gradient", "dim", "dim", also=(("any", "dim", "dim"),), profile=True),
    ] = None
    acceleration: Annotated[
        Real | None,
        real("m/s²", "external acceleration", "dim", also=(("any", "dim"), ("any", "any", "dim"))),
    ] = None
    seeding: Annotated[
        str | None,
        other("choice", "placement of particles; default lattice for a box", choices=("lattice", "jittered")),
    ] = None
    particles_per_cell: Annotated[
        float | None, real("1", "default 4 in 2-D, 8 in 3-D", differentiable=False, high=1000.0, **POSITIVE)
    ] = None
    color: Annotated[Real | None, real("1", "red, green, blue", 3, differentiable=False, low=0.0, high=1.0)] = None
    regions: dict[str, Region] = {}


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
    parent: Annotated[str | None, other("path", "rigid body; default: the world", refers="rigid")] = None
    child: Annotated[str, other("path", "rigid body that hangs on it", refers="rigid")]
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
    body: Annotated[str, other("path", "name of a body, springs or grains", refers="bodies")]
    region: Annotated[str | None, other("path", "region of the body; default: all of it", refers="regions")] = None
    to: Annotated[str, other("path", "rigid body, a link of an arm for instance", refers="rigid")]


class Springs(Kinded, kw_only=True):
    """A network of point masses joined by springs. ``kind`` and its entries: see ``taichi-sim list``.

    Each point has a share of the mass like the length of its springs. With ``radius`` points touch grains and points of
    other networks, and walls as balls; without one they meet walls only.
    """

    registry: ClassVar[str] = "network"
    kind: Annotated[str, other("choice", "kind of network")]
    mass: Annotated[Real, real("kg", "mass of all points together", scale="log", **POSITIVE)]
    stiffness: Annotated[Real, real("N/m", "of springs, or one a spring", also=(("any",),), scale="log", **NONNEGATIVE)]
    damping: Annotated[
        Real, real("N s/m", "of springs along themselves, or one a spring", also=(("any",),), **NONNEGATIVE)
    ] = 0.0
    rest_scale: Annotated[
        Real, real("1", "rest length over initial length, or one a spring", also=(("any",),), **NONNEGATIVE)
    ] = 1.0
    bend_stiffness: Annotated[
        Real | None, real("N m", "of bends, or one a bend; default: bends freely", also=(("any",),), **NONNEGATIVE)
    ] = None
    position: Annotated[Real, real("m", "translation", "dim")] = 0.0
    rotation: Annotated[Real, real("rad", "turn about the centre of mass", "rotation")] = 0.0
    velocity: Annotated[Real, real("m/s", "initial velocity", "dim", also=(("any", "dim"),))] = 0.0
    angular_velocity: Annotated[Real, real("rad/s", "initial turn about the centre of mass", "rotation")] = 0.0
    held: Annotated[ShapeTable | None, other("shape", "points inside, before the pose, never move")] = None
    radius: Annotated[Real | None, real("m", "of points that touch; default: points touch walls only", **POSITIVE)] = (
        None
    )
    friction: Annotated[Real, real("1", "Coulomb friction coefficient of a contact", **NONNEGATIVE)] = 0.5
    contact_stiffness: Annotated[
        Real | None, real("N/m, Pa", "of a contact, by the law of the grains", scale="log", **POSITIVE)
    ] = None
    contact_damping: Annotated[Real, real("s/m", "Hunt-Crossley damping of a contact", **NONNEGATIVE)] = 2.0
    no_contact: Annotated[
        list[str], other("text", "[bodies] and [rigid] they pass through, * for any", shape=("any",))
    ] = []
    color: Annotated[Real | None, real("1", "red, green, blue", 3, differentiable=False, low=0.0, high=1.0)] = None
    regions: dict[str, Region] = {}


class Grains(Table, kw_only=True):
    """A shape filled with grains: discs (2-D) or balls that touch, slide and roll.

    Where two touch, stiffnesses act in series; damping and frictions are the mean of both. At a wall stiffness, damping
    and rolling friction are the grain's, friction is the wall's (sticky: never slides, slip: none).
    """

    shape: Annotated[ShapeTable, other("shape", "geometry before the pose; grains lie wholly inside")]
    radius: Annotated[Real, real("m", "of the grains", scale="log", **POSITIVE)]
    radius_spread: Annotated[
        float,
        real("1", "radii are (1 - spread) … (1 + spread) times as large", differentiable=False, low=0.0, high=0.9),
    ] = 0.0
    packing: Annotated[
        str, other("choice", "places: rows, or each at a random place of its cell", choices=("lattice", "jittered"))
    ] = "jittered"
    density: Annotated[Real, real("kg/m³", "mass per volume of a grain", scale="log", **POSITIVE)]
    law: Annotated[
        str, other("choice", "force of a contact: stiffness times depth, or Hertz's", choices=("linear", "hertz"))
    ] = "linear"
    contact_stiffness: Annotated[
        Real, real("N/m, Pa", "linear: of one side; hertz: E / (1 - ν²)", scale="log", **POSITIVE)
    ]
    contact_damping: Annotated[Real, real("s/m", "Hunt-Crossley damping of a contact", **NONNEGATIVE)] = 2.0
    friction: Annotated[Real, real("1", "Coulomb friction coefficient", **NONNEGATIVE)] = 0.5
    rolling_friction: Annotated[
        Real | None, real("1", "holds back rolling and twisting, as a friction; default: rolls freely", **NONNEGATIVE)
    ] = None
    position: Annotated[Real, real("m", "translation added to the shape", "dim")] = 0.0
    rotation: Annotated[Real, real("rad", "turn about the centre of mass", "rotation")] = 0.0
    velocity: Annotated[Real, real("m/s", "initial velocity", "dim", also=(("any", "dim"),))] = 0.0
    angular_velocity: Annotated[Real, real("rad/s", "initial turn about the centre of mass", "rotation")] = 0.0
    no_contact: Annotated[
        list[str], other("text", "[bodies] and [rigid] they pass through, * for any", shape=("any",))
    ] = []
    color: Annotated[Real | None, real("1", "red, green, blue", 3, differentiable=False, low=0.0, high=1.0)] = None
    regions: dict[str, Region] = {}


class Obstacle(Table, kw_only=True):
    """A fixed shape matter cannot enter."""

    shape: Annotated[ShapeTable, other("shape", "geometry before the pose")]
    kind: Annotated[str, other("choice", "boundary condition", choices=OBSTACLE_KINDS)] = "separate"
    friction: Annotated[Real, real("1", "Coulomb friction coefficient", **NONNEGATIVE)] = 0.0
    position: Annotated[Real, real("m", "translation added to the shape", "dim")] = 0.0
    rotation: Annotated[
        Real, real("rad", "turn about the shape's centre of volume", "rotation", differentiable=False)
    ] = 0.0
    color: Annotated[Real | None, real("1", "red, green, blue", 3, differentiable=False, low=0.0, high=1.0)] = None


class Field(Kinded, kw_only=True):
    """An acceleration field besides gravity, scaled by ``signal`` (default: constant 1)."""

    registry: ClassVar[str] = "field"
    kind: Annotated[str, other("choice", "kind of field")]
    signal: Signal | None = None


class Actuator(Kinded, kw_only=True):
    """A drive of one body or one of its regions, or of a joint, commanded by ``signal``."""

    registry: ClassVar[str] = "actuator"
    kind: Annotated[str, other("choice", "kind of actuator")]
    signal: Signal
    body: Annotated[str | None, other("path", "name of a body, springs or grains", refers="bodies")] = None
    joint: Annotated[str | None, other("path", "name of a joint, for motors", refers="joints")] = None
    region: Annotated[str | None, other("path", "region of the body; default: all of it", refers="regions")] = None


class Sensor(Table, kw_only=True):
    """What is measured of rigid bodies and joints: the observable ``sensors.NAME.value``, for objectives too."""

    kind: Annotated[str, other("choice", "what it reads", choices=tuple(SENSORS))]
    body: Annotated[str | None, other("path", "rigid body that carries it", refers="rigid")] = None
    marker: Annotated[str | None, other("path", "marker of the body; default: its centre of mass")] = None
    joint: Annotated[str | None, other("path", "joint it sits on", refers="joints")] = None
    direction: Annotated[
        Real | None, real("1", "of a ray, in the body's axes, any length", "dim", differentiable=False)
    ] = None
    range: Annotated[float, real("m", "what a ray reads where it meets nothing", differentiable=False, **POSITIVE)] = (
        10.0
    )
    point: Annotated[Real | None, real("m", "place of the world a distance is to", "dim", differentiable=False)] = None
    target: Annotated[str | None, other("path", "rigid body a distance is to", refers="rigid")] = None
    target_marker: Annotated[str | None, other("path", "its marker; default: its centre of mass")] = None


class Objective(Kinded, kw_only=True):
    """One term of the loss: ``weight`` times what ``kind`` measures."""

    registry: ClassVar[str] = "objective"
    kind: Annotated[str, other("choice", "kind of objective")]
    body: Annotated[
        str | None, other("path", "name of a body, rigid or not, of springs or grains; default: all", refers="bodies")
    ] = None
    region: Annotated[
        str | None, other("path", "region of the body, or marker; default: all of it", refers="regions")
    ] = None
    weight: Annotated[float, real("1", "factor in the loss; negative rewards", differentiable=False)] = 1.0
    when: Annotated[
        str | None,
        other("choice", "at the last frame, or summed over frames times frame_dt", choices=("final", "running")),
    ] = None


class Design(Table, kw_only=True):
    """A quantity an optimiser may change, by path; ``*`` stands for any name."""

    path: Annotated[str, other("text", "path of a differentiable quantity")]
    lower: Annotated[Real | None, real("", "lower bound", also=ANY_SHAPE, differentiable=False)] = None
    upper: Annotated[Real | None, real("", "upper bound", also=ANY_SHAPE, differentiable=False)] = None
    scale: Annotated[str | None, other("choice", "scale it is varied on", choices=("linear", "log"))] = None
    spread: Annotated[
        float, real("", "optimisation starts from value + spread N(0, 1)", differentiable=False, **NONNEGATIVE)
    ] = 0.0
    step: Annotated[
        float | None, real("", "size of one unit of the scaled variable", differentiable=False, **POSITIVE)
    ] = None


class Camera(Table, kw_only=True):
    """Where the picture is taken from; anything left out is chosen to show the domain."""

    position: Annotated[Real | None, real("m", "eye (3-D)", 3, differentiable=False)] = None
    target: Annotated[Real | None, real("m", "point looked at (3-D)", 3, differentiable=False)] = None
    up: Annotated[Real | None, real("1", "upward direction (3-D)", 3, differentiable=False)] = None
    fov: Annotated[
        float | None, real("deg", "vertical field of view (3-D)", differentiable=False, high=170.0, **POSITIVE)
    ] = None
    center: Annotated[Real | None, real("m", "middle of the picture (2-D)", 2, differentiable=False)] = None
    height: Annotated[float | None, real("m", "height of the picture (2-D)", differentiable=False, **POSITIVE)] = None


class Scene(Table, kw_only=True):
    """Everything a rollout needs. See the shipped ``scenes/*.toml`` for examples of every table."""

    dim: Annotated[int, other("choice", "number of axes; 2 is plane strain, a metre deep", choices=(2, 3))]
    duration: Annotated[float, real("s", "length of the rollout", differentiable=False, **POSITIVE)]
    domain: Domain
    frame_dt: Annotated[
        float, real("s", "time between frames: control, data and video", differentiable=False, **POSITIVE)
    ] = 0.01
    name: Annotated[str | None, other("text", "shown in results; default: the file's stem")] = None
    gravity: Annotated[Real | None, real("m/s²", "default -9.81 along the last axis", "dim")] = None
    damping: Annotated[Real, real("1/s", "velocity damping of bodies, springs and grains", **NONNEGATIVE)] = 0.0
    solver: SolverSettings = msgspec.field(default_factory=SolverSettings)
    materials: dict[str, Material] = {}
    bodies: dict[str, Body] = {}
    rigid: dict[str, Rigid] = {}
    joints: dict[str, Joint] = {}
    attachments: dict[str, Attachment] = {}
    springs: dict[str, Springs] = {}
    grains: dict[str, Grains] = {}
    obstacles: dict[str, Obstacle] = {}
    fields: dict[str, Field] = {}
    actuators: dict[str, Actuator] = {}
    sensors: dict[str, Sensor] = {}
    objectives: dict[str, Objective] = {}
    design: list[Design] = []
    camera: Camera = msgspec.field(default_factory=Camera)
    #: File the scene was read from; not part of what it is (equality and files leave it out).
    source: str | None = None

    @property
    def title(self) -> str:
        """The scene's name, else the stem of its file, else ``"scene"``."""
        return self.name or (Path(self.source).stem if self.source else "scene")

    @property
    def folder(self) -> Path | None:
        """Where relative file names start: beside the file the scene was read from; None: the working folder."""
        return Path(self.source).parent if self.source else None

    @property
    def frames(self) -> int:
        """Number of frames of the rollout."""
        return round(float(self.duration) / float(self.frame_dt))

    @property
    def times(self) -> np.ndarray:
        """Start of each control interval, s, shape (frames,)."""
        return np.arange(self.frames) * float(self.frame_dt)

    @classmethod
    def load(cls, scene: "str | PathLike[str]") -> "Scene":
        """Read a scene from a TOML file or by the name of a shipped one.

        Raises :class:`~taichi_sim.core.errors.SceneError` listing every mistake of the file.
        """
        from taichi_sim.scene.load import load

        return load(scene)

    def save(self, path: "str | PathLike[str]") -> str:
        """Write the scene as TOML (large arrays beside it as .npy), atomically; returns the path.

        Raises :class:`~taichi_sim.core.errors.SceneError` for what a file cannot hold, such as a local function.
        """
        from taichi_sim.scene.save import save

        return save(self, path)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> "Scene":
        """The scene described by nested tables as in the TOML file; raises ``SceneError`` listing every mistake."""
        from taichi_sim.scene.load import from_dict

        return from_dict(table)

    @classmethod
    def from_urdf(cls, path: "str | PathLike[str]", **options: Any) -> "Scene":
        """A scene around the robot in a URDF file: ``options`` are those of ``scene.importers.scene.scene_of``.

        Raises ``ValueError`` in one line for a file that is no robot. What was not understood, ``taichi-sim import``
        says, and ``scene.importers.read_robot(path).report()``.
        """
        from taichi_sim.scene.importers import read_robot
        from taichi_sim.scene.importers.scene import scene_of

        return scene_of(read_robot(path), **options)[0]

    @classmethod
    def from_mjcf(cls, path: "str | PathLike[str]", **options: Any) -> "Scene":
        """A scene around the robot in an MJCF file; see :meth:`from_urdf`."""
        return cls.from_urdf(path, **options)

    def to_dict(self) -> dict[str, Any]:
        """Nested tables as in the TOML file, without entries that hold their default."""
        from taichi_sim.scene.raw import to_raw

        return to_raw(self)

    def check(self) -> None:
        """Raise ``SceneError`` listing every mistake of the scene; do nothing if there is none."""
        from taichi_sim.scene.load import from_dict

        from_dict(self.to_dict(), self.source)

    def actuate(self, activation: np.ndarray) -> None:
        """Drive the actuators, in their order, by given numbers: ``activation`` of shape (frames, actuators).

        Replaces their signals. Raises ``ValueError`` for another shape or numbers that are not finite.
        """
        from taichi_sim.scene.edit import actuate

        actuate(self, activation)

    def resolved(self) -> "Scene":
        """A checked copy with every default filled in and every number a float64 array of its full shape."""
        from taichi_sim.scene.resolve import resolve

        return resolve(self)

    def copy(self) -> "Scene":
        """An independent copy."""
        return copy.deepcopy(self)


def vector(value: Real, dim: int) -> np.ndarray:
    """``value`` as a new float64 array (dim,); a scalar stands for every component."""
    return np.broadcast_to(np.asarray(value, np.float64), (dim,)).copy()


def wall_names(dim: int) -> list[str]:
    """``x_lower, x_upper, y_lower, …`` of a domain."""
    return [f"{axis}_{side}" for axis in AXES[:dim] for side in ("lower", "upper")]
