"""Notes on what is allowed but hardly meant: obstacles too thin or in the way, matter that collapsed in a run."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.continuum.contacts import Contacts, ObstacleContact
from taichi_sim.compile.continuum.matter import BodyMatter
from taichi_sim.scene.shapes.shape import Shape

#: Cells an obstacle has to be thick: thinner ones have no inside on the grid, and matter leaks through.
THICK = 2.0
#: Depth, in cells, and share of a body's particles from which on a start inside an obstacle is mentioned.
DEEP, MANY = 0.5, 0.01
#: Particles of a body whose distance from an obstacle is asked for, at most.
LOOKED_AT = 5_000
#: Boxes an obstacle's bounds are divided into along each axis to find where it is thickest, and boxes divided further.
PIECES, MOST_BOXES = 5, 500


def obstacle_notes(contacts: Contacts, positions: dict[str, np.ndarray], x: dict[str, np.ndarray]) -> list[str]:
    """Obstacles too thin for the grid, and :func:`overlaps`."""
    dx = contacts.plan.spacing
    notes = []
    for o in contacts.obstacles:
        thickness = thickness_below(o.shape, THICK * dx)
        if thickness < 0.99 * THICK * dx:
            notes.append(
                f"obstacles.{o.name} is {thickness:.3g} m thick, {thickness / dx:.2g} cells of {dx:.3g} m: matter "
                f"leaks through obstacles thinner than {THICK:g} cells; make it thicker or domain.spacing smaller"
            )
    return notes + list(overlaps(contacts, positions, x).values())


def overlaps(
    contacts: Contacts, positions: dict[str, np.ndarray], x: dict[str, np.ndarray]
) -> dict[tuple[str, str], str]:
    """Notes on bodies that start inside an obstacle, by the names of both.

    ``positions`` (dim,) of the obstacles by name and ``x`` (n, dim) of the bodies' particles by name, m.
    """
    dx = contacts.plan.spacing
    notes = {}
    for o in contacts.obstacles:
        for body, points in x.items():
            every = -(-len(points) // LOOKED_AT)
            depth = -_distance(contacts, o, positions[o.name], points[::every])
            inside = int(np.count_nonzero(depth > DEEP * dx)) * every
            if inside > MANY * len(points):
                about = "about " if every > 1 else ""
                notes[body, o.name] = (
                    f"bodies.{body}: {about}{inside} of {len(points)} particles start inside obstacles.{o.name}, up to "
                    f"{depth.max():.3g} m deep ({depth.max() / dx:.2g} cells): they stay or burst out; move one of both"
                )
    return notes


def _distance(contacts: Contacts, obstacle: ObstacleContact, position: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(n,) signed distance, m, asked for only of points that may be inside; infinite for the others."""
    shape, near = obstacle.shape, np.arange(len(points))
    if shape.bounded and not any(contacts.plan.periodic):
        reach = np.linalg.norm(np.maximum(*(np.abs(end - shape.centre) for end in shape.bounds())))  # however turned
        near = np.flatnonzero(np.linalg.norm(points - shape.centre - position, axis=1) < reach)
    out = np.full(len(points), np.inf)
    if len(near):
        out[near] = contacts.distance(obstacle, position, points[near])
    return out


def thickness_below(shape: Shape, enough: float) -> float:
    """Twice the largest depth inside ``shape``, m, to 5 % or 2 % of ``enough``; known to be that, no more is sought.

    Boxes that fill the shape's bounds are halved along every axis wherever a deeper place may still be: no point is
    deeper than the middle of its box plus half the box's diagonal.
    """
    if not shape.bounded:
        return float("inf")
    lower, upper = shape.bounds()
    size, best = (upper - lower) / PIECES, 0.0
    middles = lower + size * (_lattice(np.arange(PIECES), len(size)) + 0.5)
    halves = _lattice(np.array([-0.25, 0.25]), len(size))
    while True:
        depth = -shape.signed_distance(middles)
        best, margin = max(best, float(depth.max())), float(np.linalg.norm(size)) / 2
        promising = np.flatnonzero(depth + margin > 1.05 * best)
        if 2 * best >= enough or not len(promising) or margin < 0.01 * enough:
            return 2 * best
        promising = promising[np.argsort(-depth[promising], kind="stable")[:MOST_BOXES]]
        middles = (middles[promising, None] + halves * size).reshape(-1, len(size))
        size = size / 2


