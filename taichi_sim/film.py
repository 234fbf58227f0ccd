"""From a simulation to its pictures: colours, obstacles, targets and cameras of a scene, and videos of rollouts."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from taichi_sim.compile.continuum.contacts import ObstacleContact, placed
from taichi_sim.compile.wiring import selection
from taichi_sim.io.video import VideoInfo, check_video_path, write_video
from taichi_sim.scene.shapes.shape import resolve_shape
from taichi_sim.simulation import Rollout, Simulation
from taichi_sim.viz.camera import Camera2D, Camera3D, view_bounds
from taichi_sim.viz.picture import OBSTACLE, Line, Marker, Mesh, Picture, Polygon, activated, palette
from taichi_sim.viz.repeat import cut_line, cut_mesh, wrapped

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from taichi_sim.scene.particles import Cluster

#: A video of a shorter rollout is slowed down to last this long, of a longer one sped up to this (s).
SHORTEST, LONGEST = 4.0, 20.0
#: Particles that carry a vertex of a body's surface.
CARRIERS = 16
#: Radius of a point without one, and width of a spring, in lengths of a spring.
KNOT, THREAD = 0.06, 0.07
#: How much the shading of particles of continua is blended into one surface.
SMOOTH = 0.7
#: A surface with more triangles is shown by its particles.
MOST_FACES = 200_000


@dataclass(frozen=True)
class Skin:
    """The surface of a body, carried by its particles: ``weights`` (vertices, particles of all bodies)."""

    weights: "csr_matrix"
    faces: np.ndarray
    color: tuple[float, ...]

    def mesh(self, position: np.ndarray) -> Mesh:
        """The surface where the particles are at ``position`` (n, 3) m."""
        return Mesh(self.weights @ position, self.faces, self.color)


@dataclass(frozen=True)
class Solid:
    """A rigid body as it is drawn: its outline from the centre of mass, in body axes, and the point that is it.

    ``triangles`` (f, 3) index ``vertices`` (v, 3); in 2-D there are ``loops`` instead.
    """

    point: int
    vertices: np.ndarray
    triangles: np.ndarray
    loops: tuple[np.ndarray, ...]
    color: tuple[float, ...]

    def drawn(self, position: np.ndarray, rotation: np.ndarray) -> Iterator[Mesh | Polygon]:
        """Where the points are at ``position`` (n, dim) m and it is turned by ``rotation`` (dim, dim)."""
        place = position[self.point]
        if len(place) == 3:
            yield Mesh(place + self.vertices @ rotation.T, self.triangles, self.color)
        else:
            yield from (Polygon(place + loop @ rotation.T, self.color) for loop in self.loops)


@dataclass(frozen=True)
class Threads:
    """Springs as they are drawn: ``ends`` (m, 2), points of the scene, ``width`` m; ``driven`` (actuators, m) says
    which actuator changes the length of which."""

    ends: np.ndarray
    color: tuple[float, ...]
    width: float
    driven: np.ndarray

    def lines(self, position: np.ndarray, activation: np.ndarray | None) -> Iterator[Line]:
        """Where the points are at ``position`` (n, dim) m."""
        colors = np.broadcast_to(np.asarray(self.color, float), (len(self.ends), 3))
        if activation is not None and self.driven.any():
            colors = activated(colors, _strongest(self.driven, activation))
        for (a, b), color in zip(self.ends, colors.tolist(), strict=True):
            yield Line(position[[a, b]], self.width, color)


@dataclass(frozen=True)
class Sheet:
    """A surface between points: ``faces`` (f, 3), points of the scene."""

    faces: np.ndarray
    color: tuple[float, ...]

    def mesh(self, position: np.ndarray) -> Mesh:
        """The surface where the points are at ``position`` (n, 3) m."""
        used, faces = np.unique(self.faces, return_inverse=True)
        return Mesh(position[used], np.asarray(faces).reshape(-1, 3), self.color)


@dataclass(frozen=True)
class Scenery:
    """How a scene looks, apart from where its particles are: made by :meth:`of` from a simulation as it is now.

    ``colors`` (n, 3), ``radius`` (n,) m and ``shown`` (n,) are of all points in the order of the scene (those under a
    skin or of a sheet and rigid bodies are not shown); ``driven`` (actuators, n) says which particle each actuator
    drives. What goes out through a periodic side (``period`` (dim,) m, infinite where there is none) is drawn where it
    comes in again.
    """

    title: str
    dim: int
    colors: np.ndarray
    radius: np.ndarray
    shown: np.ndarray
    driven: np.ndarray
    skins: tuple[Skin, ...]
    solids: tuple[Solid, ...]
    threads: tuple[Threads, ...]
    sheets: tuple[Sheet, ...]
    obstacles: tuple[Mesh | Polygon, ...]
    markers: tuple[Marker, ...]
    traced: tuple[np.ndarray, ...]
    lower: np.ndarray
    upper: np.ndarray
    period: np.ndarray
    floor_visible: bool
    camera: "Camera2D | Camera3D | None"
    smooth: float

    @classmethod
    def of(cls, sim: Simulation) -> "Scenery":
        """The look of a simulation's first environment with the values it has now."""
        scene, soft = sim.model.scene, sim.model.continuum
        bodies = soft.bodies if soft is not None else []
        colors, radius = np.zeros((sim.n, 3)), np.ones(sim.n)
        shown = np.ones(sim.n, bool)
        driven = _driven(sim)
        solid = {m.name: m.law.kind == "solid" for m in (soft.matter.bodies if soft is not None else ())}
        skins = []
        for k, body in enumerate(bodies):
            where = sim.model.slices[body.name]
            color = palette(k) if body.color is None else tuple(body.color)
            colors[where], radius[where] = color, 0.5 * body.spacing
            if sim.dim == 3 and solid[body.name] and not driven[:, where].any():
                surface = body.surface()
                if 0 < len(surface.faces) <= MOST_FACES and body.count >= CARRIERS:
                    weights = _carried(surface.vertices, body.position, where.start, sim.n)
                    skins.append(Skin(weights, surface.faces, color))
                    shown[where] = False
        solids = tuple(_solids(sim, len(bodies)))
        if sim.model.rigid is not None:
            shown[sim.model.rigid.points] = False
        threads, sheets = [], []
        for color, cluster, where in _clusters(sim, len(bodies) + len(solids)):
            colors[where] = color
            radius[where] = _radii(sim, cluster, where)
            if len(cluster.faces):
                sheets.append(Sheet(where.start + cluster.faces, color))
                shown[where] = False
            elif len(cluster.edges):
                threads.append(_threads(sim, cluster, where, color))
        lower, upper = (np.asarray(x, float) for x in (scene.domain.lower, scene.domain.upper))
        aims = [(name, o) for name, o in scene.objectives.items() if o.kind == "distance" and "target" in o.parameters]
        size, period = 0.018 * float((upper - lower).max()), _periods(sim, upper - lower)
        targets = [wrapped(_value(sim, f"objectives.{name}.target", o.target), lower, period) for name, o in aims]
        return cls(
            title=sim.scene.title,
            dim=sim.dim,
            colors=colors,
            radius=radius,
            shown=shown,
            driven=driven,
            skins=tuple(skins),
            solids=solids,
            threads=tuple(threads),
            sheets=tuple(sheets),
            obstacles=tuple(_obstacles(sim, lower, upper)),
            markers=tuple(Marker(tuple(target), size) for target in targets),
            traced=tuple(_members(sim, o.body, o.region) for _, o in aims),
            lower=lower,
            upper=upper,
            period=period,
            floor_visible=scene.domain.wall("z_lower").kind != "periodic",
            camera=_camera(sim.scene.camera, sim.dim),
            smooth=SMOOTH if bodies else 0.0,
        )

    def wrapped(self, positions: np.ndarray) -> np.ndarray:
        """Positions (…, dim), m, where they are drawn."""
        return wrapped(positions, self.lower, self.period)

    def framed(self, positions: np.ndarray, aspect: float) -> "Camera2D | Camera3D":
        """The scene's own camera, or one that sees all ``positions`` (…, dim) m as drawn; ``aspect`` width / height."""
        if self.camera is not None:
            return self.camera
        seen = [np.reshape(positions, (-1, self.dim)), *(np.atleast_2d(m.position) for m in self.markers)]
        low, high = view_bounds(np.concatenate(seen), self.lower, self.upper)
        if self.dim == 2:
            return Camera2D.fit(low, high, aspect, head=0.1)
        return Camera3D.fit(low, high, aspect=aspect)

    def picture(
        self,
        position: np.ndarray,
        activation: np.ndarray | None = None,
        rotation: np.ndarray | None = None,
        *,
        caption: str = "",
        camera: "Camera2D | Camera3D | None" = None,
        trails: Sequence[np.ndarray] = (),
    ) -> Picture:
        """The scene with its points at ``position`` (n, dim) m and commands ``activation`` (actuators,) in -1..1.

        ``rotation`` (rigid bodies, dim, dim) is theirs (default: none). ``trails`` are polylines (k, dim) m.
        """
        mixed = None
        if activation is not None and len(self.driven):
            mixed = _strongest(self.driven, activation)[self.shown]
        width = 0.004 * float((self.upper - self.lower).max())
        skins = [skin.mesh(position) for skin in self.skins]
        turned = np.broadcast_to(np.eye(self.dim), (len(self.solids), self.dim, self.dim))
        turned = turned if rotation is None else rotation
        solids = [part for one, R in zip(self.solids, turned, strict=True) for part in one.drawn(position, R)]
        sheets = [sheet.mesh(position) for sheet in self.sheets]
        lines = [piece for trail in trails for piece in cut_line(trail, self.lower, self.period)]
        threads = [
            line._replace(points=piece)
            for one in self.threads
            for line in one.lines(position, activation)
            for piece in cut_line(line.points, self.lower, self.period)
        ]
        return Picture(
            self.dim,
            self.wrapped(position[self.shown]),
            self.colors[self.shown],
            self.radius[self.shown],
            mixed,
            meshes=[
                part
                for one in (*skins, *solids, *sheets)
                for part in (cut_mesh(one, self.lower, self.period) if isinstance(one, Mesh) else [one])
            ],
            obstacles=self.obstacles,
            lower=self.lower,
            upper=self.upper,
            camera=camera or self.camera,
            caption=caption,
            floor_visible=self.floor_visible,
            markers=self.markers,
            smooth=self.smooth,
            lines=[*(Line(t, width) for t in lines if len(t) > 1), *threads],
        )


