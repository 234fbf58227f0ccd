"""What acts on springs and grains: the step, gravity, and actuators that change rest lengths or push."""

import numpy as np

from taichi_sim.actuation.actuator import ActiveLoad, SpringLoad
from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.drives import Actuators
from taichi_sim.compile.family import add
from taichi_sim.compile.particles.matter import ParticlesMatter
from taichi_sim.solvers.particles.solver import ParticlesSolver


class Steps(Binding):
    """The step, damping of all velocities, gravity."""

    def apply(self, values: Values, solver: ParticlesSolver) -> None:
        solver.store.write("step", np.stack([values["dt"], values["damping"]], axis=1))
        solver.store.write("gravity", values["gravity"])

    def pullback(self, values: Values, solver: ParticlesSolver) -> Values:
        step = solver.store.reduced_adjoint("step")
        return {"dt": step[:, 0], "damping": step[:, 1], "gravity": solver.store.reduced_adjoint("gravity")}


class RestLengths(Binding):
    """Rest lengths of actuated springs, by groups: the springs that the same set of actuators drives."""

    def __init__(self, actuators: Actuators, groups: int, driven: list[tuple[int, ...]]) -> None:
        self.actuators, self.groups, self.envs = actuators, groups, actuators.envs
        self.mine = [(a, groups_of) for a, groups_of in enumerate(driven) if groups_of]

    def apply(self, values: Values, solver: ParticlesSolver) -> None:
        out = np.zeros((len(self.actuators.times), self.envs, self.groups))
        for a, groups in self.mine:
            actuator = self.actuators.actuators[a]
            for e in range(self.envs):
                u = self.actuators.activation[e, :, a]
                strain = actuator.kind.command(actuator.parameters.at(values, e), u).strain
                for g in groups:
                    out[:, e, g] += strain
        solver.store.write("actuation", out.reshape(len(out), -1))

    def pullback(self, values: Values, solver: ParticlesSolver) -> Values:
        bar = solver.store.reduced_adjoint("actuation").reshape(-1, self.envs, self.groups)
        out: Values = {}
        for a, groups in self.mine:
            actuator = self.actuators.actuators[a]
            for e in range(self.envs):
                parameters, u = actuator.parameters.at(values, e), self.actuators.activation[e, :, a]
                load = SpringLoad(bar[:, e, list(groups)].sum(axis=1))
                gradient, u_bar = actuator.kind.command_vjp(parameters, u, load)
                actuator.parameters.collect(out, values, e, gradient)
                self.actuators.activation_bar[e, :, a] += u_bar
        return out


class Pushes(Binding):
    """Body forces: an acceleration, so a force on every point like its mass. ``driven`` (actuators) are their points,
    ``None`` where an actuator pushes none of them."""

    def __init__(self, actuators: Actuators, driven: list[np.ndarray | None], matter: ParticlesMatter) -> None:
        self.actuators, self.matter, self.envs, self.dim = actuators, matter, matter.envs, matter.dim
        self.mine = [(a, points) for a, points in enumerate(driven) if points is not None]

    def _acceleration(self, a: int, values: Values, env: int) -> np.ndarray:
        """(frames, dim) m/s²."""
        actuator = self.actuators.actuators[a]
        u = self.actuators.activation[env, :, a]
        return actuator.kind.command(actuator.parameters.at(values, env), u).acceleration

    def apply(self, values: Values, solver: ParticlesSolver) -> None:
        if not self.mine:
            return
        masses = self.matter.masses(values)
        out = np.zeros((len(self.actuators.times), self.envs, self.matter.points, self.dim))
        for a, points in self.mine:
            for e in range(self.envs):
                out[:, e, points] += self._acceleration(a, values, e)[:, None] * masses[e, points, None]
        solver.store.write("particle_force", out.reshape(len(out), -1, self.dim))

    def pullback(self, values: Values, solver: ParticlesSolver) -> Values:
        out: Values = {}
        if not self.mine:
            return out
        masses = self.matter.masses(values)
        bar = solver.store.reduced_adjoint("particle_force")
        bar = bar.reshape(-1, self.envs, self.matter.points, self.dim)
        mass_bar = np.zeros_like(masses)
        for a, points in self.mine:
            actuator = self.actuators.actuators[a]
            for e in range(self.envs):
                push = self._acceleration(a, values, e)
                mass_bar[e, points] += np.einsum("fnd,fd->n", bar[:, e, points], push)
                load = ActiveLoad.zeros(len(push), self.dim)
                load.acceleration = np.einsum("fnd,n->fd", bar[:, e, points], masses[e, points])
                parameters, u = actuator.parameters.at(values, e), self.actuators.activation[e, :, a]
                gradient, u_bar = actuator.kind.command_vjp(parameters, u, load)
                actuator.parameters.collect(out, values, e, gradient)
                self.actuators.activation_bar[e, :, a] += u_bar
        add(out, self.matter.vjp(values, mass_bar, np.zeros_like(masses)))
        return out
