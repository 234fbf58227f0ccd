"""Mass-spring networks on the host: points, springs and bends of rods, cloth, lattices and meshes. Pure NumPy."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

__all__ = ["Network", "cloth", "edges_of", "lattice", "mesh", "opposite_corners", "rod"]


@dataclass(frozen=True)
class Network:
    """Points (n, dim), m; ``edges`` (m, 2) and ``bends`` (k, 3), the bend in the middle, as indices of points.

    ``cells`` are the triangles, tetrahedra or boxes it was made of (empty for a rod).
    """

    points: np.ndarray
    edges: np.ndarray
    bends: np.ndarray
    cells: np.ndarray

    def __post_init__(self) -> None:
        if not np.isfinite(self.points).all():
            i = int(np.argmin(np.isfinite(self.points).all(axis=1)))
            raise ValueError(f"point {i} = {self.points[i]} is not finite")
        for what, rows in (("edge", self.edges), ("bend", self.bends)):
            _check(what, rows, len(self.points))

    @property
    def rest_lengths(self) -> np.ndarray:
        """(m,) distances of the ends of the edges, m."""
        a, b = self.points[self.edges[:, 0]], self.points[self.edges[:, 1]]
        return np.linalg.norm(b - a, axis=1)

    def lumped_mass(self, total: float) -> np.ndarray:
        """(n,) masses, kg, that add up to ``total``: each edge gives its ends a share like its length.

        Points without an edge are an error: they would weigh nothing.
        """
        share = np.repeat(self.rest_lengths, 2)
        weight = np.bincount(self.edges.ravel(), weights=share, minlength=len(self.points))
        if not (weight > 0).all():
            i = int(np.argmin(weight))
            raise ValueError(f"point {i} has no edge of any length, so no mass; join it to others or leave it out")
        return total * weight / weight.sum()

    def with_edges(self, edges: np.ndarray) -> "Network":
        """The same with more edges; those that are there already are not added twice."""
        return replace(self, edges=_unique(np.concatenate([self.edges, edges])))


def _check(what: str, rows: np.ndarray, points: int) -> None:
    if len(rows) == 0:
        return
    bad = (rows < 0).any(axis=1) | (rows >= points).any(axis=1)
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(f"{what} {i} = {tuple(map(int, rows[i]))} names a point that is not there (0 … {points - 1})")
    ordered = np.sort(rows, axis=1)
    same = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if same.any():
        i = int(np.argmax(same))
        raise ValueError(f"{what} {i} = {tuple(map(int, rows[i]))} joins a point to itself; leave it out")


def _rows(values: object, width: int) -> np.ndarray:
    return np.asarray(values, dtype=np.int64).reshape(-1, width)


def _unique(edges: np.ndarray) -> np.ndarray:
    """Each edge once, smaller index first, in the order in which they came."""
    ordered = np.sort(_rows(edges, 2), axis=1)
    _, first = np.unique(ordered, axis=0, return_index=True)
    return ordered[np.sort(first)]


def edges_of(cells: np.ndarray) -> np.ndarray:
    """(m, 2) edges of simplices (k, 3) triangles or (k, 4) tetrahedra, each once."""
    cells = np.asarray(cells, dtype=np.int64)
    pairs = list(itertools.combinations(range(cells.shape[1]), 2))
    return _unique(cells[:, pairs].reshape(-1, 2))


def opposite_corners(faces: np.ndarray) -> np.ndarray:
    """(m, 2) pairs of corners that face each other across an edge two triangles share: springs against bending.

    An edge of more than two triangles gives the pairs of those that follow one another.
    """
    faces = _rows(faces, 3)
    sides = np.concatenate([np.sort(faces[:, [a, b]], axis=1) for a, b in ((0, 1), (1, 2), (2, 0))])
    apex = np.concatenate([faces[:, c] for c in (2, 0, 1)])
    order = np.lexsort((sides[:, 1], sides[:, 0]))
    sides, apex = sides[order], apex[order]
    shared = (sides[1:] == sides[:-1]).all(axis=1) & (apex[1:] != apex[:-1])
    return _unique(np.column_stack([apex[:-1], apex[1:]])[shared])


def mesh(points: np.ndarray, cells: np.ndarray, bending: bool = False) -> Network:
    """A network with the edges of triangles (k, 3) or tetrahedra (k, 4); with ``bending`` cross springs between the
    opposite corners of triangles that share an edge."""
    cells = np.asarray(cells, dtype=np.int64)
    points = np.asarray(points, dtype=float)
    _check("cell", cells, len(points))
    made = Network(points, edges_of(cells), _rows([], 3), cells)
    return made.with_edges(opposite_corners(cells)) if bending and cells.shape[1] == 3 else made


def rod(points: np.ndarray) -> Network:
    """Points (n, dim) joined one after the other, with a bend at each one between."""
    points = np.asarray(points, dtype=float)
    i = np.arange(len(points))
    return Network(points, np.column_stack([i[:-1], i[1:]]), np.column_stack([i[:-2], i[1:-1], i[2:]]), _rows([], 2))


def lattice(
    cells: Sequence[int], spacing: float, origin: Sequence[float] | None = None, braced: bool = True
) -> Network:
    """Points at the corners of ``cells`` squares or cubes along each axis, with springs along their edges and, if
    ``braced``, along the diagonals of all faces and cubes (against shear)."""
    dim = len(cells)
    shape = tuple(n + 1 for n in cells)
    index = np.arange(int(np.prod(shape))).reshape(shape)
    points = spacing * np.indices(shape).reshape(dim, -1).T + (np.zeros(dim) if origin is None else np.asarray(origin))
    edges = []
    for way in itertools.product((-1, 0, 1), repeat=dim):
        forward = next((c for c in way if c), 0) > 0
        if not forward or (not braced and np.count_nonzero(way) > 1):
            continue
        near = tuple(slice(1, None) if c < 0 else slice(0, n - 1 if c else n) for c, n in zip(way, shape, strict=True))
        far = tuple(slice(0, -1) if c < 0 else slice(1 if c else 0, n) for c, n in zip(way, shape, strict=True))
        edges.append(np.column_stack([index[near].ravel(), index[far].ravel()]))
    corners = [tuple(slice(c, n - 1 + c) for c, n in zip(way, shape, strict=True)) for way in np.ndindex(*(2,) * dim)]
    boxes = np.column_stack([index[corner].ravel() for corner in corners])
    return Network(points, _unique(np.concatenate(edges)), _rows([], 3), boxes)


def cloth(cells: tuple[int, int], corner: np.ndarray, side_u: np.ndarray, side_v: np.ndarray) -> Network:
    """A parallelogram of ``cells`` by ``cells`` with springs along both sides and both diagonals of every cell, and
    bends along rows and columns."""
    flat = lattice(cells, 1.0)
    u, v = flat.points[:, :1] / cells[0], flat.points[:, 1:] / cells[1]
    index = np.arange(len(flat.points)).reshape(cells[0] + 1, cells[1] + 1)
    bends = [np.stack([i[:-2], i[1:-1], i[2:]], axis=-1).reshape(-1, 3) for i in (index, index.T)]
    points = np.asarray(corner, float) + u * np.asarray(side_u, float) + v * np.asarray(side_v, float)
    return replace(flat, points=points, bends=np.concatenate(bends))
