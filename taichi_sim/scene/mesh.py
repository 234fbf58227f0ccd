"""Solid bodies from mesh files: read whatever trimesh reads, check that it encloses a volume, measure it.

trimesh is used to read files and for nothing else, so none of its undeclared companions (rtree, networkx, …) is ever
needed. Inside is where the winding number exceeds one half: parts that overlap or nest count once, a cavity (an
inner shell that points inward) stays empty, and an open surface can be repaired by filling.
"""

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.scene import surface as surfaces
from taichi_sim.scene.distance import Triangles
from taichi_sim.scene.surface import plural, point_text
from taichi_sim.scene.winding import cap, closed_winding, crossings, solid_angle

#: Columns along each axis when overlaps are looked for, and when their volume is measured.
COLUMNS = (128, 320)
#: Sample points when the volume of a repaired mesh is measured.
SAMPLES = 100_000
#: Largest share of the filled volume whose winding number may be undecided (between .3 and .7) in a repair.
UNDECIDED = 0.25


@dataclass(frozen=True)
class Mesh:
    """A solid bounded by triangles, m.

    ``vertices`` (v, 3) and ``faces`` (f, 3) are the surface, ``part`` (f,) its connected pieces, ``fan`` (c, 3) the
    triangles that close the holes of a repaired mesh (their apexes are the last of ``corners``). ``volume`` (m³),
    ``centre`` (3,) and ``spread`` (3, 3), the second moment about the centre, belong to the solid, overlaps counted
    once. ``notes`` say what was changed.
    """

    vertices: np.ndarray
    faces: np.ndarray
    part: np.ndarray
    corners: np.ndarray
    fan: np.ndarray
    volume: float
    centre: np.ndarray
    spread: np.ndarray
    notes: tuple[str, ...]
    _cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner (3,) of the surface."""
        return self.vertices.min(axis=0), self.vertices.max(axis=0)

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Which of ``points`` (n, 3) are inside, bool (n,)."""
        inside = np.zeros(len(points), dtype=bool)
        lower, upper = self.bounds
        near = np.all((points >= lower) & (points <= upper), axis=1)
        if near.any():
            inside[near] = _winding(self.vertices, self.faces, self.corners, self.fan, points[near]) > 0.5
        return inside

    @property
    def triangles(self) -> Triangles:
        """The surface, holes closed, prepared for distance queries."""
        if "triangles" not in self._cache:
            self._cache["triangles"] = Triangles(self.corners[np.concatenate([self.faces, self.fan])])
        return self._cache["triangles"]

    def signed_distance(self, points: np.ndarray) -> np.ndarray:
        """Distance (n,) to the nearest triangle, m, negative inside. Exact; within overlapping parts a bound."""
        distance = self.triangles.distance(points)
        return np.where(self.contains(points), -distance, distance)


def _winding(
    vertices: np.ndarray, faces: np.ndarray, corners: np.ndarray, fan: np.ndarray, points: np.ndarray
) -> np.ndarray:
    if len(fan) == 0:
        return closed_winding(vertices, faces, points)
    if len(fan) >= len(faces):
        return solid_angle(vertices[faces], points)
    return closed_winding(corners, np.concatenate([faces, fan]), points) - solid_angle(corners[fan], points)


def read_mesh(path: Path) -> tuple[np.ndarray, np.ndarray, str | None]:
    """Vertices (v, 3), faces (f, 3) and the unit named in the file (or ``None``), exactly as the file holds them.

    A file with several parts, or a scene of them, is merged with their transforms applied.

    Raises ``ValueError`` naming the file if it is missing, unreadable, empty, has no triangles, or holds vertices
    that are not finite.
    """
    if not path.is_file():
        raise ValueError(f"{path}: {'is a folder, not a mesh file' if path.is_dir() else 'no such file'}")
    import trimesh

    known = trimesh.available_formats()
    kind = path.suffix.lower().lstrip(".")
    if kind not in known:
        raise ValueError(f"{path}: cannot read {kind or 'files without ending'!r}; use stl, obj, ply, off or glb")
    options: dict[str, Any] = {"skip_materials": True} if kind == "obj" else {}
    try:
        loaded: Any = trimesh.load(str(path), force="scene", process=False, **options)
    except Exception as error:  # a reader may raise anything on a broken file
        raise ValueError(f"{path}: could not be read as {kind} ({type(error).__name__}: {error})") from error
    vertices, faces, offset, other = [], [], 0, set()
    for node in loaded.graph.nodes_geometry:
        transform, name = loaded.graph[node]
        geometry = loaded.geometry[name]
        if not isinstance(geometry, trimesh.Trimesh):
            other.add(type(geometry).__name__)
            continue
        matrix = np.asarray(transform, dtype=float)
        corner = np.asarray(geometry.vertices, dtype=float).reshape(-1, 3) @ matrix[:3, :3].T + matrix[:3, 3]
        face = np.asarray(geometry.faces, dtype=np.int64).reshape(-1, 3)
        if np.linalg.det(matrix[:3, :3]) < 0:
            face = face[:, ::-1]
        vertices.append(corner)
        faces.append(face + offset)
        offset += len(corner)
    if not vertices or sum(map(len, faces)) == 0:
        found = f" (it holds: {', '.join(sorted(other))})" if other else ""
        raise ValueError(f"{path}: the file is empty: no triangles{found}; export the surface as triangles")
    points, triangles = np.concatenate(vertices), np.concatenate(faces)
    if triangles.min() < 0 or triangles.max() >= len(points):
        raise ValueError(f"{path}: a face names a vertex that does not exist; export the file again")
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(bad):
        first, more = points[bad[0]].tolist(), f" ({len(bad)} such vertices)" if len(bad) > 1 else ""
        raise ValueError(f"{path}: vertex {bad[0]} = {first} is not finite{more}; export the file again")
    return points, triangles, getattr(loaded, "units", None)


