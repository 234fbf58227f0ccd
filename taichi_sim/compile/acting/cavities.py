"""Boundaries of cavities: of a hole in a body, sampled; of closed springs, as they are."""

import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.scene.bodies import BodyParticles
from taichi_sim.scene.particles import Cluster
from taichi_sim.scene.shapes.combine import Difference
from taichi_sim.scene.shapes.shape import Surface
from taichi_sim.scene.surface import plural, point_text

#: A corner of an outline is kept where it turns by more than this, rad, however near the last one is.
SHARP = 0.3
#: Times the triangles of a boundary may be cut into four.
MOST_CUTS = 6


def volume(points: np.ndarray, faces: np.ndarray) -> tuple[float, np.ndarray]:
    """Volume within outward faces (f, dim), and its gradient by the corners ``points`` (n, dim)."""
    dim = points.shape[1]
    out = np.zeros(points.shape)
    corner = points[faces] - points[faces[0, 0]]
    if dim == 2:
        a, b = corner[:, 0], corner[:, 1]
        total = 0.5 * np.sum(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])
        parts = (0.5 * np.stack([b[:, 1], -b[:, 0]], 1), 0.5 * np.stack([-a[:, 1], a[:, 0]], 1))
    else:
        a, b, c = corner[:, 0], corner[:, 1], corner[:, 2]
        total = np.sum(a * np.cross(b, c)) / 6
        parts = (np.cross(b, c) / 6, np.cross(c, a) / 6, np.cross(a, b) / 6)
    for place, part in enumerate(parts):
        np.add.at(out, faces[:, place], part)
    return float(total), out


# ---- a hole in a body ----