@dataclass(frozen=True)
class Film:
    """A recorded rollout with its scenery: what videos are made of. :meth:`of` takes both from a simulation."""

    scenery: Scenery
    rollout: Rollout

    @classmethod
    def of(cls, sim: Simulation) -> "Film":
        """The simulation's last recorded rollout; it is run again if there is none of its present values."""
        if sim.rollout is None:
            sim.run(record=True)
        assert sim.rollout is not None
        return cls(Scenery.of(sim), sim.rollout)

    @property
    def frames(self) -> int:
        """Number of pictures there can be: the start and every frame."""
        return len(self.rollout.times)

    @property
    def duration(self) -> float:
        """Simulated time, s."""
        return float(self.rollout.times[-1])

    def pictures(
        self,
        frames: Sequence[int] | None = None,
        *,
        aspect: float = 4 / 3,
        caption: str | None = None,
        camera: "Camera2D | Camera3D | None" = None,
    ) -> Iterator[Picture]:
        """Pictures of ``frames`` (default: all), under a caption (default: the scene's name) and the time."""
        scenery, rollout = self.scenery, self.rollout
        camera = camera or scenery.framed(scenery.wrapped(rollout.position), aspect)
        loudest = max(1.0, float(np.max(np.abs(rollout.activation), initial=0.0)))
        head = scenery.title if caption is None else caption
        centres = [rollout.position[:, part].mean(axis=1) for part in scenery.traced]
        turned = np.stack(list(rollout.rotation.values()), axis=1) if rollout.rotation else None
        for f in range(self.frames) if frames is None else frames:
            command = rollout.activation[min(f, len(rollout.activation) - 1)] / loudest
            lines = "\n".join(filter(None, (head, f"t = {rollout.times[f]:.2f} s")))
            trails = [c[: f + 1] for c in centres]
            R = None if turned is None else turned[f]
            yield scenery.picture(rollout.position[f], command, R, caption=lines, camera=camera, trails=trails)


