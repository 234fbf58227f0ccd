"""Putting a triangle surface in order: merged vertices, one orientation, parts, holes. Pure NumPy and SciPy."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.scene.winding import open_edges, winding_number


@dataclass(frozen=True)
class Shell:
    """A cleaned triangle surface in the units it was given in.

    ``part`` (f,) numbers the connected pieces, ``holes`` (h, 2) are the open edges left, ``notes`` say what was
    changed on the way.
    """

    vertices: np.ndarray
    faces: np.ndarray
    part: np.ndarray
    holes: np.ndarray
    notes: tuple[str, ...]


def plural(count: int, word: str) -> str:
    """``1 edge``, ``2 edges``."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def point_text(point: np.ndarray) -> str:
    """``(0.1, 0.25, 0)`` with four digits."""
    return "(" + ", ".join(f"{float(x):.4g}" for x in point) + ")"


def face_volumes(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Signed volume (f,) of the tetrahedra between the faces and the middle of the bounds."""
    middle = (vertices.min(axis=0) + vertices.max(axis=0)) / 2
    a, b, c = (vertices[faces[:, corner]] - middle for corner in range(3))
    return np.einsum("ij,ij->i", a, np.cross(b, c)) / 6


def moments(vertices: np.ndarray, faces: np.ndarray) -> tuple[float, np.ndarray]:
    """∫w dV and ∫w x dV of the winding number w of a closed surface, by the divergence theorem (exact)."""
    middle = (vertices.min(axis=0) + vertices.max(axis=0)) / 2
    volumes = face_volumes(vertices, faces)
    first = np.einsum("f,fcx->x", volumes, vertices[faces] - middle) / 4
    total = float(volumes.sum())
    return total, first + middle * total


def second_moments(vertices: np.ndarray, faces: np.ndarray, about: np.ndarray) -> np.ndarray:
    """∫w (x − a)(x − a)ᵀ dV (3, 3) of the winding number w of a closed surface about the point a (exact)."""
    corner = vertices[faces] - about
    volumes = np.einsum("ij,ij->i", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])) / 6
    both = np.concatenate([corner, corner.sum(axis=1, keepdims=True)], axis=1)
    return np.einsum("f,fvi,fvj->ij", volumes, both, both) / 20


def _components(pairs: np.ndarray, count: int) -> tuple[int, np.ndarray]:
    """Number of connected groups of ``count`` things joined by ``pairs`` (p, 2), and the group (count,) of each."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    graph = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    return connected_components(graph, directed=False)


def _merge(vertices: np.ndarray, faces: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """One vertex for all within ``tolerance`` of each other (0: with equal coordinates); faces that vanish go."""
    if tolerance == 0:
        vertices, index = np.unique(vertices, axis=0, return_inverse=True)
        faces = index.reshape(-1)[faces]
    else:
        from scipy.spatial import KDTree

        pairs = KDTree(vertices).query_pairs(tolerance, output_type="ndarray")
        _, label = _components(pairs, len(vertices))
        _, first = np.unique(label, return_index=True)
        vertices, faces = vertices[first], label[faces]
    a, b, c = faces.T
    return vertices, faces[(a != b) & (b != c) & (c != a)]


def _without_twins(faces: np.ndarray) -> np.ndarray:
    """Each triangle at most once; two that lie back to back cancel."""
    smallest = np.argmin(faces, axis=1)
    turned = np.take_along_axis(faces, (smallest[:, None] + np.arange(3)) % 3, axis=1)
    sign = np.where(turned[:, 1] < turned[:, 2], 1, -1)
    _, first, index = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_inverse=True)
    net = np.bincount(index.reshape(-1), weights=sign, minlength=len(first))
    kept = first[net != 0]
    wrong = np.sign(net[net != 0]) != sign[kept]
    result = faces[kept]
    result[wrong] = result[wrong][:, ::-1]
    return result[np.argsort(kept)]


def _neighbours(faces: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Faces (p, 2) that share an edge of exactly two, whether they run along it the same way (p,), and the other
    edges (q, 2) with their number of faces in a third column."""
    count = len(faces)
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    owner = np.tile(np.arange(count), 3)
    _, index, amount = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True, return_counts=True)
    index = index.reshape(-1)
    order = np.argsort(index, kind="stable")
    first = np.cumsum(amount) - amount
    two = amount == 2
    left, right = order[first[two]], order[first[two] + 1]
    pairs = np.column_stack([owner[left], owner[right]])
    odd = np.column_stack([np.sort(edges[order[first[~two]]], axis=1), amount[~two]])
    return pairs, edges[left, 0] == edges[right, 0], odd


def _orient(faces: np.ndarray) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Faces turned to agree with their neighbours (the majority decides), their part, how many were turned, and how
    many lie on one-sided parts that cannot agree."""
    pairs, same, _ = _neighbours(faces)
    count = len(faces)
    parts, part = _components(pairs, count)
    # two copies of every face, as it is and turned; an edge joins the copies that agree
    here = np.concatenate([pairs[:, 0], pairs[:, 0] + count])
    there = np.where(same, pairs[:, 1] + count, pairs[:, 1])
    there = np.concatenate([there, np.where(same, pairs[:, 1], pairs[:, 1] + count)])
    _, sheet = _components(np.column_stack([here, there]), 2 * count)
    kept, turned = sheet[:count], sheet[count:]
    one_sided = kept == turned
    lower = kept < turned
    votes = np.bincount(part, weights=np.where(lower, 1, -1), minlength=parts)
    flip = ~one_sided & (lower != (votes[part] >= 0))
    faces = faces.copy()
    faces[flip] = faces[flip][:, ::-1]
    return faces, part, int(flip.sum()), int(one_sided.sum())


def _outward(vertices: np.ndarray, faces: np.ndarray, part: np.ndarray, notes: list[str]) -> np.ndarray:
    """Parts turned outward: negative volume is kept only for a cavity, a part that lies inside another one."""
    parts = int(part.max()) + 1
    corner = vertices[faces]
    # relative to the part's own middle, so that open parts have a volume of their own
    size = np.bincount(part, minlength=parts)
    centre = corner.mean(axis=1)
    middle = np.stack([np.bincount(part, weights=x, minlength=parts) / size for x in centre.T], axis=1)
    a, b, c = (corner[:, k] - middle[part] for k in range(3))
    volume = np.bincount(part, weights=np.einsum("ij,ij->i", a, np.cross(b, c)) / 6, minlength=parts)
    turned = np.full(parts, bool(volume.sum() < 0))
    volume = np.where(turned, -volume, volume)
    doubtful = np.flatnonzero(volume < 0)
    if len(doubtful):
        now = np.where(turned[part, None], faces[:, ::-1], faces)
        # a point just outside the part, behind its largest face: only the other parts wind around it
        first = vertices[now[:, 0]]
        normal = np.cross(vertices[now[:, 1]] - first, vertices[now[:, 2]] - first)
        length = np.linalg.norm(normal, axis=1)
        order = np.lexsort((length, part))
        face = order[np.cumsum(size) - 1][doubtful]
        reach = 1e-7 * np.linalg.norm(np.ptp(vertices, axis=0))
        outside = centre[face] - reach * normal[face] / np.maximum(length[face], 1e-300)[:, None]
        turned[doubtful] ^= winding_number(vertices, now, outside) < 0.5
    if turned.any():
        which = "inside out" if parts == 1 else f"{plural(int(turned.sum()), 'part')} of {parts} inside out"
        notes.append(f"{which}: turned")
    return np.where(turned[part, None], faces[:, ::-1], faces)


def clean(vertices: np.ndarray, faces: np.ndarray) -> Shell:
    """Merge equal vertices, drop twins, make the winding agree and point outward, find the holes.

    ``vertices`` (v, 3) finite, ``faces`` (f, 3) indices. A surface that is still open is merged once more with a
    tolerance of 1e-6 of its size, which closes the seams of files that round their numbers.
    """
    notes: list[str] = []
    given = len(faces)
    vertices, faces = _merge(np.asarray(vertices, dtype=float), np.asarray(faces, dtype=np.int64), 0.0)
    faces = _without_twins(faces) if len(faces) else faces
    if len(faces) == 0:
        return Shell(vertices, faces, np.zeros(0, dtype=np.int64), np.zeros((0, 2), dtype=np.int64), ())
    _, _, odd = _neighbours(faces)
    if np.any(odd[:, 2] == 1):
        size = float(np.linalg.norm(np.ptp(vertices, axis=0)))
        closer, fewer = _merge(vertices, faces, 1e-6 * size)
        _, _, still = _neighbours(fewer) if len(fewer) else (None, None, odd)
        if np.sum(still[:, 2] == 1) < np.sum(odd[:, 2] == 1):
            vertices, faces, odd = closer, _without_twins(fewer), still
            notes.append(f"vertices closer than {1e-6 * size:.1e} merged")
    if len(faces) < given:
        notes.append(f"{plural(given - len(faces), 'degenerate or doubled face')} dropped")
    faces, part, flipped, one_sided = _orient(faces)
    if flipped:
        notes.append(f"winding of {plural(flipped, 'face')} turned to agree with the neighbours")
    if one_sided:
        notes.append(f"{plural(one_sided, 'face')} on a one-sided part")
    faces = _outward(vertices, faces, part, notes)
    crowded = odd[odd[:, 2] > 2]
    if len(crowded):
        place = point_text(vertices[crowded[0, :2]].mean(axis=0))
        notes.append(f"{plural(len(crowded), 'edge')} shared by more than two faces, the first near {place}")
    used, index = np.unique(faces, return_inverse=True)
    vertices, faces = vertices[used], index.reshape(-1, 3)
    return Shell(vertices, faces, part, open_edges(faces)[0], tuple(notes))
