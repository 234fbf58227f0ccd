"""What drives a scene, what feels it, and what it is judged by."""

import fnmatch

import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.scene.checks.common import check_reference
from taichi_sim.scene.context import Context
from taichi_sim.scene.kinds import kinds
from taichi_sim.scene.presets import resolve_material
from taichi_sim.scene.schema import Actuator, Objective, Scene, Signal
from taichi_sim.scene.sensors import check_sensor


def check_driven(scene: Scene, context: Context) -> None:
    """References and signals of fields, actuators, sensors and objectives."""
    for name, field in scene.fields.items():
        if field.signal is not None:
            _signal(scene, context, f"fields.{name}.signal", field.signal)
    for name, actuator in scene.actuators.items():
        path = f"actuators.{name}"
        _driven_thing(scene, context, path, actuator)
        if actuator.signal is not None:
            _signal(scene, context, f"{path}.signal", actuator.signal)
        if context.ok(path, "dim"):
            try:
                load = kinds("actuator").get(actuator.kind).command(actuator.parameters, np.ones(1))
            except ValueError as error:
                context.add(path, str(error))
            else:
                if kinds("actuator").get(actuator.kind).drives == "body" and np.any(load.stress):
                    _fibres(scene, context, path, actuator)
    for name, sensor in scene.sensors.items():
        check_sensor(scene, context, f"sensors.{name}", sensor)
    for name, objective in scene.objectives.items():
        path = f"objectives.{name}"
        check_reference(scene, context, path, objective.body, objective.region)
        if context.ok(path):
            _objective(scene, context, path, objective)


def _driven_thing(scene: Scene, context: Context, path: str, actuator: Actuator) -> None:
    """An actuator drives a body or a joint, as its kind says."""
    if actuator.kind not in kinds("actuator").names():
        return
    kind = kinds("actuator").get(actuator.kind)
    drives = "joint" if kind.drives == "joint" else "body"
    given = {"body": actuator.body, "joint": actuator.joint}
    if given[drives] is None:
        if context.ok(f"{path}.{drives}"):
            context.add(f"{path}.{drives}", f"is missing: the {drives} a {actuator.kind} drives")
        return
    for other, value in given.items():
        if other != drives and value is not None:
            context.add(f"{path}.{other}", f"a {actuator.kind} drives a {drives}, not a {other}", value)
    if drives == "body":
        check_reference(scene, context, path, actuator.body, actuator.region, kind.tables)
    elif actuator.joint not in scene.joints:
        if context.ok(f"{path}.joint", f"joints.{actuator.joint}"):
            context.add(f"{path}.joint", unknown("joint", str(actuator.joint), scene.joints), actuator.joint)
    else:
        joint = scene.joints[str(actuator.joint)]
        if joint.loop or joint.kind not in ("prismatic", "hinge"):
            context.add(f"{path}.joint", f"is a {joint.kind} joint: motors drive hinges and slides", actuator.joint)
        if actuator.region is not None:
            context.add(f"{path}.region", "belongs to a body, not to a joint", actuator.region)


def _fibres(scene: Scene, context: Context, path: str, actuator: Actuator) -> None:
    """Active stress along fibres needs a body that knows where its fibres point: fluids and sand forget their shape."""
    if actuator.body not in scene.bodies or not context.ok(f"bodies.{actuator.body}", "materials"):
        return
    try:
        law = kinds("law").get(resolve_material(scene, scene.bodies[actuator.body]).law)
    except ValueError:
        return  # said elsewhere
    if law.kind != "solid":
        what = {"fluid": "a fluid", "granular": "sand"}[law.kind]
        context.add(
            f"{path}.body", f"is of {law.name}: {actuator.kind} needs a solid, {what} has no fibres", actuator.body
        )


def _signal(scene: Scene, context: Context, path: str, signal: Signal) -> None:
    """Evaluate a signal at every frame; its own ``ValueError`` becomes a problem."""
    if not context.ok(path, "duration", "frame_dt"):
        return
    try:
        kinds("signal").get(signal.kind).value(signal.parameters, scene.times)
    except ValueError as error:
        context.add(path, str(error))


def _objective(scene: Scene, context: Context, path: str, objective: Objective) -> None:
    kind = kinds("objective").get(objective.kind)
    if objective.when is not None and objective.when not in kind.allowed:
        context.add(f"{path}.when", f"{kind.name} allows {' or '.join(map(repr, kind.allowed))}", objective.when)
    try:
        kind.prepare(objective.parameters, context.folder or ".")
    except ValueError as error:
        context.cause = error.__cause__ or context.cause
        context.add(path, str(error))
    sensor = objective.parameters.get("sensor")
    if isinstance(sensor, str) and sensor not in scene.sensors and context.ok(f"sensors.{sensor}"):
        context.add(f"{path}.sensor", unknown("sensor", sensor, scene.sensors), sensor)
    driven = objective.parameters.get("actuators")
    if isinstance(driven, str) and not fnmatch.filter(scene.actuators, driven) and context.ok("actuators"):
        context.add(f"{path}.actuators", unknown("actuator", driven, scene.actuators), driven)