def solid(vertices: np.ndarray, faces: np.ndarray, repair: bool = False, name: str = "mesh") -> Mesh:
    """Check that triangles enclose a volume and measure it.

    ``vertices`` (v, 3), ``faces`` (f, 3). With ``repair`` holes are filled where the winding number exceeds one half.

    Raises ``ValueError`` if the surface is open and ``repair`` is off (naming the open edges), if it is too open to
    be filled, or if it encloses nothing.
    """
    whole = surfaces.clean(vertices, faces)
    if len(whole.faces) == 0:
        raise ValueError(f"{name}: the surface encloses nothing (a flat sheet?); a body needs a closed surface")
    if len(whole.holes) and not repair:
        where = point_text(whole.vertices[whole.holes[0]].mean(axis=0))
        parts = int(whole.part.max()) + 1
        pieces = f" in {parts} loose parts" if parts > 1 else ""
        raise ValueError(
            f"{name}: the surface is not closed: {plural(len(whole.holes), 'open edge')}{pieces}, the first at {where}"
            " in file units; close it in a mesh editor, or set repair = true to fill it by winding number"
        )
    corners, fan = cap(whole.vertices, whole.faces)
    closed = np.concatenate([whole.faces, fan])
    volume, first = surfaces.moments(corners, closed)
    lower, upper = whole.vertices.min(axis=0), whole.vertices.max(axis=0)
    middle = (lower + upper) / 2
    second = surfaces.second_moments(corners, closed, middle)
    size = float(np.prod(upper - lower))
    notes = list(whole.notes)
    if len(fan):
        more, more_first, more_second, undecided = _fill(whole.vertices, whole.faces, corners, fan)
        filled = volume + more
        if not filled > 1e-6 * size or undecided > UNDECIDED * filled:
            share = f"{undecided / filled:.0%} of the volume is undecided" if filled > 1e-6 * size else "nothing inside"
            edges = plural(len(whole.holes), "open edge")
            raise ValueError(f"{name}: too open to fill ({edges}; {share}); close it in a mesh editor")
        notes.append(f"{plural(len(whole.holes), 'open edge')} filled by winding number")
    else:
        more, more_first, more_second = _overlap(whole.vertices, whole.faces, COLUMNS[0])
        if abs(more) > 1e-4 * abs(volume):
            more, more_first, more_second = _overlap(whole.vertices, whole.faces, COLUMNS[1])
        once = volume + more
        if abs(more) > 1e-4 * abs(once):
            notes.append(f"overlapping parts counted once ({abs(more) / abs(once):.2%} of the volume)")
        if not once > 1e-6 * size:
            raise ValueError(f"{name}: the surface encloses nothing (a flat sheet?); a body needs a closed surface")
    volume, centre = volume + more, (first + more_first) / (volume + more)
    arm = centre - middle
    return Mesh(
        whole.vertices,
        whole.faces,
        whole.part,
        corners,
        fan,
        volume,
        centre,
        second + more_second - volume * np.outer(arm, arm),
        tuple(f"{name}: {n}" for n in notes),
    )


def _overlap(vertices: np.ndarray, faces: np.ndarray, columns_along: int) -> tuple[float, np.ndarray, np.ndarray]:
    """What to add to ∫w dV, ∫w x dV and ∫w (x − m)(x − m)ᵀ dV, m the middle of the bounds, so that every inside point
    counts once: ∫(1[w > 0] − w) (…) dV.

    Exact along z, midpoint rule over columns in x and y; exactly zero where parts do not overlap.
    """
    lower, upper = vertices.min(axis=0), vertices.max(axis=0)
    step = (upper[:2] - lower[:2]) / columns_along
    grid = [lower[axis] + (np.arange(columns_along) + 0.5) * step[axis] for axis in range(2)]
    columns = np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1).reshape(-1, 2)
    column, height, sign = crossings(vertices, faces, columns)
    order = np.lexsort((height, column))
    column, height, sign = column[order], height[order], sign[order]
    # walking upward, the winding number above a crossing is minus the running sum of signs (0 below everything)
    winding = -np.cumsum(sign)[:-1]
    same = column[1:] == column[:-1]
    extra = np.where(same, (winding > 0).astype(float) - winding, 0.0)
    low, high = height[:-1], height[1:]
    weight = extra * (high - low) * step[0] * step[1]
    at = np.column_stack([columns[column[:-1]], (low + high) / 2])
    arm = at - (lower + upper) / 2
    second = np.einsum("c,ci,cj->ij", weight, arm, arm)
    second += np.diag([*weight.sum() * step**2, weight @ (high - low) ** 2]) / 12
    return float(weight.sum()), weight @ at, second


