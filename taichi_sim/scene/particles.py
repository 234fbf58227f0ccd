"""Springs and grains of a scene as geometry: points, what joins them, radii, and which of them are held."""

import fnmatch
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from taichi_sim.core.errors import Problem, SceneError
from taichi_sim.scene.networks.network import make_network
from taichi_sim.scene.schema import Grains, Region, Scene, Springs
from taichi_sim.scene.shapes.shape import Shape, resolve_shape
from taichi_sim.scene.surface import point_text
from taichi_sim.solvers.particles.network import Network

#: Grains a shape may be filled with.
MOST = 20_000_000
#: Room of a grain in a jittered packing, in diameters of the largest.
LOOSE = 1.15


@dataclass(frozen=True)
class Cluster:
    """The points of one entry of ``[springs]`` or ``[grains]`` before the pose; lengths in m.

    ``points`` (n, dim) and their centre of mass ``pivot`` (dim,); ``share`` (n,) of the mass (springs: adds up to 1;
    grains: volume for a radius of 1); ``size`` (n,) radius over the entry's; ``held`` (n,); ``regions`` hold indices.
    ``network`` is what joins points, ``None`` for grains.
    """

    name: str
    table: Springs | Grains
    points: np.ndarray
    pivot: np.ndarray
    share: np.ndarray
    size: np.ndarray
    held: np.ndarray
    regions: dict[str, np.ndarray]
    network: Network | None

    @property
    def path(self) -> str:
        """Where it stands in the scene."""
        return f"{'springs' if isinstance(self.table, Springs) else 'grains'}.{self.name}"

    @property
    def count(self) -> int:
        """Number of points."""
        return len(self.points)

    @property
    def edges(self) -> np.ndarray:
        """(m, 2) ends of the springs."""
        return self.network.edges if self.network is not None else np.zeros((0, 2), np.int64)

    @property
    def bends(self) -> np.ndarray:
        """(k, 3) bends that resist."""
        stiff = isinstance(self.table, Springs) and self.table.bend_stiffness is not None
        return self.network.bends if self.network is not None and stiff else np.zeros((0, 3), np.int64)

    @property
    def faces(self) -> np.ndarray:
        """(f, 3) triangles of a surface in space, for drawing; empty where it is none."""
        cells = self.network.cells if self.network is not None else np.zeros((0, 2), np.int64)
        kind = self.table.kind if isinstance(self.table, Springs) else ""
        if kind == "cloth":  # corners of a cell: along neither side, the second, the first, both
            return np.concatenate([cells[:, [0, 2, 3]], cells[:, [0, 3, 1]]])
        return cells if kind == "mesh" else np.zeros((0, 3), np.int64)

    def avoids(self, other: str) -> bool:
        """Whether it passes through the body called ``other``."""
        return any(fnmatch.fnmatchcase(other, pattern) for pattern in self.table.no_contact)

    @property
    def touches(self) -> bool:
        """Whether its points have a radius."""
        return self.table.radius is not None


def build_clusters(scene: Scene, seed: int) -> list[Cluster]:
    """Springs, then grains of a resolved scene, in the order declared; ``seed`` places and sizes grains.

    Raises ``SceneError`` listing every mistake: networks and shapes that cannot be built, regions without a point.
    """
    problems: list[Problem] = []
    built: list[Cluster] = []
    for path, name, table in (
        *((f"springs.{name}", name, table) for name, table in scene.springs.items()),
        *((f"grains.{name}", name, table) for name, table in scene.grains.items()),
    ):
        try:
            if isinstance(table, Springs):
                built.append(_springs(scene, name, table, path))
            else:
                built.append(_grains(scene, name, table, path, seed))
        except SceneError as error:
            problems += error.problems
    if problems:
        raise SceneError(problems, scene.source)
    return built


def _springs(scene: Scene, name: str, table: Springs, path: str) -> Cluster:
    network = make_network(table.kind, table.parameters, scene.dim, path, scene.folder)
    count, springs, bends = len(network.points), len(network.edges), len(network.bends)
    problems = []
    for key, wanted, what in (
        ("stiffness", springs, "spring"),
        ("damping", springs, "spring"),
        ("rest_scale", springs, "spring"),
        ("bend_stiffness", bends, "bend"),
    ):
        value = getattr(table, key)
        if np.ndim(value) == 1 and len(value) != wanted:
            problems.append(Problem(f"{path}.{key}", f"must be one number or one a {what}: {wanted}, got {len(value)}"))
    if table.bend_stiffness is not None and not bends:
        problems.append(Problem(f"{path}.bend_stiffness", f"a {table.kind} of these entries has no bends", None))
    problems += _counted(table, path, count)
    held = np.zeros(count, bool)
    if table.held is not None:
        held = _inside(resolve_shape(table.held, scene.dim, f"{path}.held", scene.folder), network.points)
        if not held.any():
            problems.append(Problem(f"{path}.held", _nothing("point", "network's points", network.points)))
    regions, more = _regions(scene, table.regions, network.points, path, "point")
    if problems + more:
        raise SceneError(problems + more)
    share = network.lumped_mass(1.0)
    pivot = np.sum(share[:, None] * network.points, axis=0)
    return Cluster(name, table, network.points, pivot, share, np.ones(count), held, regions, network)


