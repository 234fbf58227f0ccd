"""Attachments: the particles they hold, and the places in the rigid bodies they hold them at."""

import fnmatch
from collections.abc import Mapping

import numpy as np

from taichi_sim.compile.family import Piece, State
from taichi_sim.scene.schema import Scene
from taichi_sim.solvers.coupling.colliders import Colliders
from taichi_sim.solvers.coupling.stepper import Coupling


class Attachments:
    """Particles on rigid bodies: places in the axes of the rigid body from its centre of mass, as the start has them.

    ``centres`` are the points that the centres of mass of rigid bodies are among all points of the scene, ``points``
    those of the family whose attachments these are.
    """

    def __init__(
        self, scene: Scene, pieces: Mapping[str, Piece], names: list[str], centres: np.ndarray, points: slice
    ) -> None:
        self.held: list[tuple[np.ndarray, int]] = []
        self.first = points.start
        taken: dict[int, str] = {}
        for name, one in scene.attachments.items():
            piece, body = pieces[one.body], names.index(one.to)
            if not points.start <= piece.points[0] < points.stop:
                continue
            mine = piece.points
            if one.region is not None:
                chosen = [places for key, places in piece.regions.items() if fnmatch.fnmatchcase(key, one.region)]
                mine = np.unique(np.concatenate(chosen))
            if not len(mine):
                raise ValueError(
                    f"attachments.{name}: no particle of {piece.table}.{one.body} is in its region {one.region!r}; "
                    "take the region larger"
                )
            twice = next((int(p) for p in mine if int(p) in taken), None)
            if twice is not None:
                raise ValueError(
                    f"attachments.{name}: a particle of {piece.table}.{one.body} is held by attachments.{taken[twice]} "
                    "already; take one of the regions smaller"
                )
            taken |= dict.fromkeys(mine.tolist(), name)
            self.held.append((mine, body))
        self.particles = np.concatenate([np.zeros(0, int), *(points for points, _ in self.held)])
        bodies = [np.full(len(points), body) for points, body in self.held]
        self.body = centres[np.concatenate([np.zeros(0, int), *bodies])]

    def join(self, colliders: Colliders) -> None:
        """Add the welds to what is coupled; where they hold is written by :meth:`apply`."""
        for points, body in self.held:
            colliders.weld(body, points - self.first, np.zeros((len(points), colliders.dim)))

    def apply(self, start: State, solver: Coupling) -> None:
        """Places of the welds, from the state at time 0 (all points)."""
        if not self.held:
            return
        away = start["x"][:, self.particles] - start["x"][:, self.body]
        place = np.einsum("epji,epj->epi", start["F"][:, self.body], away)
        solver.store.write("weld_place", place.reshape(-1, place.shape[2]))

    def pullback(self, start: State, solver: Coupling) -> State:
        """Adjoint of the state at time 0, by :meth:`apply`."""
        bars = {name: np.zeros(start[name].shape) for name in ("x", "F")}
        if not self.held:
            return bars
        x, R = start["x"], start["F"][:, self.body]
        place_bar = solver.store.reduced_adjoint("weld_place").reshape(len(x), len(self.particles), -1)
        away_bar = np.einsum("epij,epj->epi", R, place_bar)
        away = x[:, self.particles] - x[:, self.body]
        bars["x"][:, self.particles] += away_bar
        for e in range(len(x)):
            np.add.at(bars["x"][e], self.body, -away_bar[e])
            np.add.at(bars["F"][e], self.body, away[e, :, :, None] * place_bar[e, :, None, :])
        return bars
