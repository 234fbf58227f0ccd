"""A servo that goes for a coordinate: stiffness · (u − q) − damping · q̇, at most ``limit`` in size."""

import numpy as np

from taichi_sim.actuation.actuator import ActuatorKind, JointLoad, actuators
from taichi_sim.core.given import Values
from taichi_sim.core.registry import Parameter


def _load(p: Values, u: np.ndarray) -> JointLoad:
    load = JointLoad.zeros(u.size)
    load.target[:] = u
    load.stiffness, load.damping, load.limit = p["stiffness"], p["damping"], p["limit"]
    return load


def _load_vjp(p: Values, u: np.ndarray, bar: JointLoad) -> tuple[dict[str, np.ndarray], np.ndarray]:
    gains = {"stiffness": bar.stiffness, "damping": bar.damping, "limit": bar.limit}
    return {name: np.asarray(value) for name, value in gains.items()}, bar.target


actuators.add(
    ActuatorKind(
        name="position_motor",
        doc="servo of a joint; the activation is the coordinate it goes for, rad or m",
        parameters=(
            Parameter("stiffness", "N m, N/m", None, "torque or force per distance from the target", low=0.0),
            Parameter("damping", "N m s, N s/m", 0.0, "torque or force per velocity", low=0.0),
            Parameter("limit", "N m, N", np.inf, "the most it gives", low=0.0, low_open=True),
        ),
        load=_load,
        load_vjp=_load_vjp,
        stiffening=lambda p: 0.0,
        example=lambda dim, rng: {
            "stiffness": rng.uniform(1.0, 9.0),
            "damping": rng.uniform(0.1, 1.0),
            "limit": rng.uniform(1.0, 9.0),
        },
        drives="joint",
    )
)
