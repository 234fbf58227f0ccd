"""What happens where two surfaces touch: the law's coefficients, from those of both."""

from collections.abc import Sequence

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.rigid.shapes import Pair, Wall
from taichi_sim.solvers.rigid.solver import RigidSolver

#: Entries of a rigid body, and the arrays of the solver they are for.
ENTRIES = {
    "friction": "friction",
    "contact_stiffness": "stiffness",
    "contact_damping": "damping",
    "stiction_speed": "stiction",
    "restitution": "restitution",
}


def harmonic(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Harmonic mean ``2ab/(a + b)`` (0 where either is 0) and its derivatives by ``a`` and ``b``."""
    total = np.maximum(a + b, 1e-300)
    return 2.0 * a * b / total, 2.0 * (b / total) ** 2, 2.0 * (a / total) ** 2


class Surfaces(Binding):
    """Fills friction, restitution, stiffness, damping and stiction of every pair that may touch."""

    def __init__(self, names: Sequence[str], pairs: Sequence[Pair], walls: list[Wall], envs: int) -> None:
        self.names, self.pairs, self.walls, self.envs = names, pairs, walls, envs

    def _sides(self, entry: str, pair: Pair, values: Values) -> tuple[str, str | None, bool]:
        """Path of A's value, that of B's (``None``: A's alone counts), and whether it is 0 anyway."""
        own = f"rigid.{self.names[pair.a]}.{entry}"
        if pair.b >= 0:
            return own, f"rigid.{self.names[pair.b]}.{entry}", False
        wall = self.walls[pair.wall]
        return own, wall.friction if entry == "friction" else None, entry == "friction" and wall.slippery

    def apply(self, values: Values, solver: RigidSolver) -> None:
        if not self.pairs:
            return
        for entry, array in ENTRIES.items():
            if array not in solver.store:
                continue
            rows = np.zeros((self.envs, len(self.pairs)))
            for i, pair in enumerate(self.pairs):
                own, other, nothing = self._sides(entry, pair, values)
                if not nothing:
                    rows[:, i] = values[own] if other is None else harmonic(values[own], values[other])[0]
            solver.store.write(array, rows.reshape(-1))

    def pullback(self, values: Values, solver: RigidSolver) -> Values:
        out: Values = {}
        if not self.pairs:
            return out
        for entry, array in ENTRIES.items():
            if array not in solver.store:
                continue
            bar = solver.store.reduced_adjoint(array).reshape(self.envs, -1)
            for i, pair in enumerate(self.pairs):
                own, other, nothing = self._sides(entry, pair, values)
                if nothing:
                    continue
                if other is None:
                    parts = {own: bar[:, i]}
                else:
                    _, by_a, by_b = harmonic(values[own], values[other])
                    parts = {own: by_a * bar[:, i], other: by_b * bar[:, i]}
                for path, part in parts.items():
                    out[path] = out.get(path, 0.0) + part
        return out
