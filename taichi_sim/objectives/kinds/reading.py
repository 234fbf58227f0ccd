"""What a sensor reads: mean squared difference from what it should read, in the unit of the sensor, squared."""

import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.core.registry import Parameter
from taichi_sim.objectives.objective import Evaluation, Frame, ObjectiveKind, Values, objectives

_WHAT = "objective 'reading'"


def _rule(p: Values, frame: Frame) -> Evaluation:
    if p["sensor"] not in frame.sensors:
        raise ValueError(f"{_WHAT}: {unknown('sensor', p['sensor'], frame.sensors)}")
    read, target, front = frame.sensors[p["sensor"]], p["target"], len(frame.lead)
    numbers = read.shape[front:]
    if (own := target.shape[front:]) and own != numbers:
        raise ValueError(f"{_WHAT}: sensor {p['sensor']!r} reads numbers of shape {numbers}, target {own}")
    off = read - (target if own else target.reshape(*frame.lead, *(1 for _ in numbers)))
    axes = tuple(range(front, read.ndim))
    bar = 2.0 * off / int(np.prod(numbers, dtype=int))
    by_target = -bar if own else -np.sum(bar, axis=axes)
    return Evaluation(np.mean(off**2, axis=axes), sensors={p["sensor"]: bar}, parameters={"target": by_target})


objectives.add(
    ObjectiveKind(
        name="reading",
        doc="mean squared difference of what a sensor reads from a target",
        parameters=(
            Parameter("sensor", "", None, "name of the sensor", kind="path"),
            Parameter("target", "", 0.0, "what it should read: a number, or one for each it reads", shape=("any",)),
        ),
        rule=_rule,
        example=lambda dim, rng: {"sensor": "probe", "target": rng.normal(size=3)},
        default_when="running",
        senses=lambda p: p["sensor"],
    )
)
