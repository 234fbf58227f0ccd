"""What an audit reads of the coupling after a substep: what particles felt, from their velocities before and after."""

import numpy as np

from taichi_sim.core.reading import Act, act, lifted
from taichi_sim.solvers.coupling.stepper import Coupling


class CouplingAudit:
    """Reads one substep at a time: the solvers have to be run so."""

    def __init__(self, coupling: Coupling) -> None:
        self.coupling = coupling

    def read(self, k: int, masses: np.ndarray) -> Act:
        """What bodies did to particles in the substep from slot ``k``; ``masses`` as ``MpmAudit.masses``.

        A slot holds the velocities before contact, and the pool those after, of every particle once.
        """
        coupling, envs = self.coupling, self.coupling.plan.envs
        mpm = coupling.mpm.store
        span, record = coupling.store.view("span")[k], coupling.pool.view("record")
        at = np.concatenate([np.arange(first, first + count) for first, count in span]).astype(int)
        env = np.repeat(np.arange(envs), span[:, 1])
        once = record[at, 3] == 0
        at, env = at[once], env[once]
        p = record[at, 0]
        before = lifted(mpm.view("v")[k][p])
        after = lifted(coupling.pool.view("after")[at])
        impulse = masses[p][:, None] * (after - before)
        return act("rigid", env, envs, lifted(mpm.view("x")[k][p]), impulse, 0.5 * (before + after))
