"""Actuators of robots in the words of a scene: motors of torque, position and velocity."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from taichi_sim.scene.importers.robot import Actuator, Joint, RobotDescription
from taichi_sim.scene.importers.xml import Note

Table = dict[str, Any]


def driven(
    robot: RobotDescription, at: Mapping[str, np.ndarray], notes: list[Note]
) -> Iterator[tuple[str, str, Table]]:
    """Name, joint and table of the actuators of a robot whose joints stand ``at`` the start."""
    joints = {joint.name: joint for joint in robot.joints}
    for actuator in robot.actuators:
        joint = joints[actuator.joint]
        table = _table(actuator, joint, float(at[joint.name][0]), notes)
        if table is not None:
            yield actuator.name, joint.name, table


def given_drives(
    robot: RobotDescription, at: Mapping[str, np.ndarray], drive: Mapping[str, Any] | None
) -> Iterator[tuple[str, Table]]:
    """``drive`` for every hinge and slide that nothing drives: limited by the joint's effort, holding its place."""
    taken = {actuator.joint for actuator in robot.actuators}
    for joint in robot.joints if drive is not None else ():
        if joint.kind not in ("hinge", "prismatic") or joint.name in taken or drive is None:
            continue
        table = dict(drive)
        if joint.effort is not None and table.get("kind") != "motor":
            table.setdefault("limit", joint.effort)
        table.setdefault("signal", _still(at[joint.name][0] if table.get("kind") == "position_motor" else 0.0))
        yield joint.name, table


def _still(value: float) -> Table:
    return {"kind": "constant", "value": float(value)}


def _table(actuator: Actuator, joint: Joint, coordinate: float, notes: list[Note]) -> Table | None:
    """The scene's actuator for gain · u + b₀ + b₁ q + b₂ q̇: a position motor if it pulls back, a velocity motor if it
    only brakes, else a motor; its signal holds the initial ``coordinate``. ``None`` (and a note) if it pushes away."""

    def note(what: str, instead: str) -> None:
        notes.append(Note(f"{what} of actuator {actuator.name!r}", actuator.where, instead))

    gain, (offset, pull, brake) = actuator.gain, actuator.bias
    if pull > 0 or brake > 0:
        note("bias that drives away", "left out")
        return None
    limit = _limit(actuator, joint, note)
    if pull == 0 and brake == 0:
        if offset:
            note("constant bias", "not read")
        if limit is not None:
            note("force limit", f"not read; keep the signal within ±{limit / max(abs(gain), 1e-300):.4g}")
        return {"kind": "motor", "strength": gain, "signal": _still(0.0)}
    scale = -pull if pull else -brake
    table: Table = {"kind": "position_motor", "stiffness": -pull} if pull else {"kind": "velocity_motor"}
    table["damping"] = -brake
    if limit is not None:
        table["limit"] = limit
    if abs(gain - scale) > 1e-9 * scale or offset:
        target = f"{gain / scale:.6g} · control + {offset / scale:.6g}"
        note("gain that differs from its bias", f"the signal is the target: {target}")
    return {**table, "signal": _still(coordinate if pull else 0.0)}


def _limit(actuator: Actuator, joint: Joint, note: Any) -> float | None:
    """The greatest force, of the actuator and of its joint."""
    limits = [] if joint.effort is None else [joint.effort]
    if actuator.lower is not None and actuator.upper is not None:
        if not np.isclose(actuator.lower, -actuator.upper, rtol=1e-9):
            note("force range that differs by direction", "the larger counts for both")
        limits.append(max(abs(actuator.lower), abs(actuator.upper)))
    return min(limits) if limits else None
