"""A servo that goes for a velocity: damping · (u − q̇), at most ``limit`` in size."""

import numpy as np

from taichi_sim.actuation.actuator import ActuatorKind, JointLoad, actuators
from taichi_sim.core.given import Values
from taichi_sim.core.registry import Parameter


def _load(p: Values, u: np.ndarray) -> JointLoad:
    load = JointLoad.zeros(u.size)
    load.rate[:] = u
    load.damping, load.limit = p["damping"], p["limit"]
    return load


def _load_vjp(p: Values, u: np.ndarray, bar: JointLoad) -> tuple[dict[str, np.ndarray], np.ndarray]:
    return {"damping": np.asarray(bar.damping), "limit": np.asarray(bar.limit)}, bar.rate


actuators.add(
    ActuatorKind(
        name="velocity_motor",
        doc="servo of a joint; the activation is the velocity it goes for, rad/s or m/s",
        parameters=(
            Parameter("damping", "N m s, N s/m", None, "torque or force per difference of velocity", low=0.0),
            Parameter("limit", "N m, N", np.inf, "the most it gives", low=0.0, low_open=True),
        ),
        load=_load,
        load_vjp=_load_vjp,
        stiffening=lambda p: 0.0,
        example=lambda dim, rng: {"damping": rng.uniform(0.1, 1.0), "limit": rng.uniform(1.0, 9.0)},
        drives="joint",
    )
)
