"""Component of the centre of mass along a direction, m."""

import numpy as np

from taichi_sim.core.given import unit, unit_vjp
from taichi_sim.core.registry import Parameter
from taichi_sim.objectives.mean import weighted_mean
from taichi_sim.objectives.objective import Evaluation, Frame, ObjectiveKind, Values, objectives


def _rule(p: Values, frame: Frame) -> Evaluation:
    along = unit("objective 'position'", p["direction"])
    centre = weighted_mean(frame.position, frame.mass)
    return Evaluation(
        np.sum(centre.value * along, axis=-1),
        position=centre.by_values(along),
        mass=centre.by_mass(along),
        parameters={"direction": unit_vjp(p["direction"], centre.value)},
    )


objectives.add(
    ObjectiveKind(
        name="position",
        doc="component of the centre of mass along a direction, m",
        parameters=(Parameter("direction", "1", None, "direction in space, any length", shape=("dim",)),),
        rule=_rule,
        example=lambda dim, rng: {"direction": rng.normal(size=dim)},
    )
)
