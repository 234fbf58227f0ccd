"""A pneumatic chamber: air in a closed cavity, commanded by its pressure or by its mass.

The pressure acts on the boundary as it is now, so a chamber that swells is pushed on a larger area. By mass, air is an
ideal gas that keeps its temperature, p V = m R T with the volume the cavity has: at the start it is full of ambient
air, which is neither over nor under pressure; what is added or taken out, and what squeezes it, changes the pressure.
"""

import numpy as np

from taichi_sim.actuation.actuator import ActuatorKind, ChamberLoad, actuators
from taichi_sim.core.given import Values
from taichi_sim.core.registry import Parameter


def _load(p: Values, u: np.ndarray) -> ChamberLoad:
    nothing, command = np.zeros(u.size), p["strength"] * u
    if p["command"] == "pressure":
        return ChamberLoad(command, nothing)
    return ChamberLoad(nothing, p["gas_constant"] * p["temperature"] * command, p["ambient"])


def _load_vjp(p: Values, u: np.ndarray, bar: ChamberLoad) -> tuple[dict[str, np.ndarray], np.ndarray]:
    gradient = {name: np.zeros(()) for name in ("strength", "temperature", "gas_constant", "ambient")}
    if p["command"] == "pressure":
        gradient["strength"] = np.asarray(np.sum(bar.pressure * u))
        return gradient, p["strength"] * bar.pressure
    along, R, T = np.sum(bar.air * u), p["gas_constant"], p["temperature"]
    gradient = {
        "strength": np.asarray(R * T * along),
        "temperature": np.asarray(R * p["strength"] * along),
        "gas_constant": np.asarray(T * p["strength"] * along),
        "ambient": np.asarray(bar.ambient),
    }
    return gradient, R * T * p["strength"] * bar.air


actuators.add(
    ActuatorKind(
        name="chamber",
        doc="air in a closed cavity: a hole cut out of a body, or closed springs; positive activation inflates",
        parameters=(
            Parameter("strength", "Pa, kg", None, "pressure above ambient, or air added, at activation 1"),
            Parameter(
                "command", "", "pressure", "what is commanded (2-D: mass of a metre of depth)", kind="choice",
                choices=("pressure", "mass"), differentiable=False,
            ),
            Parameter(
                "hole", "", 0, "in [bodies]: which of the shapes cut out (remove of a difference) it is, from 0",
                kind="int", low=0.0, differentiable=False,
            ),
            Parameter("ambient", "Pa", 101325.0, "by mass: pressure outside, and inside at the start", low=0.0),
            Parameter("temperature", "K", 293.15, "by mass: of the air, which keeps it", low=0.0, low_open=True),
            Parameter("gas_constant", "J/(kg K)", 287.05, "by mass: of the gas; dry air", low=0.0, low_open=True),
        ),
        load=_load,
        load_vjp=_load_vjp,
        stiffening=lambda p: abs(float(p["strength"])) if p["command"] == "pressure" else float(p["ambient"]),
        example=lambda dim, rng: {
            "command": str(rng.choice(["pressure", "mass"])),
            "strength": rng.uniform(1.0, 9.0),
            "ambient": rng.uniform(1.0, 9.0),
            "temperature": rng.uniform(1.0, 9.0),
            "gas_constant": rng.uniform(1.0, 9.0),
        },
        drives="chamber",
        tables=("bodies", "springs"),
    )
)  # fmt: skip