def pictures(sim: Simulation, rollout: Rollout | None = None, **options) -> Iterator[Picture]:
    """A picture of every frame of ``rollout`` (default: the simulation's own); ``options`` of :meth:`Film.pictures`."""
    film_ = Film.of(sim) if rollout is None else Film(Scenery.of(sim), rollout)
    return film_.pictures(**options)


def film(
    sim: Simulation,
    path: str | os.PathLike[str],
    *,
    size: tuple[int, int] = (640, 480),
    fps: float | None = None,
    caption: str | None = None,
    most: int = 240,
) -> VideoInfo:
    """Write the simulation's rollout as a video (mp4, gif or PNGs, by the ending of ``path``).

    ``size`` (width, height) px. With ``fps`` every frame is shown, at that rate; without, the film lasts as long as
    the motion, but at least 4 s (slow motion) and at most 20, in at most ``most`` pictures. ``caption`` replaces the
    scene's name. Raises ``ValueError`` for a path or size that cannot be used.
    """
    return before_after(path, [(None, Film.of(sim))], size=size, fps=fps, caption=caption, most=most)


def before_after(
    path: str | os.PathLike[str],
    films: "Sequence[tuple[str | None, Film]]",
    *,
    size: tuple[int, int] = (640, 480),
    fps: float | None = None,
    caption: str | None = None,
    most: int = 120,
) -> VideoInfo:
    """Write films of equal duration side by side, each above its label; ``size`` is that of each. See :func:`film`."""
    from taichi_sim.viz.compose import side_by_side
    from taichi_sim.viz.renderer import Renderer

    check_video_path(path)
    width, height = size
    shown, rate = _pace(films[0][1], fps, most)
    first = films[0][1].scenery
    seen = np.concatenate([one.rollout.position[shown] for _, one in films]) if first.camera is None else np.empty(0)
    camera = first.framed(first.wrapped(seen) if seen.size else seen, width / height)
    with Renderer(width, height) as renderer:

        def column(one: Film) -> Iterator[np.ndarray]:
            for picture in one.pictures(shown, caption=caption, camera=camera):
                yield renderer.render(picture)

        columns = [column(one) for _, one in films]
        labels = [label for label, _ in films if label]
        frames = side_by_side(columns, labels) if len(columns) > 1 or labels else columns[0]
        return write_video(path, frames, rate)


