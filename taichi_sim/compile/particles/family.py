"""All springs and grains of a scene as one family."""

from dataclasses import dataclass, field

import numpy as np

from taichi_sim.compile.acting.forces import ActingForces
from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.family import Family, State, add
from taichi_sim.compile.limits import StepLimit
from taichi_sim.compile.particles.limits import particles_limit
from taichi_sim.compile.particles.matter import ParticlesMatter
from taichi_sim.compile.particles.obstacles import Obstacles
from taichi_sim.compile.particles.overlaps import obstacles_message, pairs_message, walls_message
from taichi_sim.compile.particles.springs import SpringsBinding
from taichi_sim.compile.particles.start import ParticlesStart
from taichi_sim.compile.particles.surfaces import Surfaces, Walls
from taichi_sim.core.errors import RolloutError
from taichi_sim.runtime import Runtime
from taichi_sim.scene.particles import Cluster
from taichi_sim.solvers.acting.solver import Acting
from taichi_sim.solvers.particles.arrays import ParticlesPlan, declare, domain_sizes, footprint
from taichi_sim.solvers.particles.search import CROWDED
from taichi_sim.solvers.particles.solver import TOO_FAST, ParticlesSolver, ParticlesTrouble
from taichi_sim.solvers.rigid.attitude import spin_matrices, spin_matrices_vjp
from taichi_sim.timeline.schedule import Costs


def _add(solver: ParticlesSolver, name: str, bar: np.ndarray) -> None:
    target = solver.store.view(name)
    solver.store.write(name, target + bar.astype(target.dtype))


def enter_places(solver: ParticlesSolver, bar: np.ndarray) -> None:
    """Add ``bar`` (envs, points, dim) to the adjoint of places."""
    _add(solver, "d_x", bar.reshape(-1, bar.shape[2]))


