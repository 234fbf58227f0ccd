"""Gravity, damping and the substep."""

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.solvers.mpm.solver import MpmSolver


class Scalars(Binding):
    """``gravity`` (envs, dim), ``dt`` and ``damping`` (envs,)."""

    def apply(self, values: Values, solver: MpmSolver) -> None:
        solver.store.write("gravity", values["gravity"])
        solver.store.write("step", np.stack([values["dt"], values["damping"]], axis=1))

    def pullback(self, values: Values, solver: MpmSolver) -> Values:
        step = solver.store.reduced_adjoint("step")
        return {"gravity": solver.store.reduced_adjoint("gravity"), "dt": step[:, 0], "damping": step[:, 1]}
