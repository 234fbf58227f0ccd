"""Effort: mean squared activation of the objective's actuators; summed over the rollout, its integral over time."""

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.objectives.objective import Evaluation, Frame, ObjectiveKind, Values, objectives


def _rule(p: Values, frame: Frame) -> Evaluation:
    count = frame.activation.shape[-1]
    if count == 0:
        raise ValueError(f"objective 'effort': no actuator matches actuators = {p['actuators']!r}")
    return Evaluation(np.mean(frame.activation**2, axis=-1), activation=2.0 * frame.activation / count)


objectives.add(
    ObjectiveKind(
        name="effort",
        doc="mean squared activation; its integral over the rollout",
        parameters=(Parameter("actuators", "", "*", "names of those it counts, * allowed", kind="path"),),
        rule=_rule,
        example=lambda dim, rng: {},
        default_when="running",
        allowed=("running",),
        blind=True,
    )
)
