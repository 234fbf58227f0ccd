"""Masses and radii of points and grains."""

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.scene.particles import Cluster
from taichi_sim.solvers.particles.solver import ParticlesSolver


class ParticlesMatter(Binding):
    """Points: a share of the network's mass; grains: ``density · volume``. Radii: the entry's times a grain's size."""

    def __init__(self, clusters: list[Cluster], slices: list[slice], envs: int, dim: int) -> None:
        self.clusters, self.slices, self.envs, self.dim = clusters, slices, envs, dim
        self.points = slices[-1].stop

    def masses(self, values: Values) -> np.ndarray:
        """(envs, points) kg."""
        out = np.empty((self.envs, self.points))
        for cluster, where in zip(self.clusters, self.slices, strict=True):
            out[:, where] = self._whole(cluster, values)[:, None] * cluster.share
        return out

    def _whole(self, cluster: Cluster, values: Values) -> np.ndarray:
        """(envs,) what the shares are of."""
        if cluster.network is not None:
            return values[f"{cluster.path}.mass"]
        return values[f"{cluster.path}.density"] * values[f"{cluster.path}.radius"] ** self.dim

    def radii(self, values: Values) -> np.ndarray:
        """(envs, points) m; 0 for points that meet walls only."""
        out = np.zeros((self.envs, self.points))
        for cluster, where in zip(self.clusters, self.slices, strict=True):
            if cluster.touches:
                out[:, where] = values[f"{cluster.path}.radius"][:, None] * cluster.size
        return out

    def inertias(self, values: Values) -> np.ndarray | None:
        """(envs, points, 3, 3) kg m² of solid balls (2-D: discs, about z); ``None`` where nothing has a radius."""
        if not any(cluster.touches for cluster in self.clusters):
            return None
        moment = self._moment() * self.masses(values) * self.radii(values) ** 2
        return moment[:, :, None, None] * self._axes()

    def _moment(self) -> float:
        return 0.5 if self.dim == 2 else 0.4

    def _axes(self) -> np.ndarray:
        return np.diag([0.0, 0.0, 1.0]) if self.dim == 2 else np.eye(3)

    def apply(self, values: Values, solver: ParticlesSolver) -> None:
        solver.store.write("mass", self.masses(values).reshape(-1))
        solver.store.write("radius", self.radii(values).reshape(-1))

    def pullback(self, values: Values, solver: ParticlesSolver) -> Values:
        shape = (self.envs, self.points)
        mass_bar = solver.store.reduced_adjoint("mass").reshape(shape)
        return self.vjp(values, mass_bar, solver.store.reduced_adjoint("radius").reshape(shape))

    def vjp(
        self, values: Values, mass_bar: np.ndarray, radius_bar: np.ndarray, inertia_bar: np.ndarray | None = None
    ) -> Values:
        """Gradient by path from those by :meth:`masses`, :meth:`radii` (envs, points) and :meth:`inertias`."""
        if inertia_bar is not None:
            along = self._moment() * np.einsum("enij,ij->en", inertia_bar, self._axes())
            mass, radius = self.masses(values), self.radii(values)
            mass_bar = mass_bar + along * radius**2
            radius_bar = radius_bar + 2.0 * along * mass * radius
        out: Values = {}
        for cluster, where in zip(self.clusters, self.slices, strict=True):
            path = cluster.path
            whole_bar = np.sum(mass_bar[:, where] * cluster.share, axis=1)
            if cluster.touches:
                out[f"{path}.radius"] = np.sum(radius_bar[:, where] * cluster.size, axis=1)
            if cluster.network is not None:
                out[f"{path}.mass"] = whole_bar
                continue
            density, radius = values[f"{path}.density"], values[f"{path}.radius"]
            out[f"{path}.density"] = whole_bar * radius**self.dim
            out[f"{path}.radius"] += whole_bar * self.dim * density * radius ** (self.dim - 1)
        return out
