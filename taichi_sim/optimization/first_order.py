"""Methods that use one gradient at a time."""

import math
from collections.abc import Mapping

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.optimization.loop import Method, Objective, methods, norm
from taichi_sim.optimization.problem import Point

__all__ = ["adam", "gd"]

#: A gradient counts at most this many times what is in memory, and what is in memory at most this many times the
#: gradient: one made huge by a contact that just begins does not decide the next ten steps, and those from far off
#: (a stiffness wrong by ten gives gradients larger by decades) do not stop it on the way.
_MOST = 4.0

_STUCK = "no point on the way of the last step can be simulated"


def _adam(objective: Objective, start: Point, options: Mapping[str, float]) -> str:
    beta1, beta2 = options["beta1"], options["beta2"]
    point = start
    mean, square, root = (np.zeros_like(start.z) for _ in range(3))
    step = 0
    while True:
        step += 1
        gradient = point.gradient
        if norm(gradient) > _MOST * norm(root) > 0:
            gradient = gradient * (_MOST * norm(root) / norm(gradient))
        mean = beta1 * mean + (1 - beta1) * gradient
        square = beta2 * square + (1 - beta2) * gradient**2
        root = np.sqrt(square / (1 - beta2**step))
        if norm(root) > _MOST * norm(gradient) > 0:
            factor = _MOST * norm(gradient) / norm(root)
            mean, root, square = factor * mean, factor * root, factor**2 * square
        ahead = beta1 * mean / (1 - beta1 ** (step + 1)) + (1 - beta1) * gradient / (1 - beta1**step)
        direction = np.divide(ahead, root, out=np.zeros_like(root), where=root > 0)
        lr = options["lr"] * _fade(objective.used / objective.budget, options["fade"])
        new = objective.towards(point, point.z - lr * direction)
        if new is None:
            return _STUCK
        point = new


def _fade(spent: float, part: float) -> float:
    """Factor of the step: 1, then down a half cosine to 0.05 over the last ``part`` of the budget."""
    if spent <= 1 - part:
        return 1.0
    return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (spent - (1 - part)) / part))


adam = methods.add(
    Method(
        "adam",
        "Adam (Kingma and Ba 2015) with Nesterov's look ahead (Dozat 2016) on scaled variables: robust where the loss "
        "is rugged.",
        (
            Parameter("lr", "1", 0.1, "length of a step in each scaled variable", low=0, low_open=True),
            Parameter("beta1", "1", 0.9, "memory of the mean gradient", low=0, high=1, high_open=True),
            Parameter("beta2", "1", 0.95, "memory of the mean squared gradient", low=0, high=1, high_open=True),
            Parameter("fade", "1", 0.25, "last part of the budget over which the steps shrink", low=0, high=1),
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
