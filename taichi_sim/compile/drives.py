"""Actuators and force fields: signals over frames to loads, and back."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from taichi_sim.actuation.actuator import ActiveLoad, ActuatorKind
from taichi_sim.actuation.signal import SignalKind
from taichi_sim.compile.binding import Binding, Values
from taichi_sim.solvers.mpm.solver import MpmSolver


@dataclass(frozen=True)
class Quantified:
    """Parameters of a kind: those with a gradient by path, the others as they are."""

    prefix: str
    differentiable: tuple[str, ...]
    fixed: dict[str, Any]

    def at(self, values: Values, env: int) -> dict[str, Any]:
        """All parameters in one environment."""
        return {**self.fixed, **{name: values[f"{self.prefix}.{name}"][env] for name in self.differentiable}}

    def of_all(self, values: Values) -> dict[str, Any]:
        """All parameters, those with a gradient of all environments: (envs, …)."""
        return {**self.fixed, **{name: values[f"{self.prefix}.{name}"] for name in self.differentiable}}

    def collect_all(self, out: Values, values: Values, gradient: dict[str, np.ndarray]) -> None:
        """Add gradients of all environments, each (envs, …), to ``out``."""
        for name in self.differentiable:
            path = f"{self.prefix}.{name}"
            total = out.setdefault(path, np.zeros_like(values[path]))
            if gradient.get(name) is not None:
                total += np.asarray(gradient[name]).reshape(values[path].shape)

    def collect(self, out: Values, values: Values, env: int, gradient: dict[str, np.ndarray]) -> None:
        """Add one environment's gradient to ``out``."""
        for name in self.differentiable:
            path = f"{self.prefix}.{name}"
            out.setdefault(path, np.zeros_like(values[path]))
            if name in gradient and gradient[name] is not None:
                out[path][env] += np.asarray(gradient[name]).reshape(values[path].shape[1:])


@dataclass(frozen=True)
class Driven:
    """A signal with its parameters."""

    kind: SignalKind
    parameters: Quantified


@dataclass(frozen=True)
class Actuation:
    """An actuator: its body or joint (``target``), kind, signal and the groups of particles it drives, if any."""

    name: str
    target: str
    kind: ActuatorKind
    parameters: Quantified
    signal: Driven
    groups: tuple[int, ...] = ()


class Actuators:
    """What every actuator is commanded: activations from signals, and the gradients back.

    ``activation`` (envs, frames, actuators) is what the last :meth:`evaluate` gave; whatever depends on it adds its
    gradient to ``activation_bar`` before :meth:`pullback`.
    """

    def __init__(self, actuators: list[Actuation], times: np.ndarray, envs: int) -> None:
        self.actuators, self.times, self.envs = actuators, times, envs
        self.activation = np.zeros((envs, len(times), len(actuators)))
        self.activation_bar = np.zeros_like(self.activation)

    def evaluate(self, values: Values) -> None:
        """Fill ``activation``."""
        for a, actuator in enumerate(self.actuators):
            for e in range(self.envs):
                signal = actuator.signal
                self.activation[e, :, a] = signal.kind.value(signal.parameters.at(values, e), self.times)

    def pullback(self, values: Values) -> Values:
        """Gradient of the signals' parameters from ``activation_bar``."""
        out: Values = {}
        for a, actuator in enumerate(self.actuators):
            signal = actuator.signal
            for e in range(self.envs):
                gradient = signal.kind.vjp(signal.parameters.at(values, e), self.times, self.activation_bar[e, :, a])
                signal.parameters.collect(out, values, e, gradient)
        return out


