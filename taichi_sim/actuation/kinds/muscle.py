"""A muscle: active stress along a fibre direction of the undeformed body, S = strength · u · d ⊗ d.

Positive activation pulls along the fibre (the region shortens). Source: the actuation of DiffTaichi's MPM robots
(Hu et al., ICLR 2020), F A Fᵀ in the Kirchhoff stress with A = strength · u · d ⊗ d.
"""

import numpy as np

from taichi_sim.actuation.actuator import ActiveLoad, ActuatorKind, actuators
from taichi_sim.core.given import Values, unit, unit_vjp
from taichi_sim.core.registry import Parameter


def _load(p: Values, u: np.ndarray) -> ActiveLoad:
    d = unit("actuator 'muscle'", p["direction"])
    load = ActiveLoad.zeros(u.size, d.size)
    load.stress[:] = (p["strength"] * u)[:, None, None] * np.outer(d, d)
    return load


def _load_vjp(p: Values, u: np.ndarray, bar: ActiveLoad) -> tuple[dict[str, np.ndarray], np.ndarray]:
    d = unit("actuator 'muscle'", p["direction"])
    along = np.einsum("fij,i,j->f", bar.stress, d, d)
    total = p["strength"] * np.einsum("f,fij->ij", u, bar.stress)
    d_bar = np.einsum("ij,j->i", total + total.T, d)
    gradient = {"strength": np.asarray(np.sum(u * along)), "direction": unit_vjp(p["direction"], d_bar)}
    return gradient, p["strength"] * along


actuators.add(
    ActuatorKind(
        name="muscle",
        doc="active stress along a fibre direction; positive activation shortens the region",
        parameters=(
            Parameter("direction", "1", None, "fibre direction in the undeformed body, any length", shape=("dim",)),
            Parameter("strength", "Pa", None, "active stress at activation 1"),
        ),
        load=_load,
        load_vjp=_load_vjp,
        stiffening=lambda p: abs(float(p["strength"])),
        example=lambda dim, rng: {"direction": rng.normal(size=dim), "strength": rng.uniform(1.0, 9.0)},
    )
)
