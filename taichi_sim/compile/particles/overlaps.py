"""Sentences on starts that cannot be: what lies behind a wall, and what overlaps so deeply that it would fly apart."""

import numpy as np

from taichi_sim.compile.particles.obstacles import Standing
from taichi_sim.compile.particles.surfaces import Wall
from taichi_sim.solvers.particles.arrays import CLAN, HELD

#: Share of a radius by which what touches may overlap at the start.
DEEPEST = 0.1
#: Share of the domain by which a point without a radius may lie behind a wall: rounding.
ROUNDING = 1e-6

#: Paths and the points of each.
Where = list[tuple[str, slice]]


def walls_message(
    walls: list[Wall], offsets: np.ndarray, tags: np.ndarray, where: Where, x: np.ndarray, radii: np.ndarray,
    extent: np.ndarray,
) -> str:  # fmt: skip
    """On the deepest point behind a wall, of those that move; empty where there is none.

    ``offsets`` (walls,), ``x`` (points, dim) and ``radii`` (points,), m, of one environment; ``extent`` (dim,) of the
    domain, m.
    """
    for path, points in where:
        held = tags[points, HELD] > 0
        room = np.where(radii[points] > 0, DEEPEST * radii[points], ROUNDING * float(extent.max()))
        for wall, offset in zip(walls, offsets, strict=True):
            depth = radii[points] - (x[points] @ wall.normal - offset)
            i = int(np.argmax(np.where(held, -np.inf, depth - room)))
            if depth[i] > room[i] and not held[i]:
                return (
                    f"{path}: point {i} at {place_text(x[points][i])} m starts {depth[i]:.3g} m deep in {wall.name!r}; "
                    "move it or the wall"
                )
    return ""


def obstacles_message(
    standing: list[Standing], tags: np.ndarray, where: Where, x: np.ndarray, radii: np.ndarray
) -> str:
    """On the deepest of those that move in an obstacle; empty where none is deep in one."""
    for path, points in where:
        held = tags[points, HELD] > 0
        for one in standing:
            depth = radii[points] - one.distance(x[points])
            i = int(np.argmax(np.where(held, -np.inf, depth - DEEPEST * radii[points])))
            if depth[i] > DEEPEST * radii[points][i] and not held[i]:
                return (
                    f"{path}: point {i} at {place_text(x[points][i])} m starts {depth[i]:.3g} m deep in "
                    f"obstacles.{one.name}; move one of both"
                )
    return ""


def pairs_message(tags: np.ndarray, where: Where, x: np.ndarray, radii: np.ndarray) -> str:
    """On the two that overlap most, relative to the smaller; empty where none do deeply."""
    from scipy.spatial import KDTree

    balls = np.flatnonzero(radii > 0)
    if len(balls) < 2:
        return ""
    tree = KDTree(x[balls])
    pairs = balls[tree.query_pairs(2.0 * float(radii[balls].max()) * (1 - DEEPEST / 2), output_type="ndarray")]
    a, b = pairs.T
    free = ~((tags[a, HELD] > 0) & (tags[b, HELD] > 0)) & ~((tags[a, CLAN] > 0) & (tags[a, CLAN] == tags[b, CLAN]))
    a, b = a[free], b[free]
    if not len(a):
        return ""
    depth = radii[a] + radii[b] - np.linalg.norm(x[a] - x[b], axis=1)
    share = depth / np.minimum(radii[a], radii[b])
    i = int(np.argmax(share))
    if share[i] <= DEEPEST:
        return ""
    names = sorted({path for path, points in where for k in (a[i], b[i]) if points.start <= k < points.stop})
    who = f"two of {names[0]}" if len(names) == 1 else " and ".join(names)
    return (
        f"{who} overlap by {depth[i]:.3g} m ({share[i]:.0%} of a radius) at the start, at {place_text(x[a[i]])} m; "
        "move them apart or make radii smaller"
    )


def place_text(x: np.ndarray) -> str:
    """Coordinates of a place."""
    return "(" + ", ".join(f"{c:.4g}" for c in x) + ")"
