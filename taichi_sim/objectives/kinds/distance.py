"""Distance of the centre of mass to a point, m, or its square, m².

The distance has a kink where the centre is on the target; the derivative used there is 0.
"""

import numpy as np

from taichi_sim.core.given import length
from taichi_sim.core.registry import Parameter
from taichi_sim.objectives.mean import weighted_mean
from taichi_sim.objectives.objective import Evaluation, Frame, ObjectiveKind, Values, objectives


def _rule(p: Values, frame: Frame) -> Evaluation:
    centre = weighted_mean(frame.position, frame.mass)
    offset = centre.value - p["target"]
    if p["squared"]:
        value, by_centre = np.sum(offset * offset, axis=-1), 2.0 * offset
    else:
        value = length(offset)
        by_centre = offset / np.where(value > 0.0, value, 1.0)[..., None]
    return Evaluation(
        value,
        position=centre.by_values(by_centre),
        mass=centre.by_mass(by_centre),
        parameters={"target": -by_centre},
    )


objectives.add(
    ObjectiveKind(
        name="distance",
        doc="distance of the centre of mass to a point, m, or its square; periodic sides do not fold it",
        parameters=(
            Parameter("target", "m", None, "the point", shape=("dim",)),
            Parameter("squared", "", False, "square the distance (m²): smooth at the target", kind="flag"),
        ),
        rule=_rule,
        example=lambda dim, rng: {"target": rng.normal(size=dim), "squared": bool(rng.integers(2))},
    )
)
