"""Continua and networks or grains stepped together: a :class:`~taichi_sim.timeline.timeline.Stepper`."""

from collections.abc import Mapping

import numpy as np

from taichi_sim.core.launch import Launch
from taichi_sim.core.operator import bind_kernel
from taichi_sim.core.store import Store
from taichi_sim.runtime import ti
from taichi_sim.solvers.coupling import sphere_kernels
from taichi_sim.solvers.coupling.matter import Continuum
from taichi_sim.solvers.coupling.spheres import POOL, POOL_ARRAYS, SpheresPlan, declare, domain_sizes
from taichi_sim.solvers.coupling.stepper import CoupledStepper
from taichi_sim.solvers.mpm.solver import Guest, MpmSolver
from taichi_sim.solvers.particles import search
from taichi_sim.solvers.particles.solver import ParticlesSolver


class SpheresTrouble(Exception):
    """More contacts in one substep than the solver was given room for."""

    def __init__(self, substep: int, env: int, pairs: int) -> None:
        super().__init__(
            f"step {substep}, environment {env}: a particle meets too many points ({pairs} pairs in all); points lie "
            "closer to each other than particles do: give the pairs more room"
        )


class _Arrays:
    """Arrays of both solvers and of what is between them; those of MPM are called ``mpm_…``."""

    def __init__(self, mpm: MpmSolver, *stores: Store) -> None:
        self.runtime, self.real = mpm.store.runtime, mpm.store.real
        self.arrays: dict[str, ti.Ndarray] = dict(Continuum(mpm).arrays)
        for store in stores:
            self.arrays |= store.arrays

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def __getitem__(self, name: str) -> ti.Ndarray:
        return self.arrays[name]


class _Hash:
    """What ``search.sort`` sorts by: the hash of all points, whatever their radius."""

    def __init__(self, points: ParticlesSolver, store: Store) -> None:
        self.runtime, self.real = store.runtime, store.real
        names = ("tag", "radius", "reach", "extent", "bucket", "bucket_of", "order")
        self.arrays = {name: store[f"sphere_{name}"] for name in names} | {"x": points.store["x"]}

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def __getitem__(self, name: str) -> ti.Ndarray:
        return self.arrays[name]


class Spheres:
    """The step of networks and grains within an MPM substep, and their contact with its particles: a
    :class:`~taichi_sim.solvers.mpm.solver.Guest`.

    Another guest of the MPM solver (``inner``) acts before. ``pool`` is the room for the pairs of a whole segment, an
    environment; it grows where it does not suffice. Points that have no ``touch`` above 0 meet no particles.
    """

    def __init__(
        self, plan: SpheresPlan, mpm: MpmSolver, points: ParticlesSolver, pool: int, plain: bool = False
    ) -> None:
        if not points.plan.hosting:
            raise ValueError("points that meet continua need a plan with hosting = True")
        self.plan, self.mpm, self.points = plan, mpm, points
        self.inner: Guest | None = None
        slots = mpm.store.slots
        self.store = Store(mpm.store.runtime, declare(plan.dim), domain_sizes(plan, slots), plan.dim, slots, 1, 1)
        self._plain, self._applied = plain, True
        self._bound: dict[str, Launch] = {}
        store = self.store
        store.zero(["sphere_tag", "sphere_flag", "pairs", "touch"])
        store.write("sphere_radius", np.ones(plan.envs * plan.points))
        store.write("sphere_band", np.array([plan.band]))
        extent = np.zeros(11, np.int32)
        extent[search.COUNT], extent[search.BUCKETS] = plan.points, plan.buckets
        store.write("sphere_extent", extent)
        self._make_pool(max(1, pool))

    def _make_pool(self, pool: int) -> None:
        p = self.plan
        self.pool = Store(self.store.runtime, POOL_ARRAYS, {"pool": p.envs * pool}, p.dim, 1, 1, 1)
        sizes = [p.points, p.particles, p.partitions, p.laws, p.each, pool, p.buckets]
        self.store.write("sizes", np.array(sizes, np.int32))
        self._bound.clear()

    def _grow(self, need: int) -> None:
        """Make the pool larger; what it holds of a segment is moved."""
        old, before, envs = self.pool, int(self.store.view("sizes")[POOL]), self.plan.envs
        self._make_pool(max(2 * before, need))
        now = int(self.store.view("sizes")[POOL])
        for name in ("pair", "particle_before", "point_before"):
            values = np.array(self.pool.view(name)).reshape(envs, now, -1)
            values[:, :before] = old.view(name).reshape(envs, before, -1)
            self.pool.write(name, values.reshape(envs * now, -1))
        pairs = np.array(self.store.view("pairs"))
        pairs[:, :, 0] += (now - before) * np.arange(envs, dtype=np.int32)
        self.store.write("pairs", pairs)
        old.close()

    def _launch(self, name: str) -> Launch:
        if name not in self._bound:
            fixed = {"dim": self.plan.dim, "periodic": self.mpm.plan.periodic, "plates": self.mpm.plan.plates}
            if name == "sort":
                self._bound[name] = bind_kernel(search.sort, _Hash(self.points, self.store), {}, self._plain)
                return self._bound[name]
            op = getattr(sphere_kernels, name.removesuffix("_adjoint"))
            kernel = op.adjoint_kernel if name.endswith("_adjoint") else getattr(op, "kernel", op)
            arrays = _Arrays(self.mpm, self.points.store, self.store, self.pool)
            self._bound[name] = bind_kernel(kernel, arrays, fixed, self._plain, light=name.startswith("clash"))
        return self._bound[name]

    def begin(self) -> None:
        """Start a segment: cells are as large as the farthest that a point may touch."""
        reach = float(np.max(self.store.view("touch")[:, 0], initial=0.0)) + self.plan.band
        self.store.write("sphere_reach", np.array([[0.0, 0.0, 1.0 / reach]]))
        self.store.zero(["sphere_flag"])

    # ---- what the MPM solver calls, a substep each ----

    def part(self, k: int) -> None:
        """Tell the MPM solver where thin bodies are in slot ``k``."""
        if self.inner is not None:
            self.inner.part(k)

    def enter(self, k: int, frame: int, epoch: int) -> None:
        """Step the points from slot ``k``; particles of slot ``k`` get their velocity after contact."""
        p = self.plan
        if self.inner is not None:
            self.inner.enter(k, frame, epoch)
        self.points.pull(k)
        self._launch("sort")(p.envs, k)
        self._launch("find")(p.envs, k)
        self._launch("clash")(p.envs, p.rows, k, epoch)
        self.points.move(k)
        self._applied = True

    def impart(self, k: int, epoch: int) -> None:
        """Scatter what particles of slot ``k`` got by all contact; they have their velocity before it again."""
        p = self.plan
        self._launch("impart_pairs")(p.envs, p.rows, k, epoch)
        if self.inner is not None:
            self.inner.impart(k, epoch)
        self._applied = False

    def swap(self, k: int) -> None:
        """Exchange the velocities of particles in slot ``k`` before and after all contact."""
        if self._applied:
            self._launch("swap_particles")(self.plan.envs, k)
        if self.inner is not None:
            self.inner.swap(k)
        if not self._applied:
            self._launch("swap_particles")(self.plan.envs, k)
        self._applied = not self._applied

    def enter_adjoint(self, k: int, frame: int, epoch: int) -> None:
        """Adjoint of :meth:`enter`; particles of slot ``k`` hold their velocity before contact."""
        p = self.plan
        if self.inner is not None:  # what it left is where contact with points began
            self.inner.swap(k)
        self.points.move_adjoint(k)
        self._launch("swap_points")(p.envs, k)
        self._launch("clash_adjoint")(p.envs, p.rows, k, epoch)
        self.points.pull_adjoint(k)
        if self.inner is not None:
            self.inner.swap(k)
            self.inner.enter_adjoint(k, frame, epoch)

    def again(self, start: int) -> bool:
        """After a piece: whether it has to be run once more, because a pool has grown.

        Raises :class:`SpheresTrouble` and what the inner guest raises.
        """
        repeat = self.inner is not None and self.inner.again(start)
        repeat = (self.points.guest is not None and self.points.guest.again(start)) or repeat
        flags = self.store.view("sphere_flag")
        if flags[:, 0].any():
            crowded = flags[:, 0] < 0
            if crowded.any():
                env = int(np.argmax(crowded))
                raise SpheresTrouble(start - int(flags[env, 0]) - 1, env, int(flags[env, 1]))
            self._grow(int(self.store.view("sizes")[POOL]) + 2 * int(flags[:, 1].max()))
            self.store.zero(["sphere_flag"])
            repeat = True
        return repeat

    def clear_adjoints(self) -> None:
        """Set every adjoint to zero, before a backward sweep."""
        self.store.zero(name for name in self.store.arrays if name.startswith("d_"))

    def close(self) -> None:
        """Free all memory of the contact."""
        self._bound.clear()
        self.store.close()
        self.pool.close()


