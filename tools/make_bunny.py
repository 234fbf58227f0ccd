"""Makes scenes/meshes/bunny.obj: a sitting bunny-like figure, 0.2 m tall, from blended balls.

The surface is the zero level of a smooth union of ellipsoids, meshed by naive surface nets (one vertex in every grid
cell the surface passes, one quadrilateral across every grid edge it crosses) and drawn onto the level by a few Newton
steps. Run it again: the file comes out the same.
"""

import argparse
from pathlib import Path

import numpy as np

# centre (m), half axes (m); x is forward, z is up, the feet stand on z = 0
BALLS = [
    ((0.000, 0.000, 0.058), (0.062, 0.055, 0.056)),  # body
    ((0.020, 0.000, 0.085), (0.042, 0.042, 0.045)),  # chest
    ((0.048, 0.000, 0.132), (0.036, 0.033, 0.033)),  # head
    ((0.078, 0.000, 0.126), (0.018, 0.020, 0.016)),  # snout
    ((0.028, 0.022, 0.176), (0.010, 0.013, 0.036)),  # ears
    ((0.028, -0.022, 0.176), (0.010, 0.013, 0.036)),
    ((-0.064, 0.000, 0.048), (0.020, 0.020, 0.020)),  # tail
    ((0.005, 0.050, 0.032), (0.042, 0.022, 0.032)),  # haunches
    ((0.005, -0.050, 0.032), (0.042, 0.022, 0.032)),
    ((0.062, 0.026, 0.016), (0.030, 0.015, 0.016)),  # paws
    ((0.062, -0.026, 0.016), (0.030, 0.015, 0.016)),
]
BLEND = 0.006  # m, radius of the fillets


def level(points: np.ndarray) -> np.ndarray:
    """Negative inside, about a distance in m; ``points`` (n, 3)."""
    distances = []
    for centre, axes in BALLS:
        scaled = (points - centre) / np.array(axes)
        radius = np.linalg.norm(scaled, axis=1)
        distances.append((radius - 1.0) * min(axes))
    stacked = -np.array(distances) / BLEND
    highest = stacked.max(axis=0)
    return -BLEND * (highest + np.log(np.exp(stacked - highest).sum(axis=0)))


def surface(spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (v, 3) and triangles (f, 3), wound outwards."""
    low, high = np.array([-0.105, -0.095, -0.02]), np.array([0.125, 0.095, 0.235])
    counts = np.ceil((high - low) / spacing).astype(int) + 1
    axes = [low[a] + spacing * np.arange(counts[a]) for a in range(3)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    values = level(grid.reshape(-1, 3)).reshape(counts)
    inside = values < 0.0
    total, hits = np.zeros((*(counts - 1), 3)), np.zeros(counts - 1)
    edges = []
    for a in range(3):
        b, c = (a + 1) % 3, (a + 2) % 3
        first, second = [slice(None)] * 3, [slice(None)] * 3
        first[a], second[a] = slice(0, -1), slice(1, None)
        crossed = inside[tuple(first)] != inside[tuple(second)]
        for start in np.argwhere(crossed):
            end = start.copy()
            end[a] += 1
            f0, f1 = values[tuple(start)], values[tuple(end)]
            point = grid[tuple(start)] + (grid[tuple(end)] - grid[tuple(start)]) * (f0 / (f0 - f1))
            around = []
            for db, dc in ((0, 0), (-1, 0), (-1, -1), (0, -1)):
                cell = start.copy()
                cell[b] += db
                cell[c] += dc
                total[tuple(cell)] += point
                hits[tuple(cell)] += 1
                around.append(tuple(int(i) for i in cell))
            edges.append(around if inside[tuple(start)] else around[::-1])
    used = hits > 0
    index = np.full(hits.shape, -1)
    index[used] = np.arange(used.sum())
    vertices = total[used] / hits[used][:, None]
    faces = []
    for around in edges:
        p, q, r, s = (int(index[cell]) for cell in around)
        if np.linalg.norm(vertices[p] - vertices[r]) <= np.linalg.norm(vertices[q] - vertices[s]):
            faces += [(p, q, r), (p, r, s)]
        else:
            faces += [(p, q, s), (q, r, s)]
    step = 1e-5
    for _ in range(4):
        slope = np.stack(
            [(level(vertices + step * e) - level(vertices - step * e)) / (2 * step) for e in np.eye(3)], axis=1
        )
        vertices = vertices - 0.7 * slope * (level(vertices) / (slope**2).sum(axis=1))[:, None]
    return vertices, np.array(faces)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spacing", type=float, default=0.0095, help="size of the triangles, m")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "scenes" / "meshes" / "bunny.obj")
    options = parser.parse_args()
    vertices, faces = surface(options.spacing)
    lines = ["# made by tools/make_bunny.py; metres, z up"]
    lines += [f"v {x:.5f} {y:.5f} {z:.5f}" for x, y, z in vertices]
    lines += [f"f {a} {b} {c}" for a, b, c in faces + 1]
    options.out.write_text("\n".join(lines) + "\n")
    print(f"{options.out.name}: {len(vertices)} vertices, {len(faces)} triangles")


if __name__ == "__main__":
    main()