class Loads(Binding):
    """Loads of actuated groups. A group is the particles driven by the same set of actuators: loads add up."""

    def __init__(self, actuators: Actuators, groups: int, dim: int) -> None:
        self.actuators, self.groups, self.dim, self.envs = actuators, groups, dim, actuators.envs
        self.mine = [(a, one) for a, one in enumerate(actuators.actuators) if one.groups]

    def stiffness(self, values: Values, bounds: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
        """What actuators add to the stiffness of each body at most, Pa; parameters in ``bounds`` (lower, upper by path)
        are taken where they add most."""
        out: dict[str, float] = {}
        for actuator in self.actuators.actuators:
            if actuator.kind.drives not in ("body", "chamber"):
                continue
            of, most = actuator.parameters, 0.0
            free = {name: bounds[path] for name in of.differentiable if (path := f"{of.prefix}.{name}") in bounds}
            for e in range(self.envs):
                for ends in itertools.product(*free.values()):
                    extreme = dict(zip(free, ends, strict=True))
                    most = max(most, actuator.kind.stiffness({**of.at(values, e), **extreme}))
            out[actuator.target] = out.get(actuator.target, 0.0) + most
        return out

    def apply(self, values: Values, solver: MpmSolver) -> None:
        frames = len(self.actuators.times)
        stress = np.zeros((frames, self.envs, self.groups, self.dim, self.dim))
        acceleration = np.zeros((frames, self.envs, self.groups, self.dim))
        for a, actuator in self.mine:
            for e in range(self.envs):
                u = self.actuators.activation[e, :, a]
                load = actuator.kind.command(actuator.parameters.at(values, e), u)
                for g in actuator.groups:
                    stress[:, e, g] += load.stress
                    acceleration[:, e, g] += load.acceleration
        solver.store.write("active_stress", stress.reshape(frames, -1, self.dim, self.dim))
        solver.store.write("active_acceleration", acceleration.reshape(frames, -1, self.dim))

    def pullback(self, values: Values, solver: MpmSolver) -> Values:
        shape = (len(self.actuators.times), self.envs, self.groups, self.dim)
        stress = solver.store.reduced_adjoint("active_stress").reshape(*shape, self.dim)
        acceleration = solver.store.reduced_adjoint("active_acceleration").reshape(shape)
        out: Values = {}
        for a, actuator in self.mine:
            groups = list(actuator.groups)
            for e in range(self.envs):
                bar = ActiveLoad(stress[:, e, groups].sum(axis=1), acceleration[:, e, groups].sum(axis=1))
                parameters, u = actuator.parameters.at(values, e), self.actuators.activation[e, :, a]
                gradient, u_bar = actuator.kind.command_vjp(parameters, u, bar)
                actuator.parameters.collect(out, values, e, gradient)
                self.actuators.activation_bar[e, :, a] += u_bar
        return out


class Fields(Binding):
    """Gain of every force field over time."""

    def __init__(self, signals: list[Driven], times: np.ndarray, envs: int) -> None:
        self.signals, self.times, self.envs = signals, times, envs

    def apply(self, values: Values, solver: MpmSolver) -> None:
        if not self.signals:
            return
        gain = np.stack(
            [
                [signal.kind.value(signal.parameters.at(values, e), self.times) for signal in self.signals]
                for e in range(self.envs)
            ]
        )
        solver.store.write("field_gain", gain.transpose(2, 0, 1).reshape(len(self.times), -1))

    def pullback(self, values: Values, solver: MpmSolver) -> Values:
        out: Values = {}
        if not self.signals:
            return out
        bar = solver.store.reduced_adjoint("field_gain").reshape(len(self.times), self.envs, len(self.signals))
        for j, signal in enumerate(self.signals):
            for e in range(self.envs):
                gradient = signal.kind.vjp(signal.parameters.at(values, e), self.times, bar[:, e, j])
                signal.parameters.collect(out, values, e, gradient)
        return out


class Pushes(Binding):
    """External acceleration of bodies given per body, particle, or particle and frame."""

    def __init__(self, bodies: list[tuple[str, slice]], frames: int, envs: int, particles: int, dim: int) -> None:
        self.bodies, self.frames, self.envs, self.particles, self.dim = bodies, frames, envs, particles, dim

    def apply(self, values: Values, solver: MpmSolver) -> None:
        if not solver.plan.driven:
            return
        out = np.zeros((self.frames, self.envs, self.particles, self.dim))
        for path, particles in self.bodies:
            for e in range(self.envs):
                out[:, e, particles] = values[path][e]
        solver.store.write("particle_acceleration", out.reshape(self.frames, -1, self.dim))

    def pullback(self, values: Values, solver: MpmSolver) -> Values:
        out: Values = {path: np.zeros_like(values[path]) for path, _ in self.bodies}
        if not solver.plan.driven:
            return out
        bar = solver.store.reduced_adjoint("particle_acceleration")
        bar = bar.reshape(self.frames, self.envs, self.particles, self.dim)
        for path, particles in self.bodies:
            for e in range(self.envs):
                part = bar[:, e, particles]
                shape = values[path][e].shape
                while part.ndim > len(shape):
                    part = part.sum(axis=0)
                out[path][e] = part
        return out