def _pace(one: Film, fps: float | None, most: int) -> tuple[list[int], float]:
    """Frames to show and frames/s."""
    if fps is not None:
        return list(range(one.frames)), float(fps)
    length = min(max(one.duration, SHORTEST), LONGEST)
    count = max(1, min(one.frames, most, round(30 * length)))
    shown = np.unique(np.rint(np.linspace(0, one.frames - 1, count)).astype(int))
    return shown.tolist(), max(len(shown) / length, 1.0)


def _members(sim: Simulation, body: str | None, region: str | None) -> np.ndarray:
    """Indices, over all points, of a body's or region's."""
    return sim.model.massive if body is None else selection(sim.model.pieces[body], region)


def _solids(sim: Simulation, first: int) -> Iterator[Solid]:
    """Rigid bodies, coloured from the ``first`` colour of the palette on."""
    rigid = sim.model.rigid
    if rigid is None:
        return
    values = {path: np.asarray(sim.get(path))[None] if sim.envs == 1 else sim.get(path) for path in sim.parameters()}
    centres = rigid.shapes.centres(values)[0]
    for b, body in enumerate(rigid.bodies):
        drawn, scale = body.surface(), float(values[f"rigid.{body.name}.scale"][0])
        color = palette(first + b) if body.table.color is None else tuple(np.asarray(body.table.color, float))

        def place(points: np.ndarray, b: int = b, scale: float = scale) -> np.ndarray:
            return scale * (points - rigid.bodies[b].pivot) - centres[b]

        loops = tuple(place(loop) for loop in _joined(drawn.loops))
        yield Solid(rigid.points.start + int(rigid.centres[b]), place(drawn.vertices), drawn.faces, loops, color)


