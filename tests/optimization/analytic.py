"""Analytic stand-ins for a simulation: what optimisation asks of one, in microseconds."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from taichi_sim.core.errors import RolloutError


@dataclass
class Design:
    path: str
    value: Any
    lower: Any = None
    upper: Any = None
    scale: str = "linear"
    spread: float = 0.0
    step: Any = None


class Analytic:
    """``function(values by path) -> (loss, gradients by path)`` dressed as a simulation; counts its calls."""

    dt, substeps, frames, n, peak_memory_mb = 1e-3, 16, 64, 100, 12.3

    def __init__(self, function, *design, pause=0.0):
        self.function, self.design, self.pause = function, list(design), pause
        self.values = {d.path: np.asarray(d.value, dtype=float) for d in design}
        self.notes: list[str] = []
        self.doubts: list[str] = []
        self.calls = 0

    def set(self, path, value):
        self.values[path] = np.asarray(value, dtype=float)

    def value_and_grad(self, of="loss", wrt=()):
        self.calls += 1
        time.sleep(self.pause)
        loss, gradients = self.function(self.values)
        return loss, {path: np.asarray(gradients[path]) for path in wrt}

    def run(self):
        self.calls += 1

    def state_hash(self):
        return "-".join(self.values[d.path].tobytes().hex() for d in self.design)


def quadratic(scale=(1.0, 10.0), start=(3.0, -2.0), **design):
    scale = np.asarray(scale)

    def function(x):
        return float(np.sum(scale * x["x"] ** 2)), {"x": 2 * scale * x["x"]}

    return Analytic(function, Design("x", start, **design))


def rosenbrock(start=(-1.2, 1.0), pause=0.0, **design):
    def function(x):
        a, b = x["x"]
        gradient = np.array([-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)])
        return float((1 - a) ** 2 + 100 * (b - a * a) ** 2), {"x": gradient}

    return Analytic(function, Design("x", start, **design), pause=pause)


def throw(rounding=0.0):
    """Squared miss of a nearly ballistic throw with a little wobble, from rest; optionally with f32-like rounding."""
    T, target = 0.3072, np.array([0.3, 0.6]) - np.array([0.258, 0.383])
    rng = np.random.default_rng(0)

    def function(x):
        v = x["v"]
        wobble = 2e-3 * np.array([np.sin(3 * v[0] + v[1]), np.cos(2 * v[1])])
        slope = 2e-3 * np.array([[3 * np.cos(3 * v[0] + v[1]), np.cos(3 * v[0] + v[1])], [0, -2 * np.sin(2 * v[1])]])
        linear = np.array([[T, 0.01], [0, T]])
        miss = linear @ v - 0.5 * 9.8 * T**2 * np.array([0, 1]) + wobble - target
        miss = miss + rounding * rng.standard_normal(2)
        gradient = 2 * (linear + slope).T @ miss
        return float(miss @ miss), {"v": gradient * (1 + rounding * rng.standard_normal(2))}

    return Analytic(function, Design("v", (0.0, 0.0)))


def stiffness(start, truth=1e4, kind="frequency", noise=0.0, seed=0):
    """Mean squared difference between a recorded deflection and that of a guessed modulus, over decades.

    ``sag``: deflection ∝ 1/E. ``frequency``: a damped swing whose frequency is ∝ √E and whose size is ∝ 1/E, so that
    far from the truth the loss is flat on one side, steep on the other, and rugged in between.
    """
    t = np.linspace(0, 1, 51)[1:]

    def swing(E):
        if kind == "sag":
            return np.full(1, 1e3 / E), np.full(1, -1e3 / E**2)
        w, size = 2 * np.pi * np.sqrt(E / 1e4), 0.05 * 1e4 / E
        q = size * (1 - np.cos(w * t) * np.exp(-t))
        return q, -q / E + size * np.sin(w * t) * np.exp(-t) * t * w / (2 * E)

    data = swing(truth)[0]
    data = data + noise * np.max(np.abs(data)) * np.random.default_rng(seed).standard_normal(data.shape)

    def function(x):
        q, rate = swing(float(x["E"]))
        return float(np.mean((q - data) ** 2)), {"E": np.array(2 * np.mean((q - data) * rate))}

    return Analytic(function, Design("E", start, scale="log"))


def rugged(n=12, seed=0):
    """A bowl with ripples whose slope is four times the bowl's: local gradients point anywhere."""
    rng = np.random.default_rng(seed)
    centre, phase = 2 * rng.standard_normal(n), 2 * np.pi * rng.random(n)

    def function(x):
        d = x["x"] - centre
        loss = np.mean(d**2) + 0.05 * np.mean(np.sin(40 * x["x"] + phase))
        return float(loss), {"x": (2 * d + 2 * np.cos(40 * x["x"] + phase)) / n}

    return Analytic(function, Design("x", np.zeros(n), spread=0.01))


def forbidden(limit=1.0, kind="gradient"):
    """A slope towards larger x, with a wall beyond which nothing can be simulated."""

    def function(x):
        value = x["x"]
        gradient = -np.exp(-value / 3)
        loss = float(np.sum(3 * np.exp(-value / 3)))
        if np.any(value > limit):
            if kind == "raise":
                raise RolloutError("step 12: particle 7 of 'torso' left the domain")
            if kind == "loss":
                loss = float("nan")
            gradient = np.where(value > limit, np.nan, gradient)
        return loss, {"x": gradient}

    return Analytic(function, Design("x", np.array([0.0, 0.5])))
