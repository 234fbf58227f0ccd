"""Robots of a scene: each ``[robots.NAME]`` becomes rigid bodies, joints and actuators ``NAME_…`` as it is read."""

from collections.abc import Mapping
from typing import Annotated, Any

from taichi_sim.core.errors import SceneError
from taichi_sim.scene.context import Context
from taichi_sim.scene.declare import other, real
from taichi_sim.scene.schema import NONNEGATIVE, Real, Table


class Robot(Table, kw_only=True):
    """A robot from a URDF or MJCF file. Its links and joints are ``NAME_LINK`` and ``NAME_JOINT`` from then on."""

    file: Annotated[str, other("file", "URDF or MJCF file, beside the scene")]
    position: Annotated[Real, real("m", "of the file's origin", 3, differentiable=False)] = 0.0
    rotation: Annotated[Real, real("rad", "rotation vector about the file's origin", 3, differentiable=False)] = 0.0
    fixed_base: Annotated[
        bool | None, other("flag", "whether the root is fixed to the world; default: as the file says")
    ] = None
    stiffness: Annotated[
        float | None, real("N m, N/m", "gives every joint the file does not drive a servo", differentiable=False)
    ] = None
    damping: Annotated[float, real("N m s, N s/m", "of these servos", differentiable=False, **NONNEGATIVE)] = 0.0


def expanded(table: Mapping[str, Any], context: Context) -> Mapping[str, Any]:
    """``table`` with the parts of its robots in the place of ``robots``; problems are added to ``context``.

    Beside the entries of :class:`Robot` a robot may have ``pose``: coordinates at the start by name of the joint.
    """
    robots = table.get("robots")
    if robots is None:
        return table
    rest = {key: value for key, value in table.items() if key != "robots"}
    if not isinstance(robots, Mapping):
        context.add("robots", "must hold one table a name ([robots.NAME])", robots)
        return rest
    from taichi_sim.scene.importers import read_robot
    from taichi_sim.scene.importers.tables import robot_scene
    from taichi_sim.scene.reader import read_table

    if table.get("dim") != 3:
        context.add("robots", "are for dim = 3")
        return rest
    for name, entry in robots.items():
        path = f"robots.{name}"
        pose = entry.get("pose", {}) if isinstance(entry, Mapping) else {}
        given = {k: v for k, v in entry.items() if k != "pose"} if isinstance(entry, Mapping) else entry
        robot = read_table(Robot, given, path, context)
        if robot is None or not context.ok(path):
            continue
        drive = None
        if robot.stiffness is not None:
            drive = {"kind": "position_motor", "stiffness": robot.stiffness, "damping": robot.damping}
        try:
            made = robot_scene(
                read_robot(robot.file), name, position=_three(robot.position), rotation=_three(robot.rotation),
                fixed_base=robot.fixed_base, joints=pose or None, drive=drive, separator="_",
            ).tables  # fmt: skip
        except SceneError as error:
            for problem in error.problems:  # those of its file name a line of that file, not a path of the scene
                context.add(f"{path}.file", problem.line(error.file))
            continue
        except ValueError as error:
            context.add(path, str(error))
            continue
        for key, parts in made.items():
            there = dict(rest.get(key) or {})
            for part, value in parts.items():
                if part in there and key == "actuators":  # the scene says how a joint is driven
                    continue
                if part in there:
                    context.add(f"{key}.{part}", f"is the name of a part of {path} too; choose another one")
                there[part] = value
            rest[key] = there
    return rest


def _three(value: Any) -> Any:
    return (0.0, 0.0, 0.0) if value == 0.0 else value


def plain(path: str) -> str:
    """What ``robots.NAME.links.LINK.…`` and ``robots.NAME.joints.JOINT.…`` stand for; other paths as they are."""
    parts = path.split(".")
    tables = {"links": "rigid", "joints": "joints", "actuators": "actuators"}
    if parts[0] == "robots" and len(parts) > 3 and parts[2] in tables:
        return ".".join([tables[parts[2]], f"{parts[1]}_{parts[3]}", *parts[4:]])
    return path
