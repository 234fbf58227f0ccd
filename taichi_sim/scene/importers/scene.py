"""A scene around one robot: what ``taichi-sim import`` writes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.scene.importers.robot import Pose, RobotDescription, forward
from taichi_sim.scene.importers.tables import Vector, robot_scene
from taichi_sim.scene.schema import Scene

#: Room around the robot, m.
ROOM = 1.0


def scene_of(
    robot: RobotDescription,
    folder: Path | None = None,
    name: str = "robot",
    fixed_base: bool | None = None,
    drive: Mapping[str, Any] | None = None,
    joints: Mapping[str, Any] | None = None,
    position: Vector = (0.0, 0.0, 0.0),
    rotation: Vector = (0.0, 0.0, 0.0),
) -> tuple[Scene, str]:
    """A scene with the robot where its file puts it, moved as a whole by ``rotation`` (rotation vector, rad) and
    ``position`` (m), the shapes of the file's world, its gravity, and room around; and what was not understood, a line
    each.

    ``folder`` is where the scene will be saved (default: files are named by their full path). The other arguments are
    those of ``robot_scene``. Raises ``SceneError`` or ``ValueError`` listing every mistake.
    """
    made = robot_scene(
        robot, name, position, rotation, fixed_base, joints, drive, world=True, folder=folder, separator="_"
    )
    places = np.array([pose.position for pose in forward(robot, joints, Pose.of(position, rotation)).values()])
    table: dict[str, Any] = {"format": 1, "name": robot.name, "dim": 3, "duration": 1.0, "frame_dt": 0.01}
    table["domain"] = {
        "lower": (np.floor(places.min(axis=0)) - ROOM).tolist(),
        "upper": (np.ceil(places.max(axis=0)) + ROOM).tolist(),
    }
    if robot.gravity is not None:
        table["gravity"] = robot.gravity.tolist()
    lines = [note.line() for note in (*robot.notes, *made.notes)]
    scene = Scene.from_dict({**table, **made.tables})
    return scene, "\n".join(lines)
