"""What a scene's look is made of, read from a simulation as it is now."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from taichi_sim.compile.continuum.contacts import ObstacleContact, placed
from taichi_sim.compile.wiring import selection
from taichi_sim.film.drawn import Solid, Threads
from taichi_sim.scene.shapes.shape import resolve_shape
from taichi_sim.simulation import Simulation
from taichi_sim.viz.camera import Camera2D, Camera3D
from taichi_sim.viz.picture import OBSTACLE, Mesh, Polygon, palette

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from taichi_sim.scene.particles import Cluster

#: Particles that carry a vertex of a body's surface.
CARRIERS = 16
#: Radius of a point without one, and width of a spring, in lengths of a spring.
KNOT, THREAD = 0.06, 0.07


def members_of(sim: Simulation, body: str | None, region: str | None) -> np.ndarray:
    """Indices, over all points, of a body's or region's."""
    return sim.model.massive if body is None else selection(sim.model.pieces[body], region)


def solids_of(sim: Simulation, first: int) -> Iterator[Solid]:
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

        loops = tuple(place(loop) for loop in joined(drawn.loops))
        yield Solid(rigid.points.start + int(rigid.centres[b]), place(drawn.vertices), drawn.faces, loops, color)


def clusters_of(sim: Simulation, first: int) -> "Iterator[tuple[tuple[float, ...], Cluster, slice]]":
    """Springs and grains with their colour, from the ``first`` of the palette on, and their points."""
    family = sim.model.particle
    for k, cluster in enumerate(family.clusters if family is not None else ()):
        color = palette(first + k) if cluster.table.color is None else tuple(np.asarray(cluster.table.color, float))
        yield color, cluster, sim.model.slices[cluster.name]


def radii_of(sim: Simulation, cluster: "Cluster", where: slice) -> np.ndarray:
    """Radii of points as drawn, m: their own, or a knot's between springs."""
    if cluster.touches:
        return value_of(sim, f"{cluster.path}.radius", cluster.table.radius) * cluster.size
    return np.full(cluster.count, KNOT * _usual_length(cluster))


def _usual_length(cluster: "Cluster") -> float:
    return float(np.median(cluster.network.rest_lengths)) if cluster.network is not None else 0.0


def threads_of(sim: Simulation, cluster: "Cluster", where: slice, color: tuple[float, ...]) -> Threads:
    ends = where.start + cluster.edges
    driven = np.zeros((len(sim.model.scene.actuators), len(ends)), bool)
    for a, actuator in enumerate(sim.model.scene.actuators.values()):
        if actuator.kind == "spring" and actuator.body == cluster.name:
            driven[a] = np.isin(ends, members_of(sim, actuator.body, actuator.region)).all(axis=1)
    return Threads(ends, color, THREAD * _usual_length(cluster), driven)


def periods_of(sim: Simulation, extent: np.ndarray) -> np.ndarray:
    """(dim,) extent of the domain along periodic axes, m, infinite along the others."""
    periodic = [sim.model.scene.domain.wall(f"{a}_lower").kind == "periodic" for a in "xyz"[: sim.dim]]
    return np.where(periodic, extent, np.inf)


def driven_by(sim: Simulation) -> np.ndarray:
    actuators = sim.model.scene.actuators
    driven = np.zeros((len(actuators), sim.n), bool)
    for a, actuator in enumerate(actuators.values()):
        if actuator.body is not None and actuator.kind != "spring":
            driven[a, members_of(sim, actuator.body, actuator.region)] = True
    return driven


def value_of(sim: Simulation, path: str, otherwise) -> np.ndarray:
    """A quantity as it is now, of the first environment."""
    if path not in sim.model.quantities:
        return np.asarray(otherwise, float)
    value = sim.get(path)
    return value if sim.envs == 1 else value[0]


def obstacles_of(sim: Simulation, lower: np.ndarray, upper: np.ndarray) -> Iterator[Mesh | Polygon]:
    soft = sim.model.continuum
    for contact in _contacts(sim):
        shape, position = contact.shape, value_of(sim, contact.position, 0.0)
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
                yield from (Polygon(placed(contact, place, loop), color) for loop in joined(drawn.loops))


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


def joined(loops: Sequence[np.ndarray]) -> list[np.ndarray]:
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


def camera_of(camera, dim: int) -> "Camera2D | Camera3D | None":
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


def carried(vertices: np.ndarray, particles: np.ndarray, first: int, total: int) -> "csr_matrix":
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
