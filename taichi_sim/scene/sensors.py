"""Sensors of a scene: what each kind needs, and what must hold between its entries."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.scene.context import Context

if TYPE_CHECKING:
    from taichi_sim.scene.schema import Scene, Sensor


@dataclass(frozen=True)
class SensorKind:
    """What a kind of sensor reads: entries it ``needs``, those it ``takes`` besides."""

    doc: str
    needs: tuple[str, ...] = ("body",)
    takes: tuple[str, ...] = ("marker",)


SENSORS: dict[str, SensorKind] = {
    "pose": SensorKind("position, then the first dim - 1 columns of the rotation matrix"),
    "velocity": SensorKind("velocity, then angular velocity, world axes"),
    "imu": SensorKind("specific force, then angular velocity, body axes"),
    "joint": SensorKind("coordinate, rate and torque of a hinge or a slide", ("joint",), ()),
    "contact_force": SensorKind("sum of the contact forces on a body, world axes", takes=()),
    "marker": SensorKind("position of a marker", ("body", "marker"), ()),
    "distance": SensorKind(
        "to the nearest surface along direction, or to a point or another body",
        takes=("marker", "direction", "range", "point", "target", "target_marker"),
    ),
}


def check_sensor(scene: "Scene", context: Context, path: str, sensor: "Sensor") -> None:
    """Report what is wrong with a sensor."""
    if sensor.kind not in SENSORS:
        return
    kind = SENSORS[sensor.kind]
    for entry in ("body", "joint", "marker", "direction", "point", "target", "target_marker"):
        given = getattr(sensor, entry) is not None
        if not given and entry in kind.needs and context.ok(f"{path}.{entry}"):
            context.add(f"{path}.{entry}", f"is missing: a {sensor.kind} sensor needs it")
        elif given and entry not in kind.needs + kind.takes:
            context.add(f"{path}.{entry}", f"a {sensor.kind} sensor has none", getattr(sensor, entry))
    _carried(scene, context, path, "body", sensor.body, "marker", sensor.marker)
    _carried(scene, context, path, "target", sensor.target, "target_marker", sensor.target_marker)
    if sensor.joint is not None and sensor.joint not in scene.joints:
        if context.ok(f"{path}.joint", f"joints.{sensor.joint}"):
            context.add(f"{path}.joint", unknown("joint", sensor.joint, scene.joints), sensor.joint)
    elif sensor.joint is not None:
        joint = scene.joints[sensor.joint]
        if joint.loop or not (joint.kind in ("hinge", "prismatic") or (joint.kind == "ball" and scene.dim == 2)):
            context.add(f"{path}.joint", f"is a {joint.kind} joint: it takes a hinge or a slide", sensor.joint)
    if sensor.kind == "contact_force" and sensor.body in scene.rigid and scene.rigid[sensor.body].fixed:
        context.add(f"{path}.body", "is fixed: nothing moves it; see observe('contacts')", sensor.body)
    if sensor.kind == "distance" and context.ok(path):
        given = [entry for entry in ("direction", "point", "target") if getattr(sensor, entry) is not None]
        if len(given) != 1:
            context.add(path, "give exactly one of direction (along a ray), point (m) and target (a body)")
        elif sensor.direction is not None and not np.any(sensor.direction):
            context.add(f"{path}.direction", "must not be zero", sensor.direction)


def _carried(
    scene: "Scene", context: Context, path: str, entry: str, body: str | None, part: str, marker: str | None
) -> None:
    """A rigid body, and one of its markers."""
    if body is None:
        if marker is not None and context.ok(path):
            context.add(f"{path}.{part}", f"needs a {entry}", marker)
        return
    if body not in scene.rigid:
        if context.ok(f"{path}.{entry}", f"rigid.{body}"):
            context.add(f"{path}.{entry}", unknown("rigid body", body, scene.rigid), body)
    elif marker is not None and marker not in scene.rigid[body].markers:
        if context.ok(f"{path}.{part}", f"rigid.{body}.markers"):
            markers = scene.rigid[body].markers
            context.add(f"{path}.{part}", unknown(f"marker of rigid body {body!r},", marker, markers), marker)
