"""Springs that change their rest length: 1 + strength · u times as long. Positive activation lengthens.

Source: the mass-spring robots of DiffTaichi (Hu et al., ICLR 2020).
"""

import numpy as np

from taichi_sim.actuation.actuator import ActuatorKind, SpringLoad, actuators
from taichi_sim.core.given import Values
from taichi_sim.core.registry import Parameter


def _load(p: Values, u: np.ndarray) -> SpringLoad:
    return SpringLoad(p["strength"] * u)


def _load_vjp(p: Values, u: np.ndarray, bar: SpringLoad) -> tuple[dict[str, np.ndarray], np.ndarray]:
    return {"strength": np.asarray(np.sum(u * bar.strain))}, p["strength"] * bar.strain


actuators.add(
    ActuatorKind(
        name="spring",
        doc="rest length of the springs with both ends in the region; positive activation lengthens",
        parameters=(Parameter("strength", "1", None, "change of rest length at activation 1, in rest lengths"),),
        load=_load,
        load_vjp=_load_vjp,
        stiffening=lambda p: 0.0,
        example=lambda dim, rng: {"strength": rng.uniform(0.05, 0.3)},
        drives="springs",
        tables=("springs",),
    )
)
