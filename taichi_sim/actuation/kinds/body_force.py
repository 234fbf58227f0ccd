"""A body force: the same acceleration for every particle of the region, strength · u · d.

As for a muscle, only the direction of ``direction`` counts; the size is ``strength``.
"""

import numpy as np

from taichi_sim.actuation.actuator import ActiveLoad, ActuatorKind, actuators
from taichi_sim.core.given import Values, unit, unit_vjp
from taichi_sim.core.registry import Parameter


def _load(p: Values, u: np.ndarray) -> ActiveLoad:
    d = unit("actuator 'body_force'", p["direction"])
    load = ActiveLoad.zeros(u.size, d.size)
    load.acceleration[:] = (p["strength"] * u)[:, None] * d
    return load


def _load_vjp(p: Values, u: np.ndarray, bar: ActiveLoad) -> tuple[dict[str, np.ndarray], np.ndarray]:
    d = unit("actuator 'body_force'", p["direction"])
    along = np.einsum("fi,i->f", bar.acceleration, d)
    d_bar = p["strength"] * np.einsum("f,fi->i", u, bar.acceleration)
    gradient = {"strength": np.asarray(np.sum(u * along)), "direction": unit_vjp(p["direction"], d_bar)}
    return gradient, p["strength"] * along


actuators.add(
    ActuatorKind(
        name="body_force",
        doc="the same acceleration for every particle of the region",
        parameters=(
            Parameter("direction", "1", None, "direction in space, any length", shape=("dim",)),
            Parameter("strength", "m/s²", None, "acceleration at activation 1"),
        ),
        load=_load,
        load_vjp=_load_vjp,
        stiffening=lambda p: 0.0,
        example=lambda dim, rng: {"direction": rng.normal(size=dim), "strength": rng.uniform(1.0, 9.0)},
        tables=("bodies", "springs", "grains"),
    )
)
