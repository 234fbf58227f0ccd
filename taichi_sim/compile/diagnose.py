"""Sentences for gradients that are exactly zero, numbers that are not finite, and differences that say nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.model import Model
from taichi_sim.objectives.objective import INPUTS

#: Entries of rigid bodies, springs and grains that only act through contact.
CONTACT_ONLY = (
    "friction", "restitution", "contact_stiffness", "contact_damping", "stiction_speed", "rolling_friction",
)  # fmt: skip


def why_zero(model: Model, solvers: Mapping[str, Any], path: str, values: Values) -> str:
    """Why the gradient by ``path`` is exactly zero, where it can be known."""
    mute = [t.name for t in model.judge.terms if t.name in model.judge.without_derivative and t.kind.name == "function"]
    if mute:
        return f"your function of objectives.{mute[0]} gave no derivative for {', '.join(INPUTS)}"
    parts = path.split(".")
    if parts[0] == "obstacles" or (parts[0] == "domain" and parts[-1] == "friction"):
        name = parts[-2]
        continuum = model.continuum
        if parts[-1] == "friction" and continuum and continuum.contacts.touched(path, solvers["continuum"]):
            return f"no sliding contact with {name!r} in this rollout"
        return f"no contact with {name!r} in this rollout"
    if parts[0] == "actuators" and len(parts) > 2:
        actuator = model.scene.actuators[parts[1]]
        if not any(t.actuators.size for t in model.judge.terms if t.kind.name == "effort") and not np.any(
            np.asarray(values.get(f"actuators.{parts[1]}.strength", 1.0))
        ):
            return f"actuator {parts[1]!r} has strength 0"
        what = f"body {actuator.body!r}" if actuator.body else f"joint {actuator.joint!r}"
        return f"nothing that counts depends on {what} there, or its signal is saturated"
    if parts[0] == "materials" and not any(
        path in body.paths for body in (model.continuum.matter.bodies if model.continuum else ())
    ):
        return f"no body is made of {parts[1]!r} with this value"
    if parts[0] in ("bodies", "rigid", "springs", "grains"):
        if parts[-1] in CONTACT_ONLY:
            return f"no contact of {parts[1]!r} in this rollout that it matters for"
        what = f"body {parts[1]!r}" if parts[0] in ("bodies", "rigid") else ".".join(parts[:2])
        return f"nothing that counts depends on {what}"
    return "no path leads from it to what is measured"


def within_rounding(what: str, ends: Sequence[np.ndarray], step: float, precision: str) -> str | None:
    """Sentence about a difference of two ``ends`` (envs, …) that keeps fewer than three digits, else ``None``."""
    envs = len(ends[0])
    difference = np.abs(ends[0] - ends[1]).reshape(envs, -1).max(axis=1, initial=0.0)
    size = np.maximum(*(np.abs(end).reshape(envs, -1).max(axis=1, initial=0.0) for end in ends))
    few = difference < 1e3 * np.finfo({"f32": np.float32, "f64": np.float64}[precision]).eps * size
    if not few.any():
        return None
    e = int(np.argmax(few))
    return (
        f"{what}: both ends of the difference are {size[e]:.3g} and differ by {difference[e]:.2g}, fewer than three "
        f"digits in {precision}: take a larger step than {step:g}"
        + (' or precision="f64"' if precision == "f32" else "")
        + "; if it does not help, there is no dependence to speak of"
    )


def not_finite(what: str, array: np.ndarray) -> str:
    """Sentence on the first entry of ``array`` (envs, …) that is not finite and the environments that have one; empty
    if there is none."""
    finite = np.isfinite(array)
    if finite.all():
        return ""
    env, *index = (int(i) for i in np.argwhere(~finite)[0])
    envs = np.flatnonzero(~finite.reshape(len(array), -1).all(axis=1))
    at = f" at {index}" if index else ""
    where = f" in environment {', '.join(map(str, envs[:8]))}{', …' if len(envs) > 8 else ''}" if len(array) > 1 else ""
    return f"{what} is not finite{where}: {array[(env, *index)]}{at}"
