"""Matter that deforms: materials and bodies of them, springs, grains."""

from typing import Annotated, ClassVar

from taichi_sim.scene.declare import other, real
from taichi_sim.scene.tables.base import NONNEGATIVE, POSITIVE, Kinded, Profile, Real, ShapeTable, Table


class Material(Kinded, kw_only=True):
    """A constitutive law with its parameters, from a preset or given in full."""

    registry: ClassVar[str] = "law"
    preset: Annotated[str | None, other("choice", "name of a shipped material")] = None
    law: Annotated[str | None, other("choice", "name of a constitutive law")] = None
    density: Annotated[Real | None, real("kg/m³", "mass per volume at rest", scale="log", **POSITIVE)] = None


class Override(Kinded, kw_only=True):
    """A body's own version of a material: ``base`` names the material, the rest replaces its values."""

    registry: ClassVar[str] = "law"
    base: Annotated[str, other("path", "name of a material")]
    density: Annotated[Real | None, real("kg/m³", "mass per volume at rest", scale="log", **POSITIVE)] = None


class Region(Table, kw_only=True):
    """Part of a body: the particles whose rest position, before the pose, lies inside ``shape``."""

    shape: Annotated[ShapeTable, other("shape", "geometry in rest coordinates")]


class Body(Table, kw_only=True):
    """A piece of matter: where it is, what it is made of and how it moves at time 0."""

    shape: Annotated[ShapeTable, other("shape", "geometry before the pose")]
    material: Annotated[str | Override, other("path", "name of a material")]
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