@dataclass
class ParticlesFamily(Family):
    """Points of networks and grains: ``F`` is the identity, ``C`` the spin of what has a radius.

    ``slices`` are the points of each of ``clusters``, counted from the family's first.
    """

    points: slice
    clusters: list[Cluster]
    slices: list[slice]
    plan: ParticlesPlan
    limit: StepLimit
    tags: np.ndarray
    start: ParticlesStart
    matter: ParticlesMatter
    springs: SpringsBinding
    surfaces: Surfaces
    walls: Walls
    obstacles: Obstacles
    bindings: list[Binding]
    extent: np.ndarray
    acting: ActingForces | None = None
    _values: Values = field(default_factory=dict, init=False)

    def by_table(self) -> list[tuple[str, list[Cluster]]]:
        """Clusters by the table they stand in."""
        found: dict[str, list[Cluster]] = {}
        for cluster in self.clusters:
            found.setdefault(cluster.path.split(".")[0], []).append(cluster)
        return list(found.items())

    def limit_at(self, values: Values) -> StepLimit:
        """Step limit of given values."""
        own = (self.matter, self.springs, self.surfaces)
        x = self.start.state(values)["x"]
        limit = particles_limit(
            self.plan, self.tags, self.clusters, self.slices, own, values, {}, x, self.limit.max_speed
        )
        return limit if self.acting is None else self.acting.tightened(limit, values, {})

    def costs(self, precision: str, frames: int) -> Costs:
        fixed = footprint(self.plan, precision, frames, 0)
        stored = footprint(self.plan, precision, frames, 1) - fixed
        return Costs(fixed, stored, stored)

    def make(self, runtime: Runtime, substeps: int, frames: int, segment: int, plain: bool) -> ParticlesSolver:
        solver = ParticlesSolver(runtime, self.plan, substeps, frames, segment + 1, plain)
        solver.store.write("tag", self.tags)
        self.obstacles.fill(solver)
        if self.acting is not None:
            arrays = {name: solver.store[name] for name in ("x", "impulse", "d_x", "d_impulse")}
            solver.drive = Acting(runtime, self.acting.plan, arrays, frames, plain)
        return solver

    # ---- forwards ----

    def begin(self, values: Values) -> State:
        return self.start.state(values)

    def check(self, values: Values, start: State) -> None:
        where = list(zip([cluster.path for cluster in self.clusters], self.slices, strict=True))
        radii, offsets = self.matter.radii(values), self.walls.offsets(values)
        for e in range(self.plan.envs):
            message = walls_message(
                self.walls.walls, offsets[e], self.tags, where, start["x"][e], radii[e], self.extent
            )
            message = message or obstacles_message(self.obstacles.standing, self.tags, where, start["x"][e], radii[e])
            message = message or pairs_message(self.tags, where, start["x"][e], radii[e])
            if message:
                raise RolloutError(message + (f" (environment {e})" if self.plan.envs > 1 else ""))

    def masses(self, values: Values) -> np.ndarray:
        return self.matter.masses(values)

    def inertias(self, values: Values) -> np.ndarray | None:
        return self.matter.inertias(values)

    def first(self, values: Values, start: State) -> dict[str, np.ndarray]:
        sizes, rows = domain_sizes(self.plan, 1), self.plan.envs * self.plan.particles
        state: dict[str, np.ndarray] = {
            array.name: np.zeros((*array.domain_shape(sizes), *array.element_shape(self.plan.dim)))
            for array in declare(self.plan.dim)
            if array.role == "state"
        }
        state["partner"] = np.full(state["partner"].shape, -1, np.int32)
        state["x"], state["v"] = start["x"].reshape(rows, -1), start["v"].reshape(rows, -1)
        if self.plan.grains:
            C = start["C"].reshape(rows, self.plan.dim, self.plan.dim)
            state["spin"] = 0.5 * spin_matrices_vjp(C, self.plan.dim)
        return state

    def apply(self, values: Values, solver: ParticlesSolver) -> None:
        for binding in self.bindings:
            binding.apply(values, solver)

    def look(self, solver: ParticlesSolver, k: int, names: tuple[str, ...]) -> State:
        dim, shape = self.plan.dim, (self.plan.envs, self.plan.particles, self.plan.dim)
        found: State = {}
        for name in names:
            if name in ("x", "v"):
                found[name] = np.array(solver.store.view(name)[k]).reshape(shape)
            elif name == "C" and self.plan.grains:
                spin = np.asarray(solver.store.view("spin")[k], np.float64)
                found[name] = spin_matrices(spin, dim).reshape(*shape, dim)
            else:
                found[name] = np.broadcast_to(
                    np.eye(dim) if name == "F" else np.zeros((dim, dim)), (*shape, dim)
                ).copy()
        return found

    def explain(self, solver: ParticlesSolver, trouble: Exception, values: Values) -> RolloutError:
        assert isinstance(trouble, ParticlesTrouble)
        name = self.name_of(trouble.particle)
        when = f"t = {trouble.substep * float(values['dt'].max()):.4g} s"
        where = f"{name}, point {trouble.particle - self._slice_of(trouble.particle).start}"
        where += f" in environment {trouble.env}" if self.plan.envs > 1 else ""
        if trouble.kind == CROWDED:
            return RolloutError(f"{when}: {where} touches more others than there is room for: radii differ too much")
        what = "moves by more than its radius in a step" if trouble.kind == TOO_FAST else "has no finite velocity"
        return RolloutError(f"{when}: {where} {what}; set a smaller solver.dt, or make it less stiff or fast")

    def name_of(self, point: int) -> str:
        """Path of the entry a point belongs to."""
        return next(c.path for c, s in zip(self.clusters, self.slices, strict=True) if s.start <= point < s.stop)

    def _slice_of(self, point: int) -> slice:
        return next(s for s in self.slices if s.start <= point < s.stop)

    # ---- backwards ----

    def enter(self, solver: ParticlesSolver, k: int, bars: State) -> None:
        rows, dim = self.plan.envs * self.plan.particles, self.plan.dim
        for name in ("x", "v"):
            if name in bars:
                self._add(solver, f"d_{name}", bars[name].reshape(rows, dim))
        if "C" in bars and self.plan.grains:
            self._add(solver, "d_spin", spin_matrices_vjp(bars["C"].reshape(rows, dim, dim), dim))

    def _add(self, solver: ParticlesSolver, name: str, bar: np.ndarray) -> None:
        _add(solver, name, bar)

    def pullback(self, values: Values, solver: ParticlesSolver) -> Values:
        total: Values = {}
        for binding in self.bindings:
            add(total, binding.pullback(values, solver))
        return total

    def pullback_mass(self, values: Values, mass: np.ndarray, inertia: np.ndarray | None) -> Values:
        total: Values = {}
        if mass.any() or (inertia is not None and inertia.any()):
            add(total, self.matter.vjp(values, mass, np.zeros_like(mass), inertia))
        return total
