"""The domain with its walls and obstacles, fields of force, how all is stepped, and where it is seen from."""

from typing import Annotated, ClassVar

import numpy as np

from taichi_sim.scene.declare import other, real
from taichi_sim.scene.tables.base import NONNEGATIVE, POSITIVE, Kinded, Real, ShapeTable, Signal, Table, vector

WALL_KINDS = ("sticky", "slip", "separate", "periodic")
OBSTACLE_KINDS = ("sticky", "slip", "separate")
AXES = "xyz"


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


def wall_names(dim: int) -> list[str]:
    """``x_lower, x_upper, y_lower, …`` of a domain."""
    return [f"{axis}_{side}" for axis in AXES[:dim] for side in ("lower", "upper")]


#: Contact-gradient policies: laws of contact in the backward sweep (``solvers.rigid.softening``), and the mean over
#: nearby starts (``optimization.randomised``). Each says when to use it.
CONTACT_GRADIENTS = ("exact", "event", "smoothed", "distance", "randomised")


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
            "softer one (smoothed), or one that already pushes before touch (distance); randomised: optimize takes the "
            "mean over nearby starts",
            choices=CONTACT_GRADIENTS,
        ),
    ] = "exact"
    gradient_samples: Annotated[int, other("int", "nearby starts of contact_gradient = 'randomised'", low=2)] = 16
    gradient_sigma: Annotated[
        float,
        real(
            "1",
            "standard deviation of these starts, in units of the design variables",
            differentiable=False,
            **POSITIVE,
        ),
    ] = 0.1


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
