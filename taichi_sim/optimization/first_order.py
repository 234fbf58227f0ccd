"""Methods that use one gradient at a time."""

from collections.abc import Mapping

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.optimization.loop import Method, Objective, methods, norm
from taichi_sim.optimization.problem import Point

__all__ = ["adam", "gd"]

_STUCK = "no point on the way of the last step can be simulated"


def _adam(objective: Objective, start: Point, options: Mapping[str, float]) -> str:
    lr, beta1, beta2 = options["lr"], options["beta1"], options["beta2"]
    point = start
    mean, square = np.zeros_like(start.z), np.zeros_like(start.z)
    step = 0
    while True:
        step += 1
        mean = beta1 * mean + (1 - beta1) * point.gradient
        square = beta2 * square + (1 - beta2) * point.gradient**2
        root = np.sqrt(square / (1 - beta2**step))
        direction = np.divide(mean / (1 - beta1**step), root, out=np.zeros_like(root), where=root > 0)
        new = objective.towards(point, point.z - lr * direction)
        if new is None:
            return _STUCK
        point = new


adam = methods.add(
    Method(
        "adam",
        "Adam (Kingma and Ba 2015) on scaled variables: robust where the loss is rugged.",
        (
            Parameter("lr", "1", 0.1, "length of a step in each scaled variable", low=0, low_open=True),
            Parameter("beta1", "1", 0.9, "memory of the mean gradient", low=0, high=1, high_open=True),
            Parameter("beta2", "1", 0.999, "memory of the mean squared gradient", low=0, high=1, high_open=True),
        ),
        _adam,
    )
)


def _gd(objective: Objective, start: Point, options: Mapping[str, float]) -> str:
    point = start
    length = options["lr"] * np.sqrt(start.z.size) / (norm(start.gradient) or 1.0)
    shortest = 1e-12 * np.sqrt(start.z.size)
    while True:
        target = np.clip(point.z - length * point.gradient, objective.lower, objective.upper)
        move = target - point.z
        if norm(move) <= shortest:
            return "converged: no step gains anything"
        new = objective(target)
        if not new.bad and new.loss <= point.loss + 1e-4 * float(np.sum(point.gradient * move)):
            point, length = new, 2 * length
        else:
            length *= 0.5


gd = methods.add(
    Method(
        "gd",
        "Gradient descent with a backtracking line search; every trial counts as an evaluation.",
        (Parameter("lr", "1", 0.1, "root mean square of the first trial step", low=0, low_open=True),),
        _gd,
    )
)