def _clusters(sim: Simulation, first: int) -> "Iterator[tuple[tuple[float, ...], Cluster, slice]]":
    """Springs and grains with their colour, from the ``first`` of the palette on, and their points."""
    family = sim.model.particle
    for k, cluster in enumerate(family.clusters if family is not None else ()):
        color = palette(first + k) if cluster.table.color is None else tuple(np.asarray(cluster.table.color, float))
        yield color, cluster, sim.model.slices[cluster.name]


def _radii(sim: Simulation, cluster: "Cluster", where: slice) -> np.ndarray:
    """Radii of points as drawn, m: their own, or a knot's between springs."""
    if cluster.touches:
        return _value(sim, f"{cluster.path}.radius", cluster.table.radius) * cluster.size
    return np.full(cluster.count, KNOT * _usual_length(cluster))


def _usual_length(cluster: "Cluster") -> float:
    return float(np.median(cluster.network.rest_lengths)) if cluster.network is not None else 0.0


def _threads(sim: Simulation, cluster: "Cluster", where: slice, color: tuple[float, ...]) -> Threads:
    ends = where.start + cluster.edges
    driven = np.zeros((len(sim.model.scene.actuators), len(ends)), bool)
    for a, actuator in enumerate(sim.model.scene.actuators.values()):
        if actuator.kind == "spring" and actuator.body == cluster.name:
            driven[a] = np.isin(ends, _members(sim, actuator.body, actuator.region)).all(axis=1)
    return Threads(ends, color, THREAD * _usual_length(cluster), driven)


def _strongest(driven: np.ndarray, activation: np.ndarray) -> np.ndarray:
    """Of all that drive an item, ``driven`` (actuators, items), the largest activation; NaN where nothing does."""
    loads = np.where(driven, np.asarray(activation, float)[:, None], 0.0)
    strongest = np.argmax(np.abs(loads), axis=0)
    return np.where(driven.any(axis=0), np.take_along_axis(loads, strongest[None], 0)[0], np.nan)


def _periods(sim: Simulation, extent: np.ndarray) -> np.ndarray:
    """(dim,) extent of the domain along periodic axes, m, infinite along the others."""
    periodic = [sim.model.scene.domain.wall(f"{a}_lower").kind == "periodic" for a in "xyz"[: sim.dim]]
    return np.where(periodic, extent, np.inf)


def _driven(sim: Simulation) -> np.ndarray:
    actuators = sim.model.scene.actuators
    driven = np.zeros((len(actuators), sim.n), bool)
    for a, actuator in enumerate(actuators.values()):
        if actuator.body is not None and actuator.kind != "spring":
            driven[a, _members(sim, actuator.body, actuator.region)] = True
    return driven


def _value(sim: Simulation, path: str, otherwise) -> np.ndarray:
    """A quantity as it is now, of the first environment."""
    if path not in sim.model.quantities:
        return np.asarray(otherwise, float)
    value = sim.get(path)
    return value if sim.envs == 1 else value[0]


def _obstacles(sim: Simulation, lower: np.ndarray, upper: np.ndarray) -> Iterator[Mesh | Polygon]:
    soft = sim.model.continuum
    for contact in _contacts(sim):
        shape, position = contact.shape, _value(sim, contact.position, 0.0)
        reach = 0.0 if shape.bounded else float(np.linalg.norm(upper - lower))
        drawn = shape.surface(lower - reach - position, upper + reach - position)
        given = sim.model.scene.obstacles[contact.name].color
        color = OBSTACLE if given is None else tuple(np.asarray(given, float))
        images = soft.contacts.images(contact, position) if soft is not None else [position]
        for place in images:
            if len(images) > 1:  # those that only come near are not drawn
                ends = placed(contact, place, drawn.vertices if sim.dim == 3 else np.concatenate(drawn.loops))
                if ((ends.max(axis=0) <= lower) | (ends.min(axis=0) >= upper)).any():
                    continue
            if sim.dim == 3:
                if len(drawn.faces):
                    yield Mesh(placed(contact, place, drawn.vertices), drawn.faces, color)
            else:
                yield from (Polygon(placed(contact, place, loop), color) for loop in _joined(drawn.loops))


