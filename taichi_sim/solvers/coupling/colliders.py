"""From shapes fixed to bodies to the arrays of the coupling."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from taichi_sim.solvers.coupling.arrays import CouplingPlan
from taichi_sim.solvers.coupling.stepper import Coupling
from taichi_sim.solvers.mpm.arrays import MpmPlan
from taichi_sim.solvers.mpm.layers import MOST_PLATES
from taichi_sim.solvers.particles.arrays import ParticlesPlan
from taichi_sim.solvers.rigid.arrays import RigidPlan
from taichi_sim.solvers.shapes.distance import BOX, CAPSULE, CYLINDER, GRID, PLANE, SPHERE
from taichi_sim.solvers.shapes.samples import BEYOND

#: Matter on two sides of a body, less than this many cells apart, is within one stencil of the grid.
THIN = 3.0

#: What a collider is like where a material meets it.
SKIN = ("friction", "stiction", "offset", "rate", "cap", "compliance")


def default_skin(
    spacing: float, wave_speed: float, particle_spacing: float, dt: float, friction: float = 0.5
) -> dict[str, float]:
    """Values that hold for most scenes: hard, penetration taken back in the time a wave takes to cross seven cells, and
    never faster than 3 % of the wave speed (a faster one throws bodies that overlap at the start). Welds take their
    drift back within five steps: they begin without any, and the slower they are, the farther a load draws them along.

    Particles touch half a spacing from a surface: that is how far their matter reaches. What rests on a block as it was
    seeded does not sink, and what floats displaces its own volume (at a quarter it floats .2 cells too deep).

    ``spacing`` of the grid and ``particle_spacing`` in m, ``wave_speed`` m/s, ``dt`` s.
    """
    return {
        "friction": friction,
        "stiction": 1e-3,
        "offset": 0.5 * particle_spacing,
        "rate": 1.0 / max(7.0 * spacing / wave_speed, 20.0 * dt),
        "cap": 0.03 * wave_speed,
        "compliance": 0.0,
        "weld_rate": 0.2 / dt,
        "weld_cap": 0.1 * wave_speed,
    }


@dataclass
class _Collider:
    kind: int
    body: int
    size: list[float]
    place: np.ndarray
    axes: np.ndarray
    samples: np.ndarray | None = None
    first_node: np.ndarray | None = None
    spacing: float = 0.0
    thin: int = -1
    turned: bool = False


class Colliders:
    """Collects colliders and fills a :class:`Coupling`. Lengths in m.

    ``body`` is a body of the rigid solver, -1 for the world; ``place`` the collider's origin and ``axes`` its axes
    (columns, (dim, dim)) in those of the body. Environments begin alike.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._all: list[_Collider] = []
        self._welds: list[tuple[int, np.ndarray, np.ndarray]] = []

    def _add(self, kind: int, body: int, size: Sequence[float], place, axes, **more) -> None:
        turned = np.eye(3)
        if axes is not None:
            turned[: self.dim, : self.dim] = axes
        if not np.allclose(turned.T @ turned, np.eye(3), atol=1e-9):
            raise ValueError(f"collider {len(self._all)}: axes must be unit vectors at right angles")
        at = np.zeros(self.dim) if place is None else np.asarray(place, float)
        self._all.append(_Collider(kind, body, [*map(float, size)] + [0.0] * (4 - len(size)), at, turned, **more))

    def _positive(self, **sizes: float) -> None:
        for name, value in sizes.items():
            if not value > 0:
                raise ValueError(f"collider {len(self._all)}: {name} must be above 0 m, got {value}")

    def sphere(self, body: int, radius: float, place=None) -> None:
        """A sphere, or a disc in 2-D."""
        self._positive(radius=radius)
        self._add(SPHERE, body, [radius], place, None)

    def box(self, body: int, half: Sequence[float] | np.ndarray, place=None, axes=None, edge: float = 0.0) -> None:
        """A box of half widths ``half``, with edges rounded to the radius ``edge``."""
        self._positive(width=min(half), edge=edge or 1.0, core=min(half) - edge or 1.0)
        self._add(BOX, body, [*half, *[10 * BEYOND] * (3 - self.dim), edge], place, axes)

    def capsule(self, body: int, radius: float, half: float, place=None, axes=None) -> None:
        """All within ``radius`` of a line along x, of half length ``half``."""
        self._positive(radius=radius, length=half)
        self._add(CAPSULE, body, [radius, half], place, axes)

    def cylinder(self, body: int, radius: float, half: float, place=None, axes=None, edge: float = 0.0) -> None:
        """A cylinder along x, of half length ``half``; 3-D only."""
        if self.dim == 2:
            raise ValueError(f"collider {len(self._all)}: a cylinder needs three dimensions; use a box")
        self._positive(radius=radius, length=half, core=min(half, radius) - edge or 1.0)
        self._add(CYLINDER, body, [radius, half, edge], place, axes)

    def plane(self, body: int, normal: Sequence[float], place) -> None:
        """The half-space behind ``place``, seen along ``normal``."""
        n = np.asarray(normal, float) / np.linalg.norm(normal)
        rest = np.linalg.qr(np.column_stack([n, np.eye(self.dim)]))[0][:, 1 : self.dim]
        axes = np.column_stack([n, rest])
        if np.linalg.det(axes) < 0:
            axes[:, -1] *= -1.0
        self._add(PLANE, body, [], place, axes)

    def sampled(self, body: int, values: np.ndarray, first_node, spacing: float, place=None, axes=None) -> None:
        """A shape given by signed distances ``values`` (an axis a dimension) on a lattice, which must reach beyond the
        shape by more than what counts as near. They are coefficients of quadratic B-splines (``shapes.samples``); the
        one entry of its size is the factor by which the lattice is enlarged."""
        if values.ndim != self.dim or min(values.shape) < 4 or not np.isfinite(values).all():
            raise ValueError(f"collider {len(self._all)}: samples must be finite, {self.dim} axes of at least 4 nodes")
        self._positive(spacing=spacing)
        first = np.append(np.asarray(first_node, float), [0.0] * (3 - self.dim))
        self._add(GRID, body, [1.0], place, axes, samples=values, first_node=first, spacing=float(spacing))

    def weld(self, body: int, particles: Sequence[int] | np.ndarray, places: np.ndarray) -> None:
        """Weld ``particles``, numbered as in the first state, to ``body`` at ``places`` (n, dim) from its centre of
        mass, in its axes. They touch nothing any more."""
        mine = np.asarray(particles, int)
        taken = np.concatenate([np.zeros(0, int), *(other for _, other, _ in self._welds)])
        if not len(mine) or len(np.unique(mine)) < len(mine) or np.isin(mine, taken).any():
            raise ValueError(f"weld {len(self._welds)}: needs particles, each of them once")
        self._welds.append((body, mine, np.asarray(places, float).reshape(len(mine), self.dim)))

    def part(self, below: float, scale: Sequence[float] | np.ndarray | None = None, but: Sequence[int] = ()) -> int:
        """Make plates (``thin.py``) of the thin boxes among the colliders, but for those numbered, as added, in
        ``but``: one side is thinner than ``below``, m, the others are not. ``scale`` of each multiplies its sizes.
        Returns their number, which is what ``MpmPlan.plates`` must be.
        """
        count = 0
        for i, c in enumerate(self._all):
            size = self.sides(i) * (1.0 if scale is None else scale[i])
            thin = np.flatnonzero(size < below * (1 - 1e-9))
            c.thin = int(thin[0]) if c.kind == BOX and len(thin) == 1 and i not in but and count < MOST_PLATES else -1
            count += c.thin >= 0
        return count

    def are_plates(self) -> list[bool]:
        """Which colliders are, as added."""
        return [c.thin >= 0 for c in self._all]

    def sides(self, i: int) -> np.ndarray:
        """(dim,) lengths of collider ``i``, as added, along its axes, m; of shapes without edges infinite."""
        c, r = self._all[i], self._all[i].size[0]
        kinds = {SPHERE: [r, r, r], BOX: c.size[:3], CAPSULE: [r + c.size[1], r, r], CYLINDER: [c.size[1], r, r]}
        return 2.0 * np.array(kinds.get(c.kind, [np.inf] * 3)[: self.dim])

    def one_sided(self, matter: Mapping[int, np.ndarray]) -> list[int]:
        """Numbers of the plates, as added, that have all of the matter (as in :meth:`away_from`) on one side."""
        found = []
        for i, c in enumerate(self._all):
            if c.thin >= 0:
                over = (matter[c.body] - c.place) @ c.axes[: self.dim, c.thin] > 0
                found += [i] if over.all() or not over.any() else []
        return found

    def away_from(self, matter: Mapping[int, np.ndarray]) -> None:
        """Turn the normals of plates that are alone on their body away from most of the matter, given as points (n,
        dim), m, from the origin of a body along its axes: two that hold matter between them then agree on its layer."""
        for i, axis, sign in self.plates():
            c = self._sorted()[i]
            if c.body in matter and sum(other.thin >= 0 for other in self._all if other.body == c.body) == 1:
                at = (matter[c.body] - c.place) @ c.axes[: self.dim, : self.dim]
                beside = np.abs(np.delete(at, axis, axis=1)) < np.delete(c.size[: self.dim], axis)
                over = at[beside.all(axis=1)] if beside.all(axis=1).any() else at
                c.turned = bool(sign * np.sign(over[:, axis]).sum() > 0) != c.turned

    def plates(self) -> tuple[tuple[int, int, int], ...]:
        """Their colliders, axes and signs: normals point away from the middle of the body's colliders, so that those of
        a vessel's walls agree on what is outside."""
        found = []
        for i, c in enumerate(self._sorted()):
            if c.thin >= 0:
                away = c.place - np.mean([other.place for other in self._all if other.body == c.body], axis=0)
                out = away @ c.axes[: self.dim, c.thin]
                sign = -1 if (out < -1e-9 * max(c.size[: self.dim])) != c.turned else 1
                found.append((i, c.thin, sign))
        return tuple(found)

    def _sorted(self) -> list[_Collider]:
        return sorted(self._all, key=lambda c: c.body)

    def places(self) -> np.ndarray:
        """(colliders, dim) origins, in the order of the coupling, m."""
        return np.array([c.place for c in self._sorted()]).reshape(-1, self.dim)

    def sizes(self) -> np.ndarray:
        """(colliders, 4) sizes as ``distance`` wants them, in the order of the coupling, m."""
        return np.array([c.size for c in self._sorted()]).reshape(-1, 4)

    def plan(self, mpm: MpmPlan, rigid: RigidPlan, room: int | None = None) -> CouplingPlan:
        """Sizes of a scene with continua; ``room`` contacts at most in a substep of an environment."""
        plates = self.plates()
        if len(plates) != mpm.plates:
            raise ValueError(f"{len(plates)} colliders are plates, the plan of the matter has {mpm.plates}")
        plan = self._plan(
            rigid, mpm.envs, mpm.partitions, mpm.particles, len(mpm.laws), mpm.rows, room, 0.5 * mpm.spacing
        )
        return replace(plan, thin=plates)

    def plan_points(
        self, points: ParticlesPlan, rigid: RigidPlan, band: float, room: int | None = None
    ) -> CouplingPlan:
        """Sizes of a scene with networks and grains, which bodies look at within ``band``, m, beyond touch: farther
        than anything moves in a step."""
        return self._plan(rigid, points.envs, points.shares, points.particles, 1, points.particles, room, band)

    def _plan(
        self, rigid: RigidPlan, envs: int, shares: int, particles: int, laws: int, rows: int, room: int | None,
        band: float,
    ) -> CouplingPlan:  # fmt: skip
        if not self._all and not self._welds:
            raise ValueError("a coupling needs at least one collider or weld")
        worst = max([c.body for c in self._all] + [body for body, _, _ in self._welds])
        if worst >= rigid.bodies:
            raise ValueError(f"a collider belongs to body {worst}, there are {rigid.bodies} bodies")
        samples = sum(c.samples.size for c in self._all if c.samples is not None)
        welds = tuple((int(p), body, a) for a, (body, mine, _) in enumerate(self._welds) for p in mine)
        return CouplingPlan(
            self.dim, envs, shares, particles, laws, rows, tuple((c.kind, c.body) for c in self._sorted()), samples,
            room or 2 * particles, band, welds,
        )  # fmt: skip

    def fill(self, coupling: Coupling, skin: dict[str, float]) -> None:
        """Write shapes and welds, and one ``skin`` for all colliders, materials and welds."""
        store, plan, found = coupling.store, coupling.plan, self._sorted()
        if self._welds:
            store.write("weld_place", np.tile(np.concatenate([at for _, _, at in self._welds]), (plan.envs, 1)))
            for name in ("rate", "cap"):
                store.write(f"weld_{name}", np.full(plan.envs * plan.attachments, float(skin[f"weld_{name}"])))
        if not found:
            return
        store.write("place", np.tile(self.places(), (plan.envs, 1)))
        store.write("size", np.tile(self.sizes(), (plan.envs, 1)))
        store.write("axes", np.array([c.axes for c in found]))
        for name in SKIN:
            store.write(f"skin_{name}", np.full(plan.envs * len(found) * plan.rows, float(skin[name])))
        sampling, lattice, samples = np.zeros((len(found), 4), np.int32), np.zeros((len(found), 4)), []
        at = 0
        for i, c in enumerate(found):
            if c.samples is not None and c.first_node is not None:
                sampling[i] = [at, *c.samples.shape, *[1] * (3 - self.dim)]
                lattice[i] = [*c.first_node, c.spacing]
                samples.append(c.samples.ravel())
                at += c.samples.size
        store.write("sampling", sampling)
        store.write("lattice_of", lattice)
        if samples:
            store.write("sample", np.concatenate(samples))