def _fill(
    vertices: np.ndarray, faces: np.ndarray, corners: np.ndarray, fan: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, float]:
    """What to add to ∫w dV, ∫w x dV and ∫w (x − m)(x − m)ᵀ dV, m the middle of the bounds, of the surface closed by
    fans to get the region where the winding number of the open surface exceeds one half; and the volume where it lies
    between .3 and .7. Midpoint rule."""
    lower, upper = vertices.min(axis=0), vertices.max(axis=0)
    extent = upper - lower
    wanted = int(np.clip(2e7 / min(len(fan), len(faces)), 20_000, SAMPLES))
    side = (np.prod(np.maximum(extent, 1e-3 * extent.max())) / wanted) ** (1 / 3)
    count = np.maximum(np.rint(extent / side).astype(int), 1)
    grid = [lower[axis] + (np.arange(count[axis]) + 0.5) * extent[axis] / count[axis] for axis in range(3)]
    points = np.stack(np.meshgrid(*grid, indexing="ij"), axis=-1).reshape(-1, 3)
    cell = float(np.prod(extent / count))
    capped = closed_winding(corners, np.concatenate([faces, fan]), points)
    if len(fan) >= len(faces):
        winding = solid_angle(vertices[faces], points)
    else:
        winding = capped - solid_angle(corners[fan], points)
    extra = ((winding > 0.5).astype(float) - capped) * cell
    undecided = np.count_nonzero((winding > 0.3) & (winding < 0.7)) * cell
    arm = points - (lower + upper) / 2
    second = np.einsum("c,ci,cj->ij", extra, arm, arm) + extra.sum() / 12 * np.diag((extent / count) ** 2)
    return float(extra.sum()), extra @ points, second, undecided


def place(mesh: Mesh, scale: float | np.ndarray, rotation: np.ndarray, position: np.ndarray) -> Mesh:
    """``mesh`` scaled (all axes of the file alike, or each by its own factor (3,); negative mirrors), turned by the
    matrix ``rotation`` (3, 3) about the file's origin, then moved."""
    matrix = rotation * np.broadcast_to(scale, 3)
    size = float(np.linalg.det(matrix))

    def move(points: np.ndarray) -> np.ndarray:
        return points @ matrix.T + position

    faces, fan = (mesh.faces, mesh.fan) if size > 0 else (mesh.faces[:, ::-1], mesh.fan[:, ::-1])
    volume, centre, spread = abs(size) * mesh.volume, move(mesh.centre), abs(size) * matrix @ mesh.spread @ matrix.T
    return Mesh(move(mesh.vertices), faces, mesh.part, move(mesh.corners), fan, volume, centre, spread, mesh.notes)


@functools.lru_cache(maxsize=8)
def _load(path: str, stamp: tuple[int, int], repair: bool) -> tuple[Mesh, str | None]:
    vertices, faces, unit = read_mesh(Path(path))
    return solid(vertices, faces, repair, Path(path).name), unit


def load_mesh(path: Path, repair: bool = False) -> tuple[Mesh, str | None]:
    """The solid in a mesh file, in file units, and the unit the file names. Read once per version of the file.

    Raises ``ValueError`` as :func:`read_mesh` and :func:`solid` do.
    """
    path = Path(path)
    stamp = (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else (0, 0)
    return _load(str(path), stamp, bool(repair))


#: Metres per unit of the units mesh files come in.
UNITS = {"millimetres": 0.001, "centimetres": 0.01, "inches": 0.0254, "feet": 0.3048}
_NAMES = {
    **dict.fromkeys(("mm", "millimeter", "millimeters", "millimetre", "millimetres"), 0.001),
    **dict.fromkeys(("cm", "centimeter", "centimeters", "centimetre", "centimetres"), 0.01),
    **dict.fromkeys(("in", "inch", "inches"), 0.0254),
    **dict.fromkeys(("ft", "foot", "feet"), 0.3048),
}


def likely_scale(extent: np.ndarray, room: np.ndarray, unit: str | None = None) -> str:
    """Sentence that suggests the scale with which a mesh of ``extent`` (3,) file units fits into ``room`` (3,) m."""
    named = _NAMES.get((unit or "").lower())
    if named is not None:
        return f"the file says its unit is {unit}: set scale = {named:g}"
    size, least = float(np.max(extent)), float(np.min(room / np.maximum(extent, 1e-300)))
    fitting = [(name, scale) for name, scale in UNITS.items() if scale <= least and size * scale > 0.01 * room.min()]
    if not fitting:
        digits = 10.0 ** np.floor(np.log10(0.5 * least))
        return f"set scale to at most {least:.3g}, for example {np.floor(0.5 * least / digits) * digits:g}"
    texts = [f"scale = {scale:g} if the file is in {name} (then {size * scale:.3g} m)" for name, scale in fitting]
    return "set " + " or ".join(texts)
