"""What happens where points and grains touch each other, and at walls and planes."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.scene.particles import Cluster
from taichi_sim.scene.paths import Quantity
from taichi_sim.scene.pose import rotation_matrix
from taichi_sim.scene.schema import Scene, wall_names
from taichi_sim.scene.shapes.plane import Plane
from taichi_sim.scene.shapes.shape import resolve_shape
from taichi_sim.solvers.particles.arrays import COMPLIANT, WALL_KINDS
from taichi_sim.solvers.particles.solver import ParticlesSolver

#: Entries of what touches, in the order of the solver's ``surface``.
ENTRIES = ("contact_stiffness", "contact_damping", "friction", "rolling_friction")
#: Friction of a wall nothing slides on.
STUCK = 1e6


class Surfaces(Binding):
    """One row of stiffness, damping, friction and rolling friction for everything that has a radius."""

    def __init__(self, clusters: list[Cluster], envs: int) -> None:
        self.clusters, self.envs = [cluster for cluster in clusters if cluster.touches], envs

    @property
    def count(self) -> int:
        """Rows of an environment."""
        return max(1, len(self.clusters))

    def rows(self, values: Values) -> np.ndarray:
        """(envs, rows, 4)."""
        out = np.zeros((self.envs, self.count, len(ENTRIES)))
        for row, cluster in enumerate(self.clusters):
            for column, entry in enumerate(ENTRIES):
                out[:, row, column] = values.get(f"{cluster.path}.{entry}", 0.0)
        return out

    def apply(self, values: Values, solver: ParticlesSolver) -> None:
        if self.clusters:
            solver.store.write("surface", self.rows(values).reshape(-1, len(ENTRIES)))

    def pullback(self, values: Values, solver: ParticlesSolver) -> Values:
        if not self.clusters:
            return {}
        bar = solver.store.reduced_adjoint("surface").reshape(self.envs, self.count, len(ENTRIES))
        return {
            f"{cluster.path}.{entry}": bar[:, row, column]
            for row, cluster in enumerate(self.clusters)
            for column, entry in enumerate(ENTRIES)
            if f"{cluster.path}.{entry}" in values
        }


@dataclass(frozen=True)
class Wall:
    """A half-space nothing enters: ``normal · (y - at) >= 0``, moved by the value of ``position`` if there is one.

    ``kind`` is that of the scene; ``friction`` a path, ``None`` where it has none.
    """

    name: str
    kind: str
    normal: np.ndarray
    at: np.ndarray
    friction: str | None
    position: str | None = None


def walls_of(scene: Scene, known: dict[str, Quantity]) -> list[Wall]:
    """Sides of the domain that are not periodic, and obstacles that are planes."""
    out = []
    ends = [np.asarray(end, float) for end in (scene.domain.lower, scene.domain.upper)]
    for name in wall_names(scene.dim):
        wall = scene.domain.wall(name)
        if wall.kind == "periodic":
            continue
        normal = np.zeros(scene.dim)
        normal["xyz".index(name[0])] = 1.0 if name.endswith("lower") else -1.0
        friction = f"domain.walls.{name}.friction"
        end = ends[0] if name.endswith("lower") else ends[1]
        out.append(Wall(name, wall.kind, normal, end, friction if friction in known else None))
    for name, obstacle in scene.obstacles.items():
        shape = resolve_shape(obstacle.shape, scene.dim, f"obstacles.{name}.shape", scene.folder)
        if not isinstance(shape, Plane):
            continue  # those are ``obstacles``
        turn = rotation_matrix(np.asarray(obstacle.rotation), scene.dim)
        friction, place = f"obstacles.{name}.friction", f"obstacles.{name}.position"
        out.append(
            Wall(
                name,
                obstacle.kind,
                turn @ shape.normal,
                turn @ shape.point,
                friction if friction in known else None,
                place,
            )
        )
    return out


class Walls(Binding):
    """Normals, offsets and frictions of walls. With ``compliant`` they act by the law of contact."""

    def __init__(self, walls: list[Wall], envs: int, compliant: bool) -> None:
        self.walls, self.envs, self.compliant = walls, envs, compliant

    @property
    def kinds(self) -> tuple[int, ...]:
        """Kinds the solver knows."""
        return tuple(COMPLIANT if self.compliant else WALL_KINDS[wall.kind] for wall in self.walls)

    def offsets(self, values: Values) -> np.ndarray:
        """(envs, walls) ``normal · y`` on each wall, m."""
        out = np.empty((self.envs, len(self.walls)))
        for w, wall in enumerate(self.walls):
            moved = 0.0 if wall.position is None else values[wall.position]
            out[:, w] = np.sum((wall.at + moved) * wall.normal, axis=-1)
        return out

    def apply(self, values: Values, solver: ParticlesSolver) -> None:
        if not self.walls:
            return
        rows = np.zeros((self.envs, len(self.walls), 2))
        rows[:, :, 0] = self.offsets(values)
        for w, wall in enumerate(self.walls):
            if wall.friction is not None:
                rows[:, w, 1] = values[wall.friction]
            elif wall.kind == "sticky" and self.compliant:
                rows[:, w, 1] = STUCK
        normals = np.stack([wall.normal for wall in self.walls])
        solver.store.write("wall", rows.reshape(-1, 2))
        solver.store.write("wall_normal", np.tile(normals, (self.envs, 1)))

    def pullback(self, values: Values, solver: ParticlesSolver) -> Values:
        out: Values = {}
        if not self.walls:
            return out
        bar = solver.store.reduced_adjoint("wall").reshape(self.envs, len(self.walls), 2)
        for w, wall in enumerate(self.walls):
            if wall.friction is not None:
                out[wall.friction] = bar[:, w, 1]
            if wall.position is not None:
                out[wall.position] = bar[:, w, :1] * wall.normal
        return out
