"""Walls and obstacles as contacts of grid nodes, and the derivative of where an obstacle stands.

Along periodic axes an obstacle is repeated every period, wherever it stands: its distance is that of its nearest image.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.binding import Binding, Values, per_env
from taichi_sim.core.errors import RolloutError
from taichi_sim.scene.pose import rotation_matrix
from taichi_sim.scene.shapes.shape import Shape
from taichi_sim.solvers.mpm.arrays import MpmPlan
from taichi_sim.solvers.mpm.contact import KINDS
from taichi_sim.solvers.mpm.solver import MpmSolver

#: Half width, in cells, of the ramp from no contact (outside) to full contact (inside). A sharp inside test has the
#: right derivative of a jagged map; with half a cell the map is smooth enough to descend on.
RAMP = 0.5

#: A node sees an obstacle by its distances this far away along every axis, in cells: their mean and their differences
#: are exact at flat faces and round off edges and the middle between two faces, where distance and normal have corners.
#: (Not a round number: shapes on the grid have their corners at such distances from nodes.)
WIDTH = 0.2357
#: Length of that gradient below which it has no direction: midway between opposite faces.
SHORT = 1e-3
#: Before and behind.
SIDES = (1.0, -1.0)


@dataclass(frozen=True)
class WallContact:
    """One side of the domain: axis, -1 or +1, kind, and the path of its friction (or ``None``)."""

    axis: int
    side: int
    kind: str
    friction: str | None


@dataclass(frozen=True)
class ObstacleContact:
    """A fixed shape with its turn, kind, and paths."""

    name: str
    shape: Shape
    rotation: np.ndarray
    kind: str
    position: str
    friction: str | None


@dataclass
class _Entry:
    """Contacts of one wall or obstacle in one environment: ``first`` row of the table and its nodes."""

    env: int
    first: int
    nodes: np.ndarray
    friction: str | None
    obstacle: ObstacleContact | None


class Contacts(Binding):
    """Builds each node's list of contacts; rebuilt only when an obstacle moves.

    Where several act at one node they do so in turn, obstacles in the order of their names (so the order in which they
    are declared is of no account), then walls.
    """

    def __init__(self, walls: list[WallContact], obstacles: list[ObstacleContact], plan: MpmPlan, room: int) -> None:
        self.walls, self.plan, self.room = walls, plan, room
        self.obstacles = sorted(obstacles, key=lambda o: o.name, reverse=True)  # the list of a node is a stack
        self.points = plan.node_positions()
        self.mirror = plan.canonical_nodes()
        self.own = np.flatnonzero(self.mirror == np.arange(plan.nodes))
        self._key: bytes | None = None
        self._entries: list[_Entry] = []

    def _wall_nodes(self, wall: WallContact) -> np.ndarray:
        at = self.points[:, wall.axis]
        edge = 1e-6 * self.plan.spacing
        if wall.side < 0:
            return np.flatnonzero(at <= self.plan.lower[wall.axis] + edge)
        return np.flatnonzero(at >= self.plan.upper[wall.axis] - edge)

    def images(self, obstacle: ObstacleContact, position: np.ndarray) -> np.ndarray:
        """(images, dim) positions at which the obstacle, or one of its periodic images, may act in the domain."""
        plan = self.plan
        if not (obstacle.shape.bounded and any(plan.periodic)):
            return position[None]
        corners = np.array(list(itertools.product(*zip(*obstacle.shape.bounds(), strict=True))))
        box = placed(obstacle, position, corners)
        margin = 3 * plan.spacing
        low, high = box.min(axis=0) - margin, box.max(axis=0) + margin
        shifts = [
            period * np.arange(np.ceil((lower - end) / period), np.floor((upper - start) / period) + 1)
            if periodic
            else np.zeros(1)
            for periodic, period, lower, upper, start, end in zip(
                plan.periodic, plan.periods, plan.lower, plan.upper, low, high, strict=True
            )
        ]
        return position + np.array(list(itertools.product(*shifts)))

    def distance(self, obstacle: ObstacleContact, position: np.ndarray, points: np.ndarray) -> np.ndarray:
        """(n,) signed distance from points (n, dim), m, to the obstacle at ``position`` or to its nearest image."""
        points = self.plan.wrapped(points)
        images = self.images(obstacle, position)
        found = [obstacle.shape.signed_distance(_local(obstacle, image, points)) for image in images]
        return found[0] if len(found) == 1 else np.min(found, axis=0)

    def _near(self, obstacle: ObstacleContact, position: np.ndarray) -> np.ndarray:
        """Nodes, one of each set of periodic images, where the obstacle's ramp is above zero."""
        reach = RAMP * self.plan.spacing
        candidates = self.own
        if obstacle.shape.bounded:
            lower, upper = obstacle.shape.bounds()
            close = np.zeros(len(candidates), bool)
            for image in self.images(obstacle, position):
                local = _local(obstacle, image, self.points[candidates])
                close |= ((local > lower - 2 * reach) & (local < upper + 2 * reach)).all(axis=1)
            candidates = candidates[close]
        distance = self._around(obstacle, position, self.points[candidates], WIDTH * self.plan.spacing).mean(
            axis=(1, 2)
        )
        return candidates[distance < reach]

    def check(self, obstacle: ObstacleContact, position: np.ndarray) -> None:
        """Raise ``ValueError`` for a shape without end that does not repeat along a periodic axis."""
        plan = self.plan
        for axis in np.flatnonzero(plan.periodic):
            if obstacle.shape.bounded:
                break
            shift = plan.periods[axis] * np.eye(plan.dim)[axis]
            ends = [
                obstacle.shape.signed_distance(_local(obstacle, position, self.points + turn)) for turn in (0.0, shift)
            ]
            if not np.allclose(*ends, rtol=0.0, atol=1e-6 * plan.spacing):
                raise ValueError(
                    f"obstacles.{obstacle.name}.shape has no end and does not repeat along {'xyz'[axis]}, which is "
                    "periodic; take a shape that ends (a box), turn it along the axis, or close the walls"
                )

    def most_nodes(self, obstacle: ObstacleContact, position: np.ndarray, moves: bool) -> int:
        """Nodes the obstacle may touch: anywhere if it has an end, else (a plane) twice what it touches at
        ``position``, or all of them where it is a design variable (``moves``)."""
        if obstacle.shape.bounded:
            lower, upper = obstacle.shape.bounds()
            cells = (upper - lower) / self.plan.spacing + 2 * RAMP
            return min(self.plan.nodes, int(np.prod(1.1 * cells + 3)))  # turned, its box meets a few nodes more
        return self.plan.nodes if moves else min(self.plan.nodes, 2 * len(self._near(obstacle, position)) + 32)

    def apply(self, values: Values, solver: MpmSolver) -> None:
        key = b"".join(values[o.position].tobytes() for o in self.obstacles)
        if key != self._key:
            self._build(values, solver)
            self._key = key
        friction = np.zeros(self.room)
        for entry in self._entries:
            if entry.friction:
                friction[entry.first : entry.first + len(entry.nodes)] = values[entry.friction][entry.env]
        solver.store.write("contact_friction", friction)

    def touched(self, path: str, solver: MpmSolver) -> bool:
        """Whether the last sweep met a contact with the wall or obstacle that ``path`` is a quantity of."""
        owner = path.rpartition(".")[0] + "."
        alpha_bar = solver.store.view("d_contact_alpha")
        return any(
            bool(np.any(alpha_bar[entry.first : entry.first + len(entry.nodes)]))
            for entry in self._entries
            if (entry.friction or "").startswith(owner)
            or (entry.obstacle is not None and entry.obstacle.position.startswith(owner))
        )

    def _build(self, values: Values, solver: MpmSolver) -> None:
        plan, dim = self.plan, self.plan.dim
        head = np.full((plan.envs, plan.nodes), -1, np.int32)
        following = np.full(self.room, -1, np.int32)
        kind = np.zeros(self.room, np.int32)
        normal, alpha = np.zeros((self.room, dim)), np.zeros(self.room)
        self._entries, at = [], 0

        def add(
            env: int,
            nodes: np.ndarray,
            n: np.ndarray,
            a: np.ndarray,
            what: str,
            friction: str | None,
            obstacle: ObstacleContact | None,
        ) -> None:
            nonlocal at
            own = self.mirror[nodes] == nodes
            nodes, n, a = nodes[own], n[own], a[own]
            end = at + len(nodes)
            if end > self.room:
                raise RolloutError(
                    f"obstacles touch {end:,} grid nodes, room was made for {self.room:,}: an obstacle was moved far "
                    "into the domain; build the simulation at the new position"
                )
            rows = np.arange(at, end)
            following[rows], kind[rows] = head[env, nodes], KINDS[what]
            normal[rows], alpha[rows] = n, a
            head[env, nodes] = rows
            self._entries.append(_Entry(env, at, nodes, friction, obstacle))
            at = end

        for env in range(plan.envs):
            # the list is a stack: what is added last is applied first, so obstacles act before walls have the last word
            for wall in self.walls:
                nodes = self._wall_nodes(wall)
                n = np.zeros((len(nodes), dim))
                n[:, wall.axis] = -wall.side
                add(env, nodes, n, np.ones(len(nodes)), wall.kind, wall.friction, None)
            for obstacle in self.obstacles:
                source = per_env(values, obstacle.position, plan.envs)[env]
                position = values[obstacle.position][source]
                nodes = self._near(obstacle, position)
                n, a, *_ = self._geometry(obstacle, position, self.points[nodes])
                add(env, nodes, n, a, obstacle.kind, obstacle.friction, obstacle)
        store = solver.store
        store.write("contact_head", head[:, self.mirror].reshape(-1))
        store.write("contact_next", following)
        store.write("contact_kind", kind)
        store.write("contact_normal", normal)
        store.write("contact_alpha", alpha)

    def _around(self, obstacle: ObstacleContact, position: np.ndarray, points: np.ndarray, h: float) -> np.ndarray:
        """(n, dim, 2) distances ``h`` before and behind points (n, dim) along every axis."""
        ends = [[self.distance(obstacle, position, points + s * h * e) for s in SIDES] for e in np.eye(self.plan.dim)]
        return np.moveaxis(np.array(ends), 2, 0)

    def _geometry(
        self, obstacle: ObstacleContact, position: np.ndarray, points: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Outward unit normal (n, dim), weight (n,), d weight/d distance (n,) at nodes, and the length (n, 1) of the
        distance's gradient, whose direction the normal is."""
        h = WIDTH * self.plan.spacing
        around = self._around(obstacle, position, points, h)
        gradient = (around[..., 0] - around[..., 1]) / (2 * h)
        length = np.linalg.norm(gradient, axis=1, keepdims=True)
        n = np.where(length > SHORT, gradient / np.maximum(length, SHORT), np.eye(self.plan.dim)[-1])
        reach = RAMP * self.plan.spacing
        s = np.clip((reach - around.mean(axis=(1, 2))) / (2 * reach), 0.0, 1.0)
        return n, s * s * (3 - 2 * s), -6 * s * (1 - s) / (2 * reach), length

    def pullback(self, values: Values, solver: MpmSolver) -> Values:
        store = solver.store
        friction_bar = store.reduced_adjoint("contact_friction")
        normal_bar, alpha_bar = store.reduced_adjoint("contact_normal"), store.reduced_adjoint("contact_alpha")
        out: Values = {}
        for wall in self.walls:
            if wall.friction:
                out[wall.friction] = np.zeros(self.plan.envs)
        for obstacle in self.obstacles:
            out[obstacle.position] = np.zeros_like(values[obstacle.position])
            if obstacle.friction:
                out[obstacle.friction] = np.zeros(self.plan.envs)
        for entry in self._entries:
            rows = slice(entry.first, entry.first + len(entry.nodes))
            if entry.friction:
                out[entry.friction][entry.env] += friction_bar[rows].sum()
            if entry.obstacle is not None and len(entry.nodes):
                out[entry.obstacle.position][entry.env] += self._position_bar(
                    entry.obstacle,
                    values[entry.obstacle.position][entry.env],
                    self.points[entry.nodes],
                    normal_bar[rows],
                    alpha_bar[rows],
                )
        return out

    def _position_bar(
        self, obstacle: ObstacleContact, position: np.ndarray, points: np.ndarray, n_bar: np.ndarray, a_bar: np.ndarray
    ) -> np.ndarray:
        """Moving an obstacle by δ is moving the nodes by -δ: chain through distance and normal."""
        n, _, slope, length = self._geometry(obstacle, position, points)
        h = WIDTH * self.plan.spacing
        bar = n_bar - np.sum(n_bar * n, axis=1, keepdims=True) * n
        bar = np.where(length > SHORT, bar / np.maximum(length, SHORT), 0.0)
        moved = np.zeros(points.shape)
        for axis, e in enumerate(np.eye(self.plan.dim)):
            for side in SIDES:
                distance_bar = a_bar * slope / (2 * self.plan.dim) + side * bar[:, axis] / (2 * h)
                moved += distance_bar[:, None] * self._slope(obstacle, position, points + side * h * e)
        return -np.sum(moved, axis=0)

    def _slope(self, obstacle: ObstacleContact, position: np.ndarray, points: np.ndarray) -> np.ndarray:
        """(n, dim) derivative of the distance, as exact as differences are."""
        h = 1e-5 * self.plan.spacing
        around = self._around(obstacle, position, points, h)
        return (around[..., 0] - around[..., 1]) / (2 * h)


def _turn(obstacle: ObstacleContact, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Rotation (dim, dim) of an obstacle and the point (dim,) it turns about."""
    centre = obstacle.shape.centre if obstacle.shape.bounded else np.zeros(dim)
    return rotation_matrix(obstacle.rotation, dim), centre


def _local(obstacle: ObstacleContact, position: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (n, dim) in the obstacle's own frame: undo the translation, then the turn about its centre."""
    R, centre = _turn(obstacle, points.shape[1])
    return (points - position - centre) @ R + centre


def placed(obstacle: ObstacleContact, position: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (n, dim) of the obstacle's own frame where it stands: inverse of :func:`_local`."""
    R, centre = _turn(obstacle, points.shape[1])
    return (points - centre) @ R.T + centre + position