def _lattice(places: np.ndarray, dim: int) -> np.ndarray:
    """(len(places)^dim, dim) all points with these coordinates."""
    return np.stack(np.meshgrid(*[places] * dim, indexing="ij"), axis=-1).reshape(-1, dim)


class Overlaps:
    """:func:`overlaps` at the start of a run, looked for anew only when something was moved."""

    def __init__(self, contacts: Contacts, slices: dict[str, slice]) -> None:
        self.contacts, self.slices = contacts, slices
        self._seen: list[np.ndarray] = []
        self._notes: list[str] = []

    def notes(self, values: Values, x: np.ndarray) -> list[str]:
        """``x`` (envs, particles, dim) as the bodies start, m. Of several environments the first with an overlap that
        none before it has is named."""
        now = [x, *(values[o.position] for o in self.contacts.obstacles)]
        if len(now) == len(self._seen) and all(map(np.array_equal, now, self._seen)):
            return self._notes
        found: dict[tuple[str, str], str] = {}
        for e in range(len(x) if len(now) > 1 else 0):
            if e > 0 and all(np.array_equal(a[e], a[0]) for a in now):
                continue
            places = {o.name: values[o.position][e] for o in self.contacts.obstacles}
            begin = {name: x[e, where] for name, where in self.slices.items()}
            for pair, note in overlaps(self.contacts, places, begin).items():
                found.setdefault(pair, f"{note} (environment {e})" if e > 0 else note)
        self._seen, self._notes = [a.copy() for a in now], list(found.values())
        return self._notes


@dataclass
class Collapse:
    """Volume ratios J = det F out of the range a law holds in, over the states of a run that were looked at."""

    bodies: list[BodyMatter]

    def __post_init__(self) -> None:
        #: By body and side: particles, how many there are, the farthest J and its time.
        self.worst: dict[tuple[str, str], tuple[int, int, float, float]] = {}

    def look(self, deformation: np.ndarray, time: float) -> None:
        """``deformation`` (envs, particles, dim, dim) in body order at ``time``, s."""
        J = determinant(deformation)
        for body in self.bodies:
            mine = J[:, body.particles]
            low, high = body.law.volume_ratios
            for side, bad, farthest in (("low", mine < low, mine.min()), ("high", mine > high, mine.max())):
                count = int(np.count_nonzero(bad))
                if count > self.worst.get((body.name, side), (0,))[0]:
                    self.worst[body.name, side] = (count, mine.size, float(farthest), time)

    def notes(self) -> list[str]:
        """A sentence for every body and side."""
        return [
            f"bodies.{name}: {count} of {size} particles are {_SIDES[side]} {farthest:.3g} times their volume at t = "
            f"{time:.4g} s: the body {_FATE[side]} and the run cannot be trusted; use a stiffer material, a finer grid "
            "or a gentler motion"
            for (name, side), (count, size, farthest, time) in self.worst.items()
        ]


_SIDES = {"low": "squeezed to as little as", "high": "stretched to as much as"}
_FATE = {"low": "collapsed", "high": "was torn apart"}


def determinant(F: np.ndarray) -> np.ndarray:
    """Determinants (…) of small matrices (…, dim, dim), much faster than a general one."""
    if F.shape[-1] == 2:
        return F[..., 0, 0] * F[..., 1, 1] - F[..., 0, 1] * F[..., 1, 0]
    a, b, c = (F[..., i, :] for i in range(3))
    return (
        a[..., 0] * (b[..., 1] * c[..., 2] - b[..., 2] * c[..., 1])
        + a[..., 1] * (b[..., 2] * c[..., 0] - b[..., 0] * c[..., 2])
        + a[..., 2] * (b[..., 0] * c[..., 1] - b[..., 1] * c[..., 0])
    )
