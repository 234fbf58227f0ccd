"""A tendon: a cable through points of soft bodies or springs and fixed ones, pulled at its first point.

By tension the cable gives what is commanded. By length it is a spring that does not push: it is reeled in by
strength · u and pulls by what its way is longer than that leaves. Where it turns friction takes its share of the
tension, exp(−μ θ) for an angle θ (capstan equation), on the way from the pulled end.
"""

import numpy as np

from taichi_sim.actuation.actuator import ActuatorKind, TendonLoad, actuators
from taichi_sim.core.given import Values
from taichi_sim.core.registry import Parameter


def _load(p: Values, u: np.ndarray) -> TendonLoad:
    nothing, command = np.zeros(u.size), p["strength"] * u
    if p["command"] == "tension":
        return TendonLoad(command, nothing, friction=p["friction"])
    return TendonLoad(nothing, command, p["stiffness"], p["slack"], p["friction"])


def _load_vjp(p: Values, u: np.ndarray, bar: TendonLoad) -> tuple[dict[str, np.ndarray], np.ndarray]:
    by_tension = p["command"] == "tension"
    along = bar.tension if by_tension else bar.shortening
    gradient = {
        "strength": np.asarray(np.sum(along * u)),
        "friction": np.asarray(bar.friction),
        "stiffness": np.zeros(()) if by_tension else np.asarray(bar.stiffness),
        "slack": np.zeros(()) if by_tension else np.asarray(bar.slack),
        "points": np.zeros(p["points"].shape),  # where it runs is not its load
    }
    return gradient, p["strength"] * along


actuators.add(
    ActuatorKind(
        name="tendon",
        doc="a cable through points, pulled at the first; positive activation pulls",
        parameters=(
            Parameter("points", "m", None, "places it runs through, before the pose", shape=("any", "dim")),
            Parameter(
                "through", "", (), "what each point goes with: a body, springs (their nearest point), or \"world\"; "
                "default: the body", shape=("any",), kind="text", differentiable=False,
            ),
            Parameter("strength", "N, m", None, "tension, or cable reeled in, at activation 1"),
            Parameter(
                "command", "", "tension", "what is commanded", kind="choice", choices=("tension", "length"),
                differentiable=False,
            ),
            Parameter("friction", "1", 0.0, "coefficient at the points where it turns", low=0.0),
            Parameter("stiffness", "N/m", 1e3, "by length: of the cable", low=0.0, low_open=True, scale="log"),
            Parameter("slack", "m", 0.0, "by length: how much longer the cable is than its way at the start"),
        ),
        load=_load,
        load_vjp=_load_vjp,
        stiffening=lambda p: 0.0,
        example=lambda dim, rng: {
            "points": rng.normal(size=(3, dim)),
            "command": str(rng.choice(["tension", "length"])),
            "strength": rng.uniform(1.0, 9.0),
            "friction": rng.uniform(0.1, 0.9),
            "stiffness": rng.uniform(1.0, 9.0),
            "slack": rng.uniform(0.1, 0.9),
        },
        drives="tendon",
        tables=("bodies", "springs"),
    )
)  # fmt: skip