class SpheresStepper:
    """An MPM solver and a particle solver with the same substeps. ``coupled`` are rigid bodies that one of the two
    hosts.

    State keys of a slot are those of the two solvers, with ``mpm/`` and ``points/`` in front.
    """

    def __init__(
        self, mpm: MpmSolver, points: ParticlesSolver, spheres: Spheres, coupled: CoupledStepper | None = None
    ) -> None:
        if mpm.substeps != points.substeps or mpm.plan.envs != points.plan.envs or mpm.store.slots > points.store.slots:
            raise ValueError("solvers that meet need the same substeps of a frame, environments, and slots")
        self.mpm, self.points, self.spheres, self.coupled = mpm, points, spheres, coupled
        spheres.inner = mpm.guest
        mpm.guest = spheres

    def begin(self, start: int) -> None:
        """Start a segment at absolute substep ``start``."""
        self.mpm.begin(start)
        self.points.begin(start)
        if self.coupled is not None:
            self.coupled.begin(start)
        self.spheres.begin()

    def forward(self, k0: int, k1: int, record: bool) -> None:
        """Substeps of slots ``k0 … k1``."""
        self.mpm.forward(k0, k1, record)
        self.points.check(k0, k1)

    def backward(self, k0: int, k1: int) -> None:
        """Carry the adjoint of slot ``k1`` back to slot ``k0``."""
        if self.coupled is not None:
            self.coupled.open_sweep(k1)
        self.mpm.backward(k0, k1)
        if self.coupled is not None:
            self.coupled.close_sweep()

    def read_slot(self, k: int) -> dict[str, np.ndarray]:
        """Copy of the state of slot ``k``."""
        solvers = (("mpm", self.mpm), ("points", self.points))
        return {f"{room}/{name}": values for room, s in solvers for name, values in s.read_slot(k).items()}

    def write_first_slot(self, state: Mapping[str, np.ndarray]) -> None:
        """Put a state into slot 0 (call :meth:`begin` first)."""
        for room, solver in (("mpm", self.mpm), ("points", self.points)):
            prefix = f"{room}/"
            solver.write_first_slot({n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)})

    def clear_adjoints(self) -> None:
        """Set every adjoint to zero, before a backward sweep."""
        for part in (self.mpm, self.points, self.spheres, self.coupled):
            if part is not None:
                part.clear_adjoints()

    def close(self) -> None:
        """Free all memory."""
        for part in (self.spheres, self.coupled, self.mpm, self.points):
            if part is not None:
                part.close()
