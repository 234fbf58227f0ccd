"""How far the centre of mass has moved along a direction since time 0, m."""

import numpy as np

from taichi_sim.core.given import unit, unit_vjp
from taichi_sim.core.registry import Parameter
from taichi_sim.objectives.mean import weighted_mean
from taichi_sim.objectives.objective import Evaluation, Frame, ObjectiveKind, Values, objectives


def _rule(p: Values, frame: Frame) -> Evaluation:
    along = unit("objective 'displacement'", p["direction"])
    moved = weighted_mean(frame.position - frame.rest, frame.mass)
    by_position = moved.by_values(along)
    return Evaluation(
        np.sum(moved.value * along, axis=-1),
        position=by_position,
        rest=-by_position,
        mass=moved.by_mass(along),
        parameters={"direction": unit_vjp(p["direction"], moved.value)},
    )


objectives.add(
    ObjectiveKind(
        name="displacement",
        doc="how far the centre of mass has moved along a direction since time 0, m",
        parameters=(Parameter("direction", "1", None, "direction in space, any length", shape=("dim",)),),
        rule=_rule,
        example=lambda dim, rng: {"direction": rng.normal(size=dim)},
    )
)
