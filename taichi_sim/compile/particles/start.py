"""Initial state of springs and grains from their pose and motion."""

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.family import State
from taichi_sim.scene.particles import Cluster
from taichi_sim.scene.pose import rotation_matrix, rotation_vjp, spin, spin_vjp
from taichi_sim.solvers.particles.solver import ParticlesSolver
from taichi_sim.solvers.rigid.attitude import spin_matrices, spin_matrices_vjp


class ParticlesStart(Binding):
    """``x = c + p + R (X - c)``, ``v = v0 + ω × R (X - c)`` and spin ω; points that are held do not move."""

    def __init__(self, clusters: list[Cluster], slices: list[slice], envs: int, dim: int) -> None:
        self.clusters, self.slices, self.envs, self.dim = clusters, slices, envs, dim
        self.points = slices[-1].stop
        self.held = np.concatenate([cluster.held for cluster in clusters])

    def state(self, values: Values) -> State:
        """``x, v, C, F`` (envs, points, …)."""
        shape = (self.envs, self.points, self.dim)
        x, v = np.empty(shape), np.empty(shape)
        C, F = np.zeros((*shape, self.dim)), np.broadcast_to(np.eye(self.dim), (*shape, self.dim)).copy()
        for cluster, where in zip(self.clusters, self.slices, strict=True):
            path = cluster.path
            for e in range(self.envs):
                turn = rotation_matrix(values[f"{path}.rotation"][e], self.dim)
                arm = (cluster.points - cluster.pivot) @ turn.T
                omega = values[f"{path}.angular_velocity"][e]
                x[e, where] = cluster.pivot + values[f"{path}.position"][e] + arm
                v[e, where] = values[f"{path}.velocity"][e] + spin(omega, arm)
                if cluster.touches:
                    C[e, where] = spin_matrices(np.reshape(omega, (1, -1)), self.dim)[0]
        v[:, self.held] = 0.0
        C[:, self.held] = 0.0
        return {"x": x, "v": v, "C": C, "F": F}

    def apply(self, values: Values, solver: ParticlesSolver) -> None:
        """Nothing: the state enters through the timeline's first slot."""

    def pullback(self, values: Values, solver: ParticlesSolver) -> Values:
        bars = {name: _seen(solver, f"d_{name}", self.envs, self.points) for name in ("x", "v")}
        if solver.plan.grains:
            turn = _seen(solver, "d_spin", self.envs, self.points).reshape(self.envs * self.points, -1)
            # spin_matrices_vjp(spin_matrices(w)) = 2 w: half of it stands for w itself
            bars["C"] = 0.5 * spin_matrices(turn, self.dim).reshape(self.envs, self.points, self.dim, self.dim)
        return self.vjp(values, bars)

    def vjp(self, values: Values, bars: State) -> Values:
        """Gradient by path from that by :meth:`state`."""
        out: Values = {}
        moving = ~self.held[:, None]
        for cluster, where in zip(self.clusters, self.slices, strict=True):
            path, found = cluster.path, {}
            for e in range(self.envs):
                rotation, omega = values[f"{path}.rotation"][e], values[f"{path}.angular_velocity"][e]
                arm0 = cluster.points - cluster.pivot
                arm = arm0 @ rotation_matrix(rotation, self.dim).T
                x_bar, v_bar = bars["x"][e, where], bars["v"][e, where] * moving[where]
                omega_bar, arm_bar = spin_vjp(omega, arm, v_bar)
                if cluster.touches and "C" in bars:
                    C_bar = (bars["C"][e, where] * moving[where, :, None]).sum(axis=0)
                    omega_bar = omega_bar + spin_matrices_vjp(C_bar[None], self.dim)[0].reshape(np.shape(omega_bar))
                v0 = values[f"{path}.velocity"][e]
                parts = {
                    "position": x_bar.sum(axis=0),
                    "rotation": rotation_vjp(rotation, (x_bar + arm_bar).T @ arm0, self.dim),
                    "velocity": v_bar if v0.shape == v_bar.shape else v_bar.sum(axis=0),
                    "angular_velocity": np.asarray(omega_bar),
                }
                for key, part in parts.items():
                    found.setdefault(key, []).append(part)
            for key, stack in found.items():
                out[f"{path}.{key}"] = np.stack(stack).reshape(values[f"{path}.{key}"].shape)
        return out


def _seen(solver: ParticlesSolver, name: str, envs: int, points: int) -> np.ndarray:
    return np.asarray(solver.store.view(name), np.float64).reshape(envs, points, -1)
