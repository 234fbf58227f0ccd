"""Particles that fill a shape: on a lattice, or one at a random place of every cell."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.core.memory import SHARE, free_memory, size_text
from taichi_sim.scene.shapes.shape import Shape
from taichi_sim.scene.surface import plural, point_text

#: Most elements an array on the device may have.
ELEMENTS = 2**31 - 1
#: Bytes one particle takes in a rollout without gradients (state, grid share, working copies), roughly.
BYTES = {2: 250, 3: 400}
#: Candidate places looked at together, and at most.
CHUNK = 2_000_000
PLACES = 1e10
#: Points the volume of a shape and of its bounds is probed with, at most, to find parts without particles.
PROBES = (30_000, 300_000)
SEEDINGS = ("lattice", "jittered")


@dataclass(frozen=True)
class Seeded:
    """Particles of a shape: ``points`` (n, dim), m; ``volume`` (exact, of the shape) and ``centre`` (dim,), exact.

    ``cell`` (dim,) is the distance between neighbours along each axis, ``notes`` what should be known. One particle
    stands for ``volume / n``.
    """

    points: np.ndarray
    volume: float
    centre: np.ndarray
    cell: np.ndarray
    notes: tuple[str, ...]

    @property
    def particle_volume(self) -> float:
        """Volume of one particle, m³ (2-D: m², times a metre)."""
        return self.volume / len(self.points)


def seed(
    shape: Shape,
    dim: int,
    spacing: float,
    seeding: str | None = None,
    rng: np.random.Generator | None = None,
    memory: float | None = None,
) -> Seeded:
    """Fill ``shape`` with particles about ``spacing`` m apart.

    The bounds of the shape are divided into whole cells as near to ``spacing`` as they can be, so that a box is
    filled exactly. ``"lattice"`` puts a particle in the middle of every cell, ``"jittered"`` at a random place of it
    (from ``rng``, default seed 0); those outside the shape are left out. ``memory``, bytes, is what the particles may
    take (default: most of what is free).

    Raises ``ValueError`` before anything is allocated if there would be too many particles, and if the shape is
    thinner than the particles are apart or they miss its centre of volume.
    """
    seeding = seeding or shape.seeding
    if seeding not in SEEDINGS:
        raise ValueError(f"seeding must be lattice or jittered, got {seeding!r}")
    if not spacing > 0:
        raise ValueError(f"particle spacing must be > 0 m, got {spacing}")
    volume, centre = shape.moments()
    _affordable(volume, dim, spacing, memory)
    lower, upper = shape.bounds()
    extent = upper - lower
    if np.any(extent < spacing * (1 - 1e-6)):
        raise ValueError(_too_thin(float(extent.min()), spacing))
    if np.prod(extent / spacing) > PLACES:
        raise ValueError(f"the particle spacing of {spacing:.3g} m is too small for a shape {extent.max():.3g} m long")
    count = np.rint(extent / spacing).astype(int)
    cell = extent / count
    points = _fill(shape, lower, cell, count, rng if seeding == "jittered" else None, seeding)
    notes = list(shape.notes)
    if len(points) < np.prod(count):  # a box that is filled completely needs no more checks
        notes += _verify(shape, points, volume, lower, upper, cell, spacing)
    offset = float(np.linalg.norm(points.mean(axis=0) - centre))
    if offset > spacing:
        why = notes[-1] if len(notes) > len(shape.notes) else "the shape is too thin for the particles"
        raise ValueError(
            f"the particles' centre lies {offset:.3g} m from the centre of volume {point_text(centre)}: {why}; use a "
            "smaller grid spacing or more particles_per_cell"
        )
    if offset > 0.5 * spacing:
        notes.append(f"the particles' centre lies {offset:.3g} m from the centre of volume")
    return Seeded(points, volume, centre, cell, tuple(notes))


def _affordable(volume: float, dim: int, spacing: float, memory: float | None) -> None:
    wanted = volume / spacing**dim
    advice = "use a larger grid spacing or fewer particles_per_cell"
    most = ELEMENTS // dim**2
    if wanted > most:
        raise ValueError(
            f"{wanted:.3g} particles at a spacing of {spacing:.3g} m are more than the {most} an array can hold; "
            f"{advice}"
        )
    memory = SHARE * free_memory() if memory is None else memory
    if wanted * BYTES[dim] > memory:
        raise ValueError(
            f"{wanted:.3g} particles at a spacing of {spacing:.3g} m need about {size_text(wanted * BYTES[dim])}, "
            f"{size_text(memory)} are allowed; {advice}"
        )


def _too_thin(thickness: float, spacing: float) -> str:
    return (
        f"thinner ({thickness:.3g} m) than the particles are apart ({spacing:.3g} m): the particle spacing must be at "
        f"most {thickness:.3g} m, better {thickness / 3:.2g} m; use a smaller grid spacing or more particles_per_cell"
    )


def _fill(
    shape: Shape,
    lower: np.ndarray,
    cell: np.ndarray,
    count: np.ndarray,
    rng: np.random.Generator | None,
    seeding: str,
) -> np.ndarray:
    """The places inside the shape, slab by slab along x."""
    if seeding == "jittered" and rng is None:
        rng = np.random.default_rng(0)
    rest = int(np.prod(count[1:]))
    slab = max(CHUNK // max(rest, 1), 1)
    found = []
    for start in range(0, int(count[0]), slab):
        rows = np.arange(start, min(start + slab, int(count[0])))
        axes = [rows, *(np.arange(n) for n in count[1:])]
        index = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(count))
        place = rng.random(index.shape) if rng is not None else 0.5
        points = lower + (index + place) * cell
        found.append(points[shape.contains(points)])
    points = np.concatenate(found)
    if len(points) == 0:
        raise ValueError(
            f"no particle falls inside: the shape is thinner than the particle spacing of {cell.min():.3g} m; use a "
            "smaller grid spacing or more particles_per_cell"
        )
    return points


def _verify(
    shape: Shape,
    points: np.ndarray,
    volume: float,
    lower: np.ndarray,
    upper: np.ndarray,
    cell: np.ndarray,
    spacing: float,
) -> list[str]:
    """Notes on parts of the shape that the particles do not resolve. Raises ``ValueError`` where it is all of it."""
    from scipy.ndimage import distance_transform_edt
    from scipy.spatial import KDTree

    dim = len(cell)
    extent = upper - lower
    fine = max(volume / PROBES[0], float(np.prod(extent)) / PROBES[1]) ** (1 / dim)
    count = np.maximum(np.rint(extent / fine).astype(int), 1)
    axes = [lo + (np.arange(n) + 0.5) * e / n for lo, n, e in zip(lower, count, extent, strict=True)]
    probes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dim)
    inside = shape.contains(probes)
    if not inside.any():
        return [f"{plural(len(points), 'particle')} in a shape too thin to probe"]
    # twice the distance to the nearest probe outside: where it is largest along a cross-section, the thickness there
    size = extent / count
    depth = np.asarray(distance_transform_edt(np.pad(inside.reshape(tuple(count)), 1), sampling=size))
    thickness = 2 * depth[(slice(1, -1),) * dim].reshape(-1) - size.min()
    if thickness.max() < 0.98 * spacing:
        raise ValueError(_too_thin(float(thickness.max()), spacing))
    gap, _ = KDTree(points).query(probes[inside])
    lost = np.flatnonzero(inside)[gap > 1.3 * cell.max()]
    if len(lost) > 0.02 * np.count_nonzero(inside):
        where = point_text(probes[lost[np.argmax(thickness[lost])]])
        return [
            f"{len(lost) / np.count_nonzero(inside):.0%} of the volume is too thin to be met by a particle, for "
            f"example around {where}: about {thickness[lost].max():.1g} m thick with particles {spacing:.2g} m apart"
        ]
    filled = len(points) * float(np.prod(cell)) / volume
    if abs(filled - 1) > max(0.1, 4 / len(points) ** ((dim + 1) / (2 * dim))):
        return [
            f"the particles' cells fill {filled:.0%} of the volume: parts of the shape are thinner than a few particle "
            f"spacings of {spacing:.2g} m"
        ]
    return []
