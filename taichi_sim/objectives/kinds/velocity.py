"""Component of the mean velocity (momentum over mass) along a direction, m/s."""

import numpy as np

from taichi_sim.core.given import unit, unit_vjp
from taichi_sim.core.registry import Parameter
from taichi_sim.objectives.mean import weighted_mean
from taichi_sim.objectives.objective import Evaluation, Frame, ObjectiveKind, Values, objectives


def _rule(p: Values, frame: Frame) -> Evaluation:
    along = unit("objective 'velocity'", p["direction"])
    mean = weighted_mean(frame.velocity, frame.mass)
    return Evaluation(
        np.sum(mean.value * along, axis=-1),
        velocity=mean.by_values(along),
        mass=mean.by_mass(along),
        parameters={"direction": unit_vjp(p["direction"], mean.value)},
    )


objectives.add(
    ObjectiveKind(
        name="velocity",
        doc="component of the mean velocity along a direction, m/s",
        parameters=(Parameter("direction", "1", None, "direction in space, any length", shape=("dim",)),),
        rule=_rule,
        example=lambda dim, rng: {"direction": rng.normal(size=dim)},
    )
)
