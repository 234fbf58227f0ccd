"""Springs and bends: stiffness, damping and rest length of each."""

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.scene.particles import Cluster
from taichi_sim.solvers.particles.solver import ParticlesSolver

#: Entries of springs, and their column of the solver's ``spring``.
COLUMNS = {"stiffness": 0, "damping": 1, "rest_scale": 2}


class SpringsBinding(Binding):
    """One row a spring: stiffness, damping, and rest length ``rest_scale`` times the initial one."""

    def __init__(self, clusters: list[Cluster], envs: int) -> None:
        self.clusters = [cluster for cluster in clusters if len(cluster.edges)]
        self.envs = envs
        self.count = sum(len(cluster.edges) for cluster in clusters)
        self.bends = sum(len(cluster.bends) for cluster in clusters)

    def springs(self, values: Values) -> np.ndarray:
        """(envs, springs, 3): N/m, N s/m, m."""
        out = np.empty((self.envs, self.count, 3))
        at = 0
        for cluster in self.clusters:
            rows = slice(at, at := at + len(cluster.edges))
            for key, column in COLUMNS.items():
                out[:, rows, column] = self._each(values[f"{cluster.path}.{key}"])
            out[:, rows, 2] *= _lengths(cluster)
        return out

    def stiff_bends(self, values: Values) -> np.ndarray:
        """(envs, bends) N m."""
        out = np.empty((self.envs, self.bends))
        at = 0
        for cluster in self.clusters:
            if len(cluster.bends):
                rows = slice(at, at := at + len(cluster.bends))
                out[:, rows] = self._each(values[f"{cluster.path}.bend_stiffness"])
        return out

    def _each(self, value: np.ndarray) -> np.ndarray:
        """(envs, 1) or (envs, springs)."""
        return value.reshape(self.envs, -1)

    def apply(self, values: Values, solver: ParticlesSolver) -> None:
        if self.count:
            solver.store.write("spring", self.springs(values).reshape(-1, 3))
        if self.bends:
            solver.store.write("bend_stiffness", self.stiff_bends(values).reshape(-1))

    def pullback(self, values: Values, solver: ParticlesSolver) -> Values:
        out: Values = {}
        if not self.count:
            return out
        bar = solver.store.reduced_adjoint("spring").reshape(self.envs, self.count, 3)
        at = 0
        for cluster in self.clusters:
            rows = slice(at, at := at + len(cluster.edges))
            for key, column in COLUMNS.items():
                part = bar[:, rows, column] * (_lengths(cluster) if key == "rest_scale" else 1.0)
                out[f"{cluster.path}.{key}"] = _like(part, values[f"{cluster.path}.{key}"])
        if self.bends:
            at, bar = 0, solver.store.reduced_adjoint("bend_stiffness").reshape(self.envs, self.bends)
            for cluster in self.clusters:
                if len(cluster.bends):
                    path = f"{cluster.path}.bend_stiffness"
                    rows = slice(at, at := at + len(cluster.bends))
                    out[path] = _like(bar[:, rows], values[path])
        return out


def _lengths(cluster: Cluster) -> np.ndarray:
    assert cluster.network is not None
    return cluster.network.rest_lengths


def _like(bar: np.ndarray, value: np.ndarray) -> np.ndarray:
    """(envs, springs) or their sum, as the value is given."""
    return bar if value.ndim == 2 else bar.sum(axis=1)
