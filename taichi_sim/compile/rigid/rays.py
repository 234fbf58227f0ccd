"""Distances along rays from rigid bodies to the nearest surface of another, of an obstacle or a wall; and the adjoint.

Of all that a ray meets only the normal ``n`` there counts for the derivative: the place on the surface is where
``n·(o + t d - s) = 0``, so that ``dt = -n·(do + t dd - ds)/(n·d)``, with ``ds`` how the surface moves there.
"""

from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.family import State
from taichi_sim.compile.rigid.shapes import Shapes
from taichi_sim.scene.raycast import cast


@dataclass(frozen=True)
class Ray:
    """``point`` is where it starts, counted among the family's points, ``body`` what carries it, ``direction`` (dim,)
    a unit vector in its axes; where nothing is met within ``limit`` (m), that is what is read."""

    name: str
    point: int
    body: int
    direction: np.ndarray
    limit: float


@dataclass(frozen=True)
class Meeting:
    """What a ray met: the body (-1: none), or the path of the position of what stands (``None``: it has none); the
    gradient ``by_place`` (dim,) of the distance by the ray's end; where that is in the body, at its own size."""

    distance: float
    direction: np.ndarray
    body: int = -1
    position: str | None = None
    by_place: np.ndarray | None = None
    inside: np.ndarray | None = None


class Rays:
    """The rays of a scene; ``centres`` are the points (of the family) that are the bodies' centres of mass."""

    def __init__(self, rays: list[Ray], shapes: Shapes, centres: np.ndarray) -> None:
        self.rays, self.shapes, self.centres = rays, shapes, centres

    def look(self, values: Values, state: State) -> np.ndarray:
        """(envs, rays) m, from x and F (envs, points, …)."""
        found = [[self._meet(ray, values, state, e).distance for ray in self.rays] for e in range(len(state["x"]))]
        return np.array(found).reshape(len(state["x"]), len(self.rays))

    def _meet(self, ray: Ray, values: Values, state: State, e: int) -> Meeting:
        origin, d = state["x"][e, ray.point], state["F"][e, ray.point] @ ray.direction
        best = Meeting(ray.limit, d)
        centres = self.shapes.centres(values)[e]
        for b, body in enumerate(self.shapes.bodies):
            if b == ray.body:
                continue
            R, scale = state["F"][e, self.centres[b]], values[f"rigid.{body.name}.scale"][e]
            start = (R.T @ (origin - state["x"][e, self.centres[b]]) + centres[b]) / scale + body.pivot
            along = R.T @ d / scale
            for piece in body.pieces:
                hit = cast(piece, start, along)
                if hit is not None and hit[0] < best.distance:
                    n = R @ hit[1]
                    place = start + hit[0] * along - body.pivot
                    best = Meeting(hit[0], d, b, by_place=n / (n @ d), inside=place)
        for wall in self.shapes.walls:
            moved = 0.0 if wall.position is None else values[wall.position][e]
            for piece in wall.pieces:
                hit = cast(piece, origin - moved, d)
                if hit is not None and hit[0] < best.distance:
                    best = Meeting(hit[0], d, position=wall.position, by_place=hit[1] / (hit[1] @ d))
        return best

    def vjp(self, values: Values, state: State, bar: np.ndarray) -> tuple[State, Values]:
        """From the adjoint (envs, rays) of :meth:`look`: those of x and F, and by path."""
        bars = {name: np.zeros(state[name].shape) for name in ("x", "F")}
        out: Values = {}
        all_centres = self.shapes.centres(values)
        centres_bar = np.zeros_like(all_centres)
        for e, i in np.argwhere(bar):
            ray = self.rays[i]
            met = self._meet(ray, values, state, e)
            if met.by_place is None:
                continue
            push = bar[e, i] * met.by_place
            bars["x"][e, ray.point] -= push
            bars["F"][e, ray.point] -= met.distance * np.outer(push, ray.direction)
            if met.inside is not None:
                b, path = self.centres[met.body], f"rigid.{self.shapes.bodies[met.body].name}.scale"
                own = state["F"][e, b].T @ push
                bars["x"][e, b] += push
                bars["F"][e, b] += np.outer(push, values[path][e] * met.inside - all_centres[e, met.body])
                out.setdefault(path, np.zeros(values[path].shape))[e] += own @ met.inside
                centres_bar[e, met.body] -= own
            elif met.position is not None:
                out.setdefault(met.position, np.zeros(values[met.position].shape))[e] += push
        if centres_bar.any():
            self.shapes.centres_vjp(values, centres_bar, out)
        return bars, out
