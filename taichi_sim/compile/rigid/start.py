"""Initial state of rigid bodies from their pose and motion; and the forces on them."""

import numpy as np

from taichi_sim.compile.binding import Binding, Values, per_env
from taichi_sim.compile.rigid.shapes import Shapes
from taichi_sim.scene.pose import rotation_matrix, rotation_vjp
from taichi_sim.scene.rigid import RigidGeometry
from taichi_sim.solvers.rigid.attitude import attitude, attitude_vjp
from taichi_sim.solvers.rigid.solver import RigidSolver

#: position, rotation, velocity, spin, each (envs, bodies, …), as the solver stores them.
Motion = dict[str, np.ndarray]


class RigidStart(Binding):
    """``x = pivot + p + R d`` with ``d`` the centre of mass from the pivot; attitude, velocity and spin as given."""

    def __init__(self, bodies: list[RigidGeometry], shapes: Shapes, envs: int) -> None:
        self.bodies, self.shapes, self.envs = bodies, shapes, envs
        self.dim = len(bodies[0].pivot)

    def motion(self, values: Values) -> Motion:
        """The state at time 0."""
        centres = self.shapes.centres(values)
        found: dict[str, list[np.ndarray]] = {"position": [], "rotation": [], "velocity": [], "spin": []}
        for b, body in enumerate(self.bodies):
            path = f"rigid.{body.name}"
            turn, source = values[f"{path}.rotation"], per_env(values, f"{path}.rotation", self.envs)
            turned = {e: (rotation_matrix(turn[e], self.dim), attitude(turn[e], self.dim)) for e in set(source)}
            R, q = (np.stack([turned[e][i] for e in source]) for i in range(2))
            arms = (R @ centres[:, b, :, None])[:, :, 0]
            found["position"].append(body.pivot + values[f"{path}.position"] + arms)
            found["rotation"].append(q)
            found["velocity"].append(values[f"{path}.velocity"])
            found["spin"].append(values[f"{path}.angular_velocity"].reshape(self.envs, -1))
        return {name: np.stack(parts, axis=1) for name, parts in found.items()}

    def apply(self, values: Values, solver: RigidSolver) -> None:
        """Nothing: the state enters through the timeline's first slot."""

    def pullback(self, values: Values, solver: RigidSolver) -> Values:
        shape = (self.envs, len(self.bodies), -1)
        return self.vjp(
            values,
            {
                name: np.asarray(solver.store.view(f"d_{name}"), np.float64).reshape(shape)
                for name in ("position", "rotation", "velocity", "spin")
            },
        )

    def vjp(self, values: Values, bars: Motion) -> Values:
        """Gradient by path from that by :meth:`motion`."""
        out: Values = {}
        centres = self.shapes.centres(values)
        centres_bar = np.zeros_like(centres)
        for b, body in enumerate(self.bodies):
            path = f"rigid.{body.name}"
            turn = values[f"{path}.rotation"]
            rotation_bar = np.zeros_like(turn)
            for e in range(self.envs):
                x_bar = bars["position"][e, b]
                R_bar = np.outer(x_bar, centres[e, b])
                centres_bar[e, b] = rotation_matrix(turn[e], self.dim).T @ x_bar
                rotation_bar[e] = rotation_vjp(turn[e], R_bar, self.dim) + attitude_vjp(
                    turn[e], bars["rotation"][e, b], self.dim
                )
            out[f"{path}.position"] = bars["position"][:, b].copy()
            out[f"{path}.rotation"] = rotation_bar
            out[f"{path}.velocity"] = bars["velocity"][:, b].copy()
            out[f"{path}.angular_velocity"] = bars["spin"][:, b].reshape(values[f"{path}.angular_velocity"].shape)
        self.shapes.centres_vjp(values, centres_bar, out)
        return out


class RigidLoads(Binding):
    """Gravity, the step, and what is applied to bodies: a vector, or one a frame."""

    def __init__(self, names: list[str], frames: int, envs: int) -> None:
        self.names, self.frames, self.envs = names, frames, envs

    def apply(self, values: Values, solver: RigidSolver) -> None:
        store = solver.store
        store.write("gravity", values["gravity"])
        store.write("dt", values["dt"])
        for entry in ("force", "torque"):
            out = np.zeros((self.frames, self.envs, len(self.names), store.view(entry).shape[-1]))
            for b, name in enumerate(self.names):
                out[:, :, b] = self._over_frames(values[f"rigid.{name}.{entry}"], out.shape[-1])
            store.write(entry, out.reshape(self.frames, -1, out.shape[-1]))

    def _over_frames(self, value: np.ndarray, size: int) -> np.ndarray:
        """(frames or 1, envs, size) of values (envs, size) or (envs, frames, size), a number standing for size 1."""
        rows = value.reshape(self.envs, -1, size) if self._timed(value, size) else value.reshape(self.envs, 1, size)
        return rows.transpose(1, 0, 2)

    def _timed(self, value: np.ndarray, size: int) -> bool:
        return value.ndim > (1 if size == 1 else 2)

    def pullback(self, values: Values, solver: RigidSolver) -> Values:
        store = solver.store
        out: Values = {"gravity": store.reduced_adjoint("gravity"), "dt": store.reduced_adjoint("dt")}
        for entry in ("force", "torque"):
            bar = store.reduced_adjoint(entry)
            bar = bar.reshape(self.frames, self.envs, len(self.names), -1)
            for b, name in enumerate(self.names):
                path = f"rigid.{name}.{entry}"
                part = bar[:, :, b].transpose(1, 0, 2)
                if not self._timed(values[path], part.shape[-1]):
                    part = part.sum(axis=1)
                out[path] = part.reshape(values[path].shape)
        return out
