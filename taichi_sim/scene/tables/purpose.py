"""What drives a scene, what is measured of it, what counts as good, and what may change."""

from typing import Annotated, ClassVar

from taichi_sim.scene.declare import other, real
from taichi_sim.scene.sensors import SENSORS
from taichi_sim.scene.tables.base import ANY_SHAPE, NONNEGATIVE, POSITIVE, Kinded, Real, Signal, Table


class Actuator(Kinded, kw_only=True):
    """A drive of one body or one of its regions, or of a joint, commanded by ``signal``."""

    registry: ClassVar[str] = "actuator"
    kind: Annotated[str, other("choice", "kind of actuator")]
    signal: Signal
    body: Annotated[str | None, other("path", "name of a body, springs or grains")] = None
    joint: Annotated[str | None, other("path", "name of a joint, for motors")] = None
    region: Annotated[str | None, other("path", "region of the body; default: all of it")] = None


class Sensor(Table, kw_only=True):
    """What is measured of rigid bodies and joints: the observable ``sensors.NAME.value``, for objectives too."""

    kind: Annotated[str, other("choice", "what it reads", choices=tuple(SENSORS))]
    body: Annotated[str | None, other("path", "rigid body that carries it")] = None
    marker: Annotated[str | None, other("path", "marker of the body; default: its centre of mass")] = None
    joint: Annotated[str | None, other("path", "joint it sits on")] = None
    direction: Annotated[
        Real | None, real("1", "of a ray, in the body's axes, any length", "dim", differentiable=False)
    ] = None
    range: Annotated[float, real("m", "what a ray reads where it meets nothing", differentiable=False, **POSITIVE)] = (
        10.0
    )
    point: Annotated[Real | None, real("m", "place of the world a distance is to", "dim", differentiable=False)] = None
    target: Annotated[str | None, other("path", "rigid body a distance is to")] = None
    target_marker: Annotated[str | None, other("path", "its marker; default: its centre of mass")] = None


class Objective(Kinded, kw_only=True):
    """One term of the loss: ``weight`` times what ``kind`` measures."""

    registry: ClassVar[str] = "objective"
    kind: Annotated[str, other("choice", "kind of objective")]
    body: Annotated[str | None, other("path", "name of any body, of springs or grains; default: all")] = None
    region: Annotated[str | None, other("path", "region of the body, or marker; default: all of it")] = None
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