def hole_of(path: str, body: BodyParticles, hole: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners (n, dim), m, before the pose, and faces (f, dim) of the boundary of a hole cut out of a body, no longer
    than particles are apart.

    Raises ``ValueError`` naming ``path`` where there is no such hole, or where it is not closed.
    """
    shape, where = body.shape, f"bodies.{body.name}.shape"
    if not isinstance(shape, Difference):
        raise ValueError(
            f'{path}: {where} is a {shape.kind} without a cavity; make it kind = "difference" with the cavity in remove'
        )
    if hole >= len(shape.remove):
        raise ValueError(f"{path}.hole = {hole}: {where} has {plural(len(shape.remove), 'shape')} cut out, from 0")
    pitch = body.particle_volume ** (1.0 / len(body.center))
    cut = shape.remove[hole]
    if not cut.bounded:
        raise ValueError(f"{path}: the chamber is not closed: {where}.remove[{hole}] is a {cut.kind}, without an end")
    drawn = cut.surface()
    points, faces = _outline(drawn, pitch) if len(body.center) == 2 else _cut(drawn, pitch)
    if not len(faces) or not volume(points, faces)[0] > 0.0:
        raise ValueError(f"{path}: the cavity {where}.remove[{hole}] is empty")
    depth = shape.base.signed_distance(points)
    if (depth >= 0).all():
        raise ValueError(f"{path}: {where}.remove[{hole}] lies outside {where}.base: there is no cavity")
    if (depth > -1e-9 * pitch).any():
        at = points[int(np.argmax(depth))]
        raise ValueError(
            f"{path}: the chamber is not closed: {where}.remove[{hole}] reaches out of the base at {point_text(at)}"
        )
    for other, one in enumerate(shape.remove):
        if other == hole:
            continue
        inside = one.signed_distance(points)
        if (inside <= 0).any():
            at = points[int(np.argmin(inside))]
            raise ValueError(
                f"{path}: the chamber is not closed: {where}.remove[{hole}] opens into remove[{other}] at "
                f'{point_text(at)}; make one shape of both, kind = "union"'
            )
    return points, faces


def _outline(drawn: Surface, pitch: float) -> tuple[np.ndarray, np.ndarray]:
    loops = []
    for loop in drawn.loops:
        kept = _thinned(loop, 0.5 * pitch)
        ends = np.roll(kept, -1, axis=0)
        counts = np.maximum(1, np.ceil(np.linalg.norm(ends - kept, axis=1) / pitch - 1e-9).astype(int))
        loops.append(
            np.concatenate(
                [a + (b - a) * (np.arange(n) / n)[:, None] for a, b, n in zip(kept, ends, counts, strict=True)]
            )
        )
    surface = Surface.of_loops(loops)
    return surface.vertices, surface.faces


def _thinned(loop: np.ndarray, least: float) -> np.ndarray:
    """A closed line without points that are nearer than ``least`` to the last and do not turn."""
    before, after = loop - np.roll(loop, 1, axis=0), np.roll(loop, -1, axis=0) - loop
    turn = np.arctan2(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0], (before * after).sum(axis=1))
    kept, since = [], np.inf
    for i in range(len(loop)):
        since = since + float(np.linalg.norm(before[i]))
        if since >= least or abs(turn[i]) > SHARP:
            kept.append(i)
            since = 0.0
    return loop[kept] if len(kept) > 2 else loop


def _cut(drawn: Surface, pitch: float) -> tuple[np.ndarray, np.ndarray]:
    """Triangles cut into four, all of them, until no side is longer than twice ``pitch``: no gaps open."""
    points, faces = drawn.vertices, drawn.faces
    for _ in range(MOST_CUTS):
        sides = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        if not len(faces) or np.linalg.norm(points[sides[:, 0]] - points[sides[:, 1]], axis=1).max() <= 2.0 * pitch:
            break
        unique, index = np.unique(sides, axis=0, return_inverse=True)
        m = len(points) + index.reshape(-1, 3)
        a, b, c = faces.T
        points = np.concatenate([points, points[unique].mean(axis=1)])
        corners = ((a, m[:, 0], m[:, 2]), (m[:, 0], b, m[:, 1]), (m[:, 2], m[:, 1], c), (m[:, 0], m[:, 1], m[:, 2]))
        faces = np.concatenate([np.stack(corner, axis=1) for corner in corners])
    return points, faces


# ---- closed springs ----


def springs_of(path: str, cluster: Cluster, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points (n,) of a cluster, and faces (f, dim) as indices into these: in space the triangles, in the plane the
    springs with all corners among the ``chosen``, outward. Raises ``ValueError`` naming ``path`` unless they close."""
    inside = np.zeros(cluster.count, bool)
    inside[chosen] = True
    space = cluster.points.shape[1] == 3
    faces = cluster.faces if space else cluster.edges
    if space and not len(faces):
        kind = getattr(cluster.table, "kind", "grains")
        raise ValueError(f"{path}: {cluster.path} is a {kind} without triangles; a chamber in space is a mesh or cloth")
    faces = faces[inside[faces].all(axis=1)]
    if not len(faces):
        raise ValueError(f"{path}: no {'triangle' if space else 'spring'} of {cluster.path} lies in its region")
    faces = _oriented(path, cluster, faces) if space else _loops(path, cluster, faces)
    parts = np.unique(faces)
    index = np.full(cluster.count, -1)
    index[parts] = np.arange(len(parts))
    size = volume(cluster.points, faces)[0]
    if not abs(size) > 1e-12 * float(np.ptp(cluster.points, axis=0).max()) ** cluster.points.shape[1]:
        raise ValueError(f"{path}: the cavity of {cluster.path} is empty: it encloses no volume")
    return parts, index[faces if size > 0 else faces[:, ::-1]]


def _refuse_open(path: str, cluster: Cluster, edges: list[np.ndarray], what: str) -> None:
    if edges:
        ends = " and ".join(point_text(cluster.points[p]) for p in np.ravel(edges[0]))
        raise ValueError(
            f"{path}: the chamber is not closed: {cluster.path} has {plural(len(edges), what)}, the first at {ends}"
        )


def _loops(path: str, cluster: Cluster, edges: np.ndarray) -> np.ndarray:
    """Springs head to tail, each closed line counterclockwise."""
    near: dict[int, list[int]] = {}
    for a, b in edges.tolist():
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    _refuse_open(path, cluster, [np.array([p]) for p, ends in near.items() if len(ends) == 1], "open end")
    branching = [np.array([p]) for p, ends in near.items() if len(ends) > 2]
    if branching:
        raise ValueError(
            f"{path}: {cluster.path} branches at {point_text(cluster.points[branching[0][0]])}: a chamber in the plane "
            "is a closed line; give the region of its boundary"
        )
    found = []
    while near:
        start = at = min(near)
        line = []
        while at in near:
            line.append(at)
            ends = near.pop(at)
            at = next((p for p in ends if p in near), start)
        around = np.column_stack([line, np.roll(line, -1)])
        found.append(around if volume(cluster.points, around)[0] >= 0 else around[:, ::-1])
    return np.concatenate(found)


def _oriented(path: str, cluster: Cluster, faces: np.ndarray) -> np.ndarray:
    sides = faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    unique, index, counts = np.unique(np.sort(sides, axis=1), axis=0, return_inverse=True, return_counts=True)
    _refuse_open(path, cluster, list(unique[counts == 1]), "open edge")
    way = np.bincount(index.reshape(-1), weights=np.where(sides[:, 0] < sides[:, 1], 1.0, -1.0))
    if (counts > 2).any() or way.any():
        at = point_text(cluster.points[unique[int(np.argmax((counts > 2) | (way != 0)))][0]])
        raise ValueError(
            f"{path}: triangles of {cluster.path} at {at} do not agree on what is inside; give a surface whose "
            "triangles all turn the same way, two at every edge"
        )
    return faces


def near(name: str, known: list[str]) -> str:
    """Message for a name that nothing has."""
    return unknown("body or springs", name, known)