def _grains(scene: Scene, name: str, table: Grains, path: str, seed: int) -> Cluster:
    dim, radius, spread = scene.dim, float(table.radius), float(table.radius_spread)
    shape = resolve_shape(table.shape, dim, f"{path}.shape", scene.folder)
    rng = np.random.default_rng([int(seed), zlib.crc32(name.encode())])
    try:
        points, size = _packed(shape, radius, spread, table.packing == "jittered", rng)
    except ValueError as error:
        raise SceneError([Problem(path, str(error))]) from None
    regions, problems = _regions(scene, table.regions, points, path, "grain")
    problems += _counted(table, path, len(points))
    if problems:
        raise SceneError(problems)
    volume = (np.pi if dim == 2 else 4.0 / 3.0 * np.pi) * size**dim
    pivot = np.sum((volume / volume.sum())[:, None] * points, axis=0)
    return Cluster(name, table, points, pivot, volume, size, np.zeros(len(points), bool), regions, None)


def _packed(
    shape: Shape, radius: float, spread: float, jittered: bool, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Centres (n, dim) of grains that do not overlap, wholly inside ``shape``, and their sizes (n,)."""
    lower, upper = shape.bounds()
    largest = radius * (1.0 + spread)
    pitch = 2.0 * largest * (LOOSE if jittered else 1.0 + 1e-6)
    count = np.floor((upper - lower) / pitch * (1 + 1e-9)).astype(int)
    if (count < 1).any():
        extent = " x ".join(f"{e:.3g}" for e in upper - lower)
        raise ValueError(f"a grain of radius {largest:g} m does not fit into a shape of {extent} m")
    if np.prod(count.astype(float)) > MOST:
        raise ValueError(f"a radius of {radius:g} m makes more than {MOST:.0e} grains; take it larger")
    index = np.stack(np.meshgrid(*map(np.arange, count), indexing="ij"), axis=-1).reshape(-1, len(count))
    places = lower + (index + 0.5) * (upper - lower) / count
    size = 1.0 + spread * rng.uniform(-1.0, 1.0, len(places))
    if jittered:
        room = 0.5 * (upper - lower) / count - largest
        places = places + room * rng.uniform(-1.0, 1.0, places.shape)
    inside = shape.signed_distance(places) <= -radius * size * (1 - 1e-9)
    if not inside.any():
        raise ValueError(f"no grain of radius {radius:g} m lies wholly inside the shape")
    return places[inside], size[inside]


def _inside(shape: Shape, points: np.ndarray) -> np.ndarray:
    near = 1e-9 * float(np.ptp(points, axis=0).max() + np.abs(points).max())
    return shape.signed_distance(points) <= near


def _regions(
    scene: Scene, regions: Mapping[str, Region], points: np.ndarray, path: str, what: str
) -> tuple[dict[str, np.ndarray], list[Problem]]:
    found: dict[str, np.ndarray] = {}
    problems: list[Problem] = []
    for name, region in regions.items():
        where = f"{path}.regions.{name}"
        try:
            shape = resolve_shape(region.shape, scene.dim, f"{where}.shape", scene.folder)
        except SceneError as error:
            problems += error.problems
            continue
        found[name] = np.flatnonzero(_inside(shape, points))
        if len(found[name]) == 0:
            problems.append(Problem(where, _nothing(what, f"{what}s", points)))
    return found, problems


def _nothing(what: str, all_of_them: str, points: np.ndarray) -> str:
    low, high = point_text(points.min(axis=0)), point_text(points.max(axis=0))
    return f"holds no {what}; the {all_of_them} lie from {low} to {high} before the pose"


def _counted(table: Springs | Grains, path: str, count: int) -> list[Problem]:
    rows = np.shape(table.velocity)
    if len(rows) == 2 and rows[0] != count:
        return [Problem(f"{path}.velocity", f"must have one row a point: {count}, got {rows[0]}")]
    return []
