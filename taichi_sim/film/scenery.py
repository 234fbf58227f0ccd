"""How a scene looks, and a picture of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taichi_sim.film.drawn import Sheet, Skin, Solid, Threads, strongest
from taichi_sim.film.parts import (
    CARRIERS,
    camera_of,
    carried,
    clusters_of,
    driven_by,
    members_of,
    obstacles_of,
    periods_of,
    radii_of,
    solids_of,
    threads_of,
    value_of,
)
from taichi_sim.simulation import Simulation
from taichi_sim.viz.camera import Camera2D, Camera3D, view_bounds
from taichi_sim.viz.picture import Line, Marker, Mesh, Picture, Polygon, palette
from taichi_sim.viz.repeat import cut_line, cut_mesh, wrapped

#: How much the shading of particles of continua is blended into one surface.
SMOOTH = 0.7
#: A surface with more triangles is shown by its particles.
MOST_FACES = 200_000


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
        driven = driven_by(sim)
        solid = {m.name: m.law.kind == "solid" for m in (soft.matter.bodies if soft is not None else ())}
        skins = []
        for k, body in enumerate(bodies):
            where = sim.model.slices[body.name]
            color = palette(k) if body.color is None else tuple(body.color)
            colors[where], radius[where] = color, 0.5 * body.spacing
            if sim.dim == 3 and solid[body.name] and not driven[:, where].any():
                surface = body.surface()
                if 0 < len(surface.faces) <= MOST_FACES and body.count >= CARRIERS:
                    weights = carried(surface.vertices, body.position, where.start, sim.n)
                    skins.append(Skin(weights, surface.faces, color))
                    shown[where] = False
        solids = tuple(solids_of(sim, len(bodies)))
        if sim.model.rigid is not None:
            shown[sim.model.rigid.points] = False
        threads, sheets = [], []
        for color, cluster, where in clusters_of(sim, len(bodies) + len(solids)):
            colors[where] = color
            radius[where] = radii_of(sim, cluster, where)
            if len(cluster.faces):
                sheets.append(Sheet(where.start + cluster.faces, color))
                shown[where] = False
            elif len(cluster.edges):
                threads.append(threads_of(sim, cluster, where, color))
        lower, upper = (np.asarray(x, float) for x in (scene.domain.lower, scene.domain.upper))
        aims = [(name, o) for name, o in scene.objectives.items() if o.kind == "distance" and "target" in o.parameters]
        size, period = 0.018 * float((upper - lower).max()), periods_of(sim, upper - lower)
        targets = [wrapped(value_of(sim, f"objectives.{name}.target", o.target), lower, period) for name, o in aims]
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
            obstacles=tuple(obstacles_of(sim, lower, upper)),
            markers=tuple(Marker(tuple(target), size) for target in targets),
            traced=tuple(members_of(sim, o.body, o.region) for _, o in aims),
            lower=lower,
            upper=upper,
            period=period,
            floor_visible=scene.domain.wall("z_lower").kind != "periodic",
            camera=camera_of(sim.scene.camera, sim.dim),
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
            mixed = strongest(self.driven, activation)[self.shown]
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
