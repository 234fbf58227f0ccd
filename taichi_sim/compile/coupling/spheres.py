"""Where continua and springs or grains of a scene meet."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.continuum.family import Continuum
from taichi_sim.compile.continuum.limits import step_limit
from taichi_sim.compile.family import State, add
from taichi_sim.compile.particles.family import ParticlesFamily
from taichi_sim.compile.particles.overlaps import place_text
from taichi_sim.scene.particles import Cluster
from taichi_sim.solvers.coupling.colliders import default_skin
from taichi_sim.solvers.coupling.sphere_stepper import Spheres
from taichi_sim.solvers.coupling.spheres import SpheresPlan, footprint
from taichi_sim.solvers.mpm.solver import MpmSolver
from taichi_sim.solvers.particles.arrays import HELD
from taichi_sim.solvers.particles.solver import ParticlesSolver
from taichi_sim.timeline.schedule import Costs

#: Share of the spacing of particles, beyond its radius, at which a point touches one: with and without a radius.
WITH, WITHOUT = 0.25, 0.5

#: Speed below which friction falls off, m/s.
STICTION = 1e-2

#: Share of the distance of touch by which a pair may overlap at the start.
DEEPEST = 0.5


def soft_met(names: list[str], clusters: list[Cluster]) -> list[Cluster]:
    """Springs and grains that touch continua called ``names``. Raises ``ValueError`` for what touches some of them."""
    found = []
    for cluster in clusters:
        through = [name for name in names if cluster.avoids(name)]
        if through and len(through) < len(names):
            raise ValueError(
                f"{cluster.path}.no_contact: {through[0]} is passed through, other [bodies] are not; give the names of "
                "all of them, or of none"
            )
        if names and not through:
            found.append(cluster)
    return found


@dataclass
class Meeting(Binding):
    """Contact of springs and grains with continua. ``beyond`` (points,) is added to a radius where they touch, m, and
    below 0 where they do not meet; ``rate`` 1/s and ``cap`` m/s are those of taking back penetration."""

    plan: SpheresPlan
    points: ParticlesFamily
    beyond: np.ndarray
    rate: float
    cap: float
    pool: int

    def costs(self, precision: str) -> Costs:
        """Bytes of its arrays."""
        fixed = footprint(self.plan, precision, 0, 0)
        return Costs(fixed, footprint(self.plan, precision, 1, self.pool) - fixed, 0)

    def make(self, mpm: MpmSolver, points: ParticlesSolver, segment: int, plain: bool) -> Spheres:
        """The contact of two solvers with memory for ``segment`` substeps."""
        return Spheres(self.plan, mpm, points, self.pool * (segment + 1), plain)

    def _friction(self, values: Values) -> np.ndarray:
        out = np.zeros((self.plan.envs, self.plan.points))
        for cluster, where in zip(self.points.clusters, self.points.slices, strict=True):
            given = values.get(f"{cluster.path}.friction", np.asarray(cluster.table.friction, float))
            out[:, where] = np.reshape(given, (-1, 1))
        return out

    def reach(self, values: Values) -> np.ndarray:
        """(envs, points) distance of centres at which a point and a particle touch, m; 0 where they never do."""
        return np.where(self.beyond < 0, 0.0, self.points.matter.radii(values) + self.beyond)

    def apply(self, values: Values, solver: Spheres) -> None:
        shape = (self.plan.envs, self.plan.points)
        touch = np.zeros((*shape, 5))
        touch[..., 0], touch[..., 3] = self.reach(values), self._friction(values)
        touch[..., 1], touch[..., 2], touch[..., 4] = self.rate, self.cap, STICTION
        solver.store.write("touch", touch.reshape(-1, 5))

    def pullback(self, values: Values, solver: Spheres) -> Values:
        bar = solver.store.reduced_adjoint("touch").reshape(self.plan.envs, self.plan.points, 5)
        reach_bar = np.where(self.beyond < 0, 0.0, bar[..., 0])
        out: Values = {}
        add(out, self.points.matter.vjp(values, np.zeros_like(reach_bar), reach_bar))
        for cluster, where in zip(self.points.clusters, self.points.slices, strict=True):
            if f"{cluster.path}.friction" in values:
                add(out, {f"{cluster.path}.friction": bar[:, where, 3].sum(axis=1)})
        return out


def meeting(soft: Continuum, points: ParticlesFamily, values: Values, together: bool) -> Meeting | None:
    """Contact of a scene's continua with its springs and grains; ``None`` where all pass through each other, but where
    they have to step ``together``, because both touch the same rigid bodies.

    Contact is hard. Penetration is taken back at the pace of the softest material's waves in the scene as built.
    """
    matter = soft.matter.bodies
    touching = soft_met([one.name for one in matter], points.clusters)
    if not touching and not together:
        return None
    plan, dt = soft.plan, float(np.min(values["dt"]))
    skins, coarsest = [], 0.0
    for one in matter:
        wave = step_limit([one], values, {}, {}, plan.spacing, 1.0, 0.0, plan.dim).wave_speed
        each = float(one.volume.max()) ** (1 / plan.dim)
        coarsest = max(coarsest, each)
        skins.append(default_skin(plan.spacing, wave, each, dt))
    beyond = np.full(points.plan.particles, -1.0)
    for cluster, where in zip(points.clusters, points.slices, strict=True):
        if cluster in touching:
            beyond[where] = (WITH if cluster.touches else WITHOUT) * coarsest
    speed = soft.limit.max_speed + points.limit.max_speed
    band = max(0.5 * coarsest, min(2.0 * dt * speed, plan.spacing))
    laws = len(plan.laws)
    return Meeting(
        SpheresPlan(
            plan.dim, plan.envs, plan.partitions, laws, plan.rows, plan.particles, points.plan.particles, band
        ),
        points,
        beyond,
        min(skin["rate"] for skin in skins),
        min(skin["cap"] for skin in skins),
        max(64, points.plan.particles),
    )  # fmt: skip


def soft_message(soft: Continuum, link: Meeting, values: Values, parts: dict[str, State], env: int) -> str:
    """On the point that starts deepest in a continuum it touches, of those that move; empty where none does."""
    from scipy.spatial import KDTree

    x, reach = parts["particles"]["x"][env], link.reach(values)[env]
    stays = link.points.tags[:, HELD] > 0
    far, nearest = (np.asarray(found) for found in KDTree(parts["continuum"]["x"][env]).query(x))
    depth = np.where(stays, -np.inf, reach - far)
    i = int(np.argmax(depth - DEEPEST * reach))
    if not depth[i] > DEEPEST * reach[i]:
        return ""
    name = next(name for name, where in soft.slices.items() if where.start <= nearest[i] < where.stop)
    path = link.points.name_of(i)
    return (
        f"{path}: a point at {place_text(x[i])} m starts in bodies.{name}, {far[i]:.3g} m from the nearest particle, "
        f"they touch at {reach[i]:.3g} m; move one of both, or let them pass through each other by {path}.no_contact"
    )
