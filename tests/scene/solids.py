"""Small triangle solids and mesh files for the tests of geometry."""

from pathlib import Path

import numpy as np
import pytest

MESHES = Path(__file__).resolve().parents[3] / "shared" / "data" / "meshes"
needs_meshes = pytest.mark.skipif(not MESHES.is_dir(), reason=f"no recorded meshes at {MESHES}")

_QUADS = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])


def cube(lower: float | list[float] = 0.0, size: float | list[float] = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (8, 3) and outward triangles (12, 3) of a box."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
    return np.asarray(lower) + corners * np.asarray(size), np.concatenate([_QUADS[:, [0, 1, 2]], _QUADS[:, [0, 2, 3]]])


def ball(level: int = 3, radius: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and outward triangles of a sphere made from an octahedron."""
    points = [*np.eye(3), *-np.eye(3)]
    faces = [(0, 1, 2), (1, 3, 2), (3, 4, 2), (4, 0, 2), (1, 0, 5), (3, 1, 5), (4, 3, 5), (0, 4, 5)]
    corner = np.array([[points[i] for i in face] for face in faces])
    for _ in range(level):
        a, b, c = corner[:, 0], corner[:, 1], corner[:, 2]
        ab, bc, ca = a + b, b + c, c + a
        corner = np.concatenate([np.stack(t, axis=1) for t in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))])
        corner /= np.linalg.norm(corner, axis=2, keepdims=True)
    return radius * corner.reshape(-1, 3), np.arange(3 * len(corner)).reshape(-1, 3)


def together(*solids: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Several triangle lists as one."""
    first = np.cumsum([0] + [len(v) for v, _ in solids])
    return np.concatenate([v for v, _ in solids]), np.concatenate(
        [f + n for (_, f), n in zip(solids, first[:-1], strict=True)]
    )


def inside_out(solid: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The same surface, facing the other way."""
    return solid[0], solid[1][:, ::-1]


def write_obj(path: Path, vertices: np.ndarray, faces: np.ndarray) -> Path:
    """An OBJ file."""
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in vertices.tolist()]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in faces.tolist()]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_stl(path: Path, vertices: np.ndarray, faces: np.ndarray) -> Path:
    """A binary STL file: every triangle with its own corners, in single precision."""
    record = np.zeros(len(faces), dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("extra", "<u2")])
    record["corners"] = vertices[faces]
    path.write_bytes(b"\0" * 80 + np.uint32(len(faces)).tobytes() + record.tobytes())
    return path
