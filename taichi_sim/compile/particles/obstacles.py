"""Obstacles that are no planes: one signed distance on a grid, which what has a radius touches."""

import fnmatch
from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.particles.surfaces import STUCK
from taichi_sim.scene.paths import Quantity
from taichi_sim.scene.pose import rotation_matrix
from taichi_sim.scene.schema import Obstacle, Scene
from taichi_sim.scene.shapes.plane import Plane
from taichi_sim.scene.shapes.shape import Shape, resolve_shape
from taichi_sim.solvers.particles.solver import ParticlesSolver

#: Nodes of the grid at most, and cells to the smallest radius.
MOST, CELLS = 2_000_000, 2.0


@dataclass(frozen=True)
class Standing:
    """An obstacle where it stands: ``turn`` (dim, dim) about ``centre``, then moved by ``shift`` (dim,), m."""

    name: str
    table: Obstacle
    shape: Shape
    turn: np.ndarray
    centre: np.ndarray
    shift: np.ndarray

    def distance(self, points: np.ndarray) -> np.ndarray:
        """(n,) signed distance of points (n, dim), m, negative inside."""
        return self.shape.signed_distance((points - self.shift - self.centre) @ self.turn + self.centre)

    def placed(self, points: np.ndarray) -> np.ndarray:
        """Points of the shape (n, dim) in the scene."""
        return (points - self.centre) @ self.turn.T + self.centre + self.shift


class Obstacles(Binding):
    """All of them together, with one coefficient of friction; where they stand does not change."""

    def __init__(self, scene: Scene, known: dict[str, Quantity], values: Values, radii: np.ndarray, envs: int) -> None:
        self.envs = envs
        self.standing = [
            _standing(scene, name, table, values)
            for name, table in scene.obstacles.items()
            if table.shape["kind"] != Plane.kind
        ]
        self.lower = np.asarray(scene.domain.lower, float)
        extent = np.asarray(scene.domain.upper, float) - self.lower
        self.spacing = 0.0
        if self.standing:
            _check(scene, self.standing, radii)
            fine = float(radii[radii > 0].min()) / CELLS
            self.spacing = max(fine, float((np.prod(extent) / MOST) ** (1 / scene.dim)))
        self.nodes = tuple(int(n) + 1 for n in np.ceil(extent / self.spacing)) if self.standing else ()
        self.path = f"obstacles.{self.standing[0].name}.friction" if len(self.standing) == 1 else ""
        self.path = self.path if self.path in known else ""
        for one in self.standing:  # the others are no quantities of this model: nothing would follow from them
            for key in ("position", *(() if self.path else ("friction",))):
                values.pop(f"obstacles.{one.name}.{key}", None)

    def fill(self, solver: ParticlesSolver) -> None:
        """Give the solver the distance."""
        if not self.standing:
            return
        axes = [self.lower[a] + self.spacing * np.arange(n) for a, n in enumerate(self.nodes)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(self.nodes))
        distance = np.min([one.distance(points) for one in self.standing], axis=0)
        solver.set_obstacle(distance.reshape(self.nodes), self.lower, self.spacing)

    def apply(self, values: Values, solver: ParticlesSolver) -> None:
        if self.standing:
            solver.store.write("obstacle_friction", np.broadcast_to(self._friction(values), (self.envs,)))

    def _friction(self, values: Values) -> np.ndarray:
        table = self.standing[0].table
        fixed = {"slip": 0.0, "sticky": STUCK}.get(table.kind, float(table.friction))
        return values.get(self.path, np.asarray(fixed))

    def pullback(self, values: Values, solver: ParticlesSolver) -> Values:
        return {self.path: solver.store.reduced_adjoint("obstacle_friction")} if self.path else {}


def _standing(scene: Scene, name: str, table: Obstacle, values: Values) -> Standing:
    shape = resolve_shape(table.shape, scene.dim, f"obstacles.{name}.shape", scene.folder)
    centre = shape.centre if shape.bounded else np.zeros(scene.dim)
    turn = rotation_matrix(np.asarray(table.rotation), scene.dim)
    return Standing(name, table, shape, turn, centre, values[f"obstacles.{name}.position"][0].copy())


def _check(scene: Scene, standing: list[Standing], radii: np.ndarray) -> None:
    first = standing[0]
    if not (radii > 0).all():
        raise ValueError(
            f"obstacles.{first.name}: points without a radius know planes as obstacles only, not a {first.shape.kind}; "
            "give the springs radius and contact_stiffness"
        )
    if scene.bodies or scene.rigid:
        raise ValueError(
            f"obstacles.{first.name}: beside bodies springs and grains know planes as obstacles only, not a "
            f"{first.shape.kind}"
        )
    for one in standing[1:]:
        if (one.table.kind, float(one.table.friction)) != (first.table.kind, float(first.table.friction)):
            raise ValueError(
                f"obstacles.{one.name}: for springs and grains all obstacles but planes are one surface: give it the "
                f"kind and the friction of obstacles.{first.name}"
            )
    for entry in scene.design:
        for one in standing:
            lost = [f"obstacles.{one.name}.position", *([f"obstacles.{one.name}.friction"] if standing[1:] else [])]
            if any(fnmatch.fnmatchcase(path, entry.path) for path in lost):
                raise ValueError(
                    f"{entry.path} cannot be a design variable: springs and grains have gradients by positions of "
                    "planes, and by the friction of one obstacle that is none"
                )