def _contacts(sim: Simulation) -> list[ObstacleContact]:
    """Obstacles of a scene: those of the grid, or read again where there is none."""
    if sim.model.continuum is not None:
        return sim.model.continuum.contacts.obstacles
    scene, out = sim.model.scene, []
    for name, obstacle in scene.obstacles.items():
        shape = resolve_shape(obstacle.shape, scene.dim, f"obstacles.{name}.shape", scene.folder)
        turn = np.asarray(obstacle.rotation, float)
        out.append(ObstacleContact(name, shape, turn, obstacle.kind, f"obstacles.{name}.position", None))
    return out


def _joined(loops: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outlines with their holes cut in: each hole (clockwise) is joined to the nearest outline by a seam."""
    outer = [loop for loop in loops if _area(loop) > 0]
    for hole in (loop for loop in loops if _area(loop) < 0):
        if outer:
            gaps = [np.linalg.norm(o[:, None] - hole[None], axis=2) for o in outer]
            k = int(np.argmin([gap.min() for gap in gaps]))
            i, j = np.unravel_index(int(np.argmin(gaps[k])), gaps[k].shape)
            ring = np.roll(hole, -int(j), axis=0)
            outer[k] = np.concatenate([outer[k][: i + 1], ring, ring[:1], outer[k][i:]])
    return outer


def _area(loop: np.ndarray) -> float:
    x, y = (loop - loop.mean(axis=0)).T
    return 0.5 * float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


def _camera(camera, dim: int) -> "Camera2D | Camera3D | None":
    """The scene's camera; ``None`` where it says too little to stand on its own."""
    if dim == 2:
        if camera.center is None or camera.height is None:
            return None
        x, y = (float(c) for c in camera.center)
        return Camera2D((x, y), float(camera.height))
    if camera.position is None or camera.target is None:
        return None
    position, target = (tuple(float(c) for c in np.ravel(p)) for p in (camera.position, camera.target))
    up = (0.0, 0.0, 1.0) if camera.up is None else tuple(float(c) for c in camera.up)
    return Camera3D(position, target, up, 35.0 if camera.fov is None else float(camera.fov))  # type: ignore[arg-type]


def _carried(vertices: np.ndarray, particles: np.ndarray, first: int, total: int) -> "csr_matrix":
    """Weights (v, total) that give each vertex's place from the particles', exact for any affine motion.

    Moving least squares over the nearest particles: Lancaster and Salkauskas, "Surfaces generated by moving least
    squares methods", Math. Comp. 37, 1981.
    """
    from scipy.sparse import csr_matrix
    from scipy.spatial import KDTree

    distance, near = KDTree(particles).query(vertices, CARRIERS)
    size = distance[:, -1:] + 1e-12
    offset = (particles[near] - vertices[:, None]) / size[:, :, None]
    weight = np.exp(-4.0 * (distance / size) ** 2)
    basis = np.concatenate([np.ones((*near.shape, 1)), offset], axis=2)
    moment = np.einsum("vk,vki,vkj->vij", weight, basis, basis)
    moment += np.diag([0.0, *([1e-7] * 3)]) * moment[:, :1, :1]  # particles all in a plane say nothing across it
    first_row = np.linalg.solve(moment, np.broadcast_to(np.eye(4)[:, :1], (len(vertices), 4, 1)))[:, :, 0]
    values = weight * np.einsum("vki,vi->vk", basis, first_row)
    rows = np.repeat(np.arange(len(vertices)), CARRIERS)
    return csr_matrix((values.ravel(), (rows, first + near.ravel())), shape=(len(vertices), total))
