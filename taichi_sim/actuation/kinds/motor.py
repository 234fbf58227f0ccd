"""A motor that gives a torque (or a force, at a slide): strength · u."""

import numpy as np

from taichi_sim.actuation.actuator import ActuatorKind, JointLoad, actuators
from taichi_sim.core.given import Values
from taichi_sim.core.registry import Parameter


def _load(p: Values, u: np.ndarray) -> JointLoad:
    load = JointLoad.zeros(u.size)
    load.force[:] = p["strength"] * u
    return load


def _load_vjp(p: Values, u: np.ndarray, bar: JointLoad) -> tuple[dict[str, np.ndarray], np.ndarray]:
    return {"strength": np.asarray(np.sum(bar.force * u))}, p["strength"] * bar.force


actuators.add(
    ActuatorKind(
        name="motor",
        doc="torque of a hinge, or force of a slide",
        parameters=(Parameter("strength", "N m, N", 1.0, "torque or force at activation 1"),),
        load=_load,
        load_vjp=_load_vjp,
        stiffening=lambda p: 0.0,
        example=lambda dim, rng: {"strength": rng.uniform(1.0, 9.0)},
        drives="joint",
    )
)
