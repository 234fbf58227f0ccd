"""A scene's first frames, computed exactly as in the whole scene."""

from typing import TYPE_CHECKING

import numpy as np

from taichi_sim.scene.schema import Signal

if TYPE_CHECKING:
    from taichi_sim.compile.model import Model
    from taichi_sim.scene.schema import Scene


def shortened(scene: "Scene", model: "Model", frames: int) -> "Scene":
    """``scene`` cut to its first ``frames``; ``model`` is the whole scene compiled, whose step stays."""
    frame_dt = float(model.scene.frame_dt)
    if frames >= model.scene.frames:
        return scene
    short = scene.copy()
    short.duration = frames * frame_dt
    short.solver.dt = frame_dt / model.substeps
    if np.isfinite(model.limit.max_speed):
        short.solver.max_speed = model.limit.max_speed
    for whole, cut in ((model.scene.actuators, short.actuators), (model.scene.fields, short.fields)):
        for name, entry in cut.items():
            signal = whole[name].signal
            if entry.signal is not None and signal is not None and signal.kind == "array":
                values = np.asarray(signal.parameters["values"])
                entry.signal = Signal(kind="array", parameters={**entry.signal.parameters, "values": values[:frames]})
                entry.signal.parameters.pop("file", None)
                entry.signal.parameters.pop("column", None)
    for body in short.bodies.values():
        if body.acceleration is not None and np.ndim(body.acceleration) == 3:
            body.acceleration = np.asarray(body.acceleration)[:frames]
    return short
