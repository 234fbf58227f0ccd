"""Actuators of robots in the words of a scene: motors of torque, position and velocity."""

from typing import Any

import numpy as np

from taichi_sim.scene.importers.robot import Actuator, Joint
from taichi_sim.scene.importers.xml import Note


def drive_table(actuator: Actuator, joint: Joint, coordinate: float, notes: list[Note]) -> dict[str, Any] | None:
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
        table: dict[str, Any] = {"kind": "motor", "strength": gain}
        return {**table, "signal": {"kind": "constant", "value": 0.0}}
    kind, scale = ("position_motor", -pull) if pull else ("velocity_motor", -brake)
    table = {"kind": kind, **({"kp": -pull} if pull else {}), "kd": -brake}
    if limit is not None:
        table["limit"] = limit
    if abs(gain - scale) > 1e-9 * scale or offset:
        note(
            "gain that differs from its bias",
            f"the signal is the target: {gain / scale:.6g} · control + {offset / scale:.6g}",
        )
    return {**table, "signal": {"kind": "constant", "value": coordinate if pull else 0.0}}


def _limit(actuator: Actuator, joint: Joint, note: Any) -> float | None:
    """The greatest force, of the actuator and of its joint."""
    limits = [] if joint.effort is None else [joint.effort]
    if actuator.lower is not None and actuator.upper is not None:
        if not np.isclose(actuator.lower, -actuator.upper, rtol=1e-9):
            note("force range that differs by direction", "the larger counts for both")
        limits.append(max(abs(actuator.lower), abs(actuator.upper)))
    return min(limits) if limits else None
