"""What an audit reads of the coupling after a substep: what particles felt, from their velocities before and after."""

import numpy as np

from taichi_sim.core.reading import Act, act, lifted
from taichi_sim.solvers.coupling.sphere_stepper import Spheres
from taichi_sim.solvers.coupling.spheres import PARTICLE, POINT
from taichi_sim.solvers.coupling.stepper import Coupling
from taichi_sim.solvers.particles.solver import ParticlesSolver


class CouplingAudit:
    """Reads one substep at a time: the solvers have to be run so."""

    def __init__(self, coupling: Coupling) -> None:
        self.coupling = coupling

    def read(self, k: int, masses: np.ndarray) -> Act:
        """What bodies did to particles in the substep from slot ``k``; ``masses`` as ``MpmAudit.masses``.

        A slot of a continuum holds the velocities before contact, and the pool those after, of every particle once;
        of points, which a step goes on with, it is the other way about.
        """
        coupling, envs = self.coupling, self.coupling.plan.envs
        points = isinstance(coupling.host, ParticlesSolver)
        store = coupling.host.store
        span, record = coupling.store.view("span")[k], coupling.pool.view("record")
        at = np.concatenate([np.arange(first, first + count) for first, count in span]).astype(int)
        env = np.repeat(np.arange(envs), span[:, 1])
        once = record[at, 3] == 0
        at, env = at[once], env[once]
        p = record[at, 0]
        before = lifted(store.view("free_velocity" if points else "v")[k][p])
        after = lifted(coupling.pool.view("after")[at])
        if points:
            before, after = after, before
        impulse = masses[p][:, None] * (after - before)
        return act("rigid", env, envs, lifted(store.view("x")[k][p]), impulse, 0.5 * (before + after))


class SpheresAudit:
    """The same for what points and particles of continua did to each other."""

    def __init__(self, spheres: Spheres) -> None:
        self.spheres = spheres

    def read(self, k: int, masses: np.ndarray) -> tuple[Act, Act]:
        """What points did to particles, and particles to points; ``masses`` as ``MpmAudit.masses``."""
        s, envs = self.spheres, self.spheres.plan.envs
        pairs, pair = s.store.view("pairs")[k], s.pool.view("pair")
        at = np.concatenate([np.arange(first, first + count) for first, count in pairs]).astype(int)
        env = np.repeat(np.arange(envs), pairs[:, 1])
        acts = []
        for column, store, name, other, by in (
            (PARTICLE, s.mpm.store, "v", "particle_before", "particles"),
            (POINT, s.points.store, "free_velocity", "point_before", "continuum"),
        ):
            once = pair[at, column + 2] == 1
            who, where = pair[at[once], column], env[once]
            seen, kept = lifted(store.view(name)[k][who]), lifted(s.pool.view(other)[at[once]])
            change = kept - seen if column == PARTICLE else seen - kept
            mass = masses[who] if column == PARTICLE else np.asarray(store.view("mass"), np.float64)[who]
            x = lifted(store.view("x")[k][who])
            acts.append(act(by, where, envs, x, mass[:, None] * change, 0.5 * (seen + kept)))
        return acts[0], acts[1]
