"""Masses and moments of inertia of rigid bodies, from density or mass, and size."""

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.scene.rigid import RigidGeometry
from taichi_sim.solvers.rigid.solver import RigidSolver


class RigidMatter(Binding):
    """``mass = density · volume · scale^dim`` unless given; ``inertia = mass · scale² · moments / volume`` likewise."""

    def __init__(self, bodies: list[RigidGeometry], envs: int) -> None:
        self.bodies, self.envs = bodies, envs
        self.dim = len(bodies[0].pivot)

    def masses(self, values: Values) -> np.ndarray:
        """(envs, bodies) kg."""
        return np.stack([self._mass(body, values) for body in self.bodies], axis=1)

    def _mass(self, body: RigidGeometry, values: Values) -> np.ndarray:
        path = f"rigid.{body.name}"
        if f"{path}.mass" in values:
            return values[f"{path}.mass"]
        return values[f"{path}.density"] * body.volume * values[f"{path}.scale"] ** self.dim

    def moments(self, values: Values) -> np.ndarray:
        """(envs, bodies, 1 or 6) kg m² about the centre of mass, in the axes of the shape."""
        out = []
        for body in self.bodies:
            path = f"rigid.{body.name}"
            if f"{path}.inertia" in values:
                out.append(values[f"{path}.inertia"].reshape(self.envs, -1))
            else:
                size = self._mass(body, values) * values[f"{path}.scale"] ** 2
                out.append(size[:, None] * body.moments / body.volume)
        return np.stack(out, axis=1)

    def apply(self, values: Values, solver: RigidSolver) -> None:
        solver.store.write("mass", self.masses(values).reshape(-1))
        solver.store.write("inertia", self.moments(values).reshape(-1, len(self.bodies[0].moments)))

    def pullback(self, values: Values, solver: RigidSolver) -> Values:
        mass_bar = solver.store.reduced_adjoint("mass").reshape(self.envs, -1)
        return self.vjp(values, mass_bar, solver.store.reduced_adjoint("inertia").reshape(*mass_bar.shape, -1))

    def vjp(self, values: Values, mass_bar: np.ndarray, moments_bar: np.ndarray) -> Values:
        """Gradient by path from those by :meth:`masses` (envs, bodies) and :meth:`moments` (envs, bodies, 1 or 6)."""
        out: Values = {}
        for b, body in enumerate(self.bodies):
            path = f"rigid.{body.name}"
            scale, mass = values[f"{path}.scale"], self._mass(body, values)
            bar, scale_bar = mass_bar[:, b].copy(), np.zeros(self.envs)
            if f"{path}.inertia" in values:
                out[f"{path}.inertia"] = moments_bar[:, b].reshape(values[f"{path}.inertia"].shape)
            else:
                along = moments_bar[:, b] @ body.moments / body.volume
                bar += along * scale**2
                scale_bar += 2.0 * along * mass * scale
            if f"{path}.mass" in values:
                out[f"{path}.mass"] = bar
            else:
                out[f"{path}.density"] = bar * body.volume * scale**self.dim
                scale_bar += bar * self.dim * mass / scale
            out[f"{path}.scale"] = scale_bar
        return out
