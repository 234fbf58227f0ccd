"""A mesh as rigid contact sees it: vertices of its hull, places on its surface, and a lattice of signed distances."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.scene.distance import cover, distance_grid
from taichi_sim.scene.mesh import Mesh
from taichi_sim.scene.shapes.mesh_file import MeshShape
from taichi_sim.solvers.rigid.colliders import Collider, Lattice, mesh

#: Nodes along the longest side of a mesh, unless a spacing is given; and nodes beyond its surface.
NODES, BEYOND = 48, 8


@dataclass(frozen=True)
class SolidMesh:
    """``collider`` about the centre of volume (3,) of the mesh, and second moments (6,) xx yy zz xy xz yz about it per
    mass, m²."""

    collider: Collider
    centre: np.ndarray
    moments: np.ndarray


def solid_mesh(surface: Mesh, spacing: float | None = None, places: float | None = None) -> SolidMesh:
    """Prepare a checked mesh for contact.

    ``spacing`` is that of the lattice (default: 1/48 of the longest side), by which edges and whatever is thinner are
    rounded; ``places`` (default: two spacings) how far apart the points of its surface are that touch other meshes.
    Raises ``ValueError`` where the mesh is thinner than two spacings.
    """
    lower, upper = surface.bounds
    side = upper - lower
    spacing = float(side.max() / NODES) if spacing is None else spacing
    if side.min() < 2 * spacing:
        raise ValueError(
            f"mesh: {side.min():.3g} m thin, samples {spacing:.3g} m apart cannot show it; use a smaller spacing"
        )
    centre = surface.centre
    grid = distance_grid(MeshShape(surface), 2 * spacing, BEYOND * spacing)
    lattice = Lattice(grid.origin - centre, grid.spacing, coefficients(grid.values))
    corners = _hull(surface.vertices)
    triangles = surface.corners[np.concatenate([surface.faces, surface.fan])]
    on = np.concatenate([surface.vertices, _on_edges(triangles, places or 2 * spacing)])
    on = np.concatenate([on, cover(triangles, places or 2 * spacing)])
    on = on[surface.signed_distance(on) > -0.01 * spacing]  # not where parts overlap
    _, first = np.unique(np.round(on / (1e-3 * spacing)).astype(np.int64), axis=0, return_index=True)
    kept = on[np.sort(first)]
    return SolidMesh(mesh(corners - centre, kept - centre, lattice), centre, _moments(surface, grid.values, grid))


def coefficients(values: np.ndarray) -> np.ndarray:
    """Coefficients of quadratic B-splines through the samples: unfiltered, a surface of radius r would lie spacing²/8r
    too far in for each of its curvatures."""
    from scipy.ndimage import spline_filter

    return np.asarray(spline_filter(values, order=2, mode="mirror"))


def _hull(vertices: np.ndarray) -> np.ndarray:
    from scipy.spatial import ConvexHull

    return vertices[np.sort(ConvexHull(vertices).vertices)]


def _on_edges(triangles: np.ndarray, spacing: float) -> np.ndarray:
    """Places (n, 3) on all edges, at most ``spacing`` apart, without their ends."""
    starts, ends = triangles.reshape(-1, 3), np.roll(triangles, -1, axis=1).reshape(-1, 3)
    pieces = np.ceil(np.linalg.norm(ends - starts, axis=1) / spacing).astype(int)
    found = [
        starts[pieces == n][:, None] + t[None, :, None] * (ends - starts)[pieces == n][:, None]
        for n in np.unique(pieces[pieces > 1])
        for t in (np.arange(1, n) / n,)
    ]
    return np.concatenate([f.reshape(-1, 3) for f in found]) if found else np.zeros((0, 3))


def _moments(surface: Mesh, values: np.ndarray, grid) -> np.ndarray:
    """Second moments about the centre per mass: by tetrahedra, or by nodes inside where parts overlap."""
    closed = surface.corners[np.concatenate([surface.faces, surface.fan])] - surface.centre
    a, b, c = closed[:, 0], closed[:, 1], closed[:, 2]
    volume = np.einsum("fi,fi->f", a, np.cross(b, c)) / 6
    s = a + b + c
    second = np.einsum("f,fi,fj->ij", volume / 20, s, s)
    second += sum(np.einsum("f,fi,fj->ij", volume / 20, x, x) for x in (a, b, c))
    total = volume.sum()
    if abs(total - surface.volume) > 1e-6 * surface.volume:
        axes = [grid.origin[d] + grid.spacing * np.arange(n) for d, n in enumerate(values.shape)]
        x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)[values < 0] - surface.centre
        second, total = x.T @ x, float(len(x))
    second = second / total
    trace = np.trace(second)
    return np.array([*(trace - np.diag(second)), -second[0, 1], -second[0, 2], -second[1, 2]])
