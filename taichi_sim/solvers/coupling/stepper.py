"""Matter and rigid bodies stepped together, substep by substep: a :class:`~taichi_sim.timeline.timeline.Stepper`."""

from collections.abc import Mapping

import numpy as np

from taichi_sim.core.launch import Launch
from taichi_sim.core.operator import bind_kernel
from taichi_sim.core.store import Store
from taichi_sim.runtime import ti
from taichi_sim.solvers.coupling import balance, kernels, thin
from taichi_sim.solvers.coupling.arrays import POOL_ARRAYS, CouplingPlan, declare, domain_sizes
from taichi_sim.solvers.coupling.matter import Matter, matter_of
from taichi_sim.solvers.coupling.records import CROWDED, FULL
from taichi_sim.solvers.mpm.solver import MpmSolver
from taichi_sim.solvers.particles.solver import ParticlesSolver
from taichi_sim.solvers.rigid.solver import RigidSolver
from taichi_sim.solvers.shapes.distance import GRID

#: What the residual of the bodies' velocity problem may always be, √J: less than for bodies alone, which may be heavy.
FLOOR = 1e-2

#: What the bodies' velocity problem is given of the particles.
ENTERING = (balance.pull, balance.stiffen, balance.freeze)


class CouplingTrouble(Exception):
    """More contacts in one substep than the solver was given room for."""

    def __init__(self, substep: int, env: int, contacts: int, room: int) -> None:
        super().__init__(
            f"step {substep}, environment {env}: {contacts} contacts of particles with bodies, room for {room}; give "
            "the coupling more room"
        )
        self.substep, self.env, self.contacts = substep, env, contacts


class _Joined:
    """Arrays of matter and of several stores under one roof."""

    def __init__(self, matter: Matter, *others: Store) -> None:
        self.runtime, self.real = matter.runtime, ti.f64
        self.arrays: dict[str, ti.Ndarray] = dict(matter.arrays)
        for store in others:
            self.arrays |= store.arrays
            if "joint_freedom" in store.sizes:  # ``row`` is what a particle's contact is here
                self.arrays["joint_row"] = store["row"]

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def __getitem__(self, name: str) -> ti.Ndarray:
        return self.arrays[name]


class Coupling:
    """The bodies' step within a substep of the matter they touch: a :class:`~taichi_sim.solvers.mpm.solver.Guest` of
    the MPM solver, or one of the particle solver.

    ``pool`` is the room for the contacts of a whole segment, an environment; it grows where it does not suffice.
    """

    def __init__(
        self, plan: CouplingPlan, host: MpmSolver | ParticlesSolver, rigid: RigidSolver, pool: int, plain: bool = False
    ) -> None:
        self.plan, self.host, self.matter, self.rigid = plan, host, matter_of(host), rigid
        slots = self.matter.slots
        self.store = Store(self.matter.runtime, declare(plan.dim), domain_sizes(plan, slots), plan.dim, slots, 1, 1,
                           double=True)  # fmt: skip
        self._plain = plain
        self._bound: dict[str, Launch] = {}
        store, colliders = self.store, len(plan.colliders)
        if colliders:
            store.write("collider", np.array(plan.colliders, np.int32).reshape(colliders, 2))
            store.write("axes", np.tile(np.eye(3), (colliders, 1, 1)))
        store.zero(["coupling_flag", "sampling", "lattice_of", "row_count", "span"])
        weld_of = np.full(plan.particles, -1, np.int32)
        for w, (particle, _, _) in enumerate(plan.welds):
            weld_of[particle] = w
        store.write("weld_of", weld_of)
        plate_of = np.full(max(1, colliders), -1, np.int32)
        for j, (c, _, _) in enumerate(plan.thin):
            plate_of[c] = j
        store.write("thin_of", plate_of)
        store.write("thin", np.array(plan.thin or [(0, 0, 0)], np.int32))
        if plan.welds:
            store.write("weld", np.array([w[1:] for w in plan.welds], np.int32))
        self._epoch = -1  # the order of particles in which welded ones were found
        store.write("band", np.array([plan.band]))
        settings = np.array(rigid.store.view("settings"))
        settings[2] = FLOOR
        rigid.store.write("settings", settings)
        self._make_pool(max(1, pool))

    def _make_pool(self, pool: int) -> None:
        p = self.plan
        self.pool = Store(self.store.runtime, POOL_ARRAYS, {"pool": p.envs * pool}, p.dim, 1, 1, 1, double=True)
        counts = [len(p.colliders), p.rows, p.room, pool, p.laws, p.partitions, p.particles, len(p.welds)]
        self.store.write("counts", np.array(counts, np.int32))
        self._bound.clear()

    def _grow(self, need: int) -> None:
        """Make the pool larger; what it holds of a segment is moved."""
        old, before, envs = self.pool, int(self.store.view("counts")[3]), self.plan.envs
        self._make_pool(max(2 * before, need))
        now = int(self.store.view("counts")[3])
        for name in ("record", "after"):
            values = np.array(self.pool.view(name)).reshape(envs, now, -1)
            values[:, :before] = old.view(name).reshape(envs, before, -1)
            self.pool.write(name, values.reshape(envs * now, -1))
        span = np.array(self.store.view("span"))
        span[:, :, 0] += (now - before) * np.arange(envs, dtype=np.int32)
        self.store.write("span", span)
        old.close()

    def _launch(self, name: str) -> Launch:
        if name not in self._bound:
            joined = _Joined(self.matter, self.rigid.store, self.store, self.pool)
            fixed = {
                "dim": self.plan.dim, "met": self.rigid.plan.met, "entering": ENTERING,
                "plates": len(self.plan.thin),
                "periodic": getattr(self.host.plan, "periodic", ()),
                "alone": self.plan.envs * (self.plan.partitions if name == "near" else 1) == 1,
                "trees": self.rigid.plan.jointed, "loops": bool(self.rigid.plan.closures),
                "events": self.rigid.plan.events is not None,
                "sampled": any(kind == GRID for kind, _ in self.plan.colliders),
            }  # fmt: skip
            op = thin.part if name == "part" else getattr(kernels, name.removesuffix("_adjoint"))
            kernel = op.adjoint_kernel if name.endswith("_adjoint") else getattr(op, "kernel", op)
            self._bound[name] = bind_kernel(kernel, joined, fixed, self._plain, light=True)
        return self._bound[name]

    # ---- what the host calls, a substep each ----

    def part(self, k: int) -> None:
        """Tell the host where thin bodies are in slot ``k``."""
        self._launch("part")(self.plan.envs, k)

    def enter(self, k: int, frame: int, epoch: int) -> None:
        """Step the bodies from slot ``k``; particles of slot ``k`` get their velocity after contact."""
        envs, frame = self.plan.envs, self._frame(frame)
        self.rigid.make_ready(k, frame)
        self._launch("begin")(envs, k, frame, 1)
        self._launch("near")(envs, k, epoch)
        self._launch("lie")(envs, k, epoch, 1)
        if self.plan.welds and self._epoch != epoch:
            self._launch("find_tied")(envs, epoch)
            self._epoch = epoch
        self._tie(k, epoch, 1)
        self._launch("answer")(envs, k)
        self._alone("segment", k)
        self._launch("push")(envs, k)
        if self.plan.welds:
            self._launch("push_tied")(envs, k)
        self.rigid.place(k + 1)

    def _alone(self, name: str, k: int) -> None:
        """The step of environments in which nothing is near a body, where bodies may rebound."""
        if self.rigid.plan.events is not None:
            self._launch("reserve")(self.plan.envs, 1)
            self.rigid.launch(name, k)
            self._launch("reserve")(self.plan.envs, 0)

    def _tie(self, k: int, epoch: int, look: int) -> None:
        if self.plan.welds:
            self._launch("tie")(self.plan.envs, self.plan.attachments, k, epoch, look)

    def begin(self) -> None:
        """Start a segment, whose orders of particles are counted anew."""
        self.store.zero(["coupling_flag"])
        self._epoch = -1

    def _frame(self, frame: int) -> int:
        return min(frame, self.rigid.store.view("force").shape[0] - 1)

    def impart(self, k: int, epoch: int) -> None:
        """Scatter what particles of slot ``k`` got; they have their velocity before contact again."""
        self._launch("impart")(self.plan.envs, k, epoch)
        if self.plan.welds:
            self._launch("impart_tied")(self.plan.envs, k, epoch)

    def swap(self, k: int) -> None:
        """Exchange the velocities of slot ``k`` before and after contact."""
        self._launch("exchange")(self.plan.envs, k)
        if self.plan.welds:
            self._launch("exchange_tied")(self.plan.envs * len(self.plan.welds), k)

    def enter_adjoint(self, k: int, frame: int, epoch: int) -> None:
        """Adjoint of :meth:`enter`; particles of slot ``k`` hold their velocity before contact."""
        envs, frame = self.plan.envs, self._frame(frame)
        self.rigid.make_ready(k, frame)
        self._launch("begin")(envs, k, frame, 0)
        self._launch("lie")(envs, k, epoch, 0)
        self._tie(k, epoch, 0)
        self._launch("answer_adjoint")(envs, k)
        self._launch("lie_adjoint")(envs, k)
        if self.plan.welds:
            self._launch("tie_adjoint")(envs, self.plan.attachments, k)
        self._launch("begin_adjoint")(envs, k, frame)
        self._alone("segment_adjoint", k)
        self.rigid.make_ready_adjoint(k, frame)

    def again(self, start: int) -> bool:
        """After a piece: whether it has to be run once more, because the pool has grown.

        Raises :class:`CouplingTrouble` and what :meth:`RigidSolver.check` raises.
        """
        flags = self.store.view("coupling_flag")
        if not flags[:, 0].any():
            self.rigid.check()
            return False
        env = int(np.argmax(flags[:, 0] == CROWDED))
        if flags[env, 0] == CROWDED:
            raise CouplingTrouble(start + int(flags[env, 1]), env, int(flags[env, 2]), self.plan.room)
        assert (flags[:, 0] <= FULL).all()
        self._grow(int(self.store.view("counts")[3]) + 2 * int(flags[:, 2].max()))
        self.store.zero(["coupling_flag"])
        self.rigid.store.zero(["flag"])
        return True

    def clear_adjoints(self) -> None:
        """Set every adjoint to zero, before a backward sweep."""
        self.store.zero(name for name in self.store.arrays if name.startswith("d_"))

    def close(self) -> None:
        """Free all memory of the coupling."""
        self._bound.clear()
        self.store.close()
        self.pool.close()
        self.matter.close()


class CoupledStepper:
    """Matter (an MPM or a particle solver) and a rigid solver with the same substeps; a
    :class:`~taichi_sim.timeline.timeline.Stepper`.

    The state keys of a slot are those of the two solvers, with ``mpm/`` and ``rigid/`` in front. Velocities of a slot
    are those at its end of the substep before, whether or not the next substep has run.
    """

    def __init__(self, mpm: MpmSolver | ParticlesSolver, rigid: RigidSolver, coupling: Coupling) -> None:
        if mpm.substeps != rigid.substeps or mpm.plan.envs != rigid.plan.envs or mpm.store.slots > rigid.store.slots:
            raise ValueError("coupled solvers need the same substeps of a frame, environments, and slots")
        self.mpm, self.rigid, self.coupling = mpm, rigid, coupling
        mpm.guest = coupling

    def begin(self, start: int) -> None:
        """Start a segment at absolute substep ``start``."""
        self.mpm.begin(start)
        self.rigid.begin(start)
        self.coupling.matter.refresh()
        self.coupling.begin()

    def forward(self, k0: int, k1: int, record: bool) -> None:
        """Substeps of slots ``k0 … k1``."""
        self.mpm.forward(k0, k1, record)

    def backward(self, k0: int, k1: int) -> None:
        """Carry the adjoint of slot ``k1`` back to slot ``k0``."""
        self.open_sweep(k1)
        self.mpm.backward(k0, k1)
        self.close_sweep()

    def open_sweep(self, k1: int) -> None:
        """Before the host goes back from slot ``k1``."""
        self.rigid.settle(k1)

    def close_sweep(self) -> None:
        """After it went."""
        self.coupling.matter.collect()

    def read_slot(self, k: int) -> dict[str, np.ndarray]:
        """Copy of the state of slot ``k``."""
        solvers = (("mpm", self.mpm), ("rigid", self.rigid))
        return {f"{room}/{name}": values for room, s in solvers for name, values in s.read_slot(k).items()}

    def write_first_slot(self, state: Mapping[str, np.ndarray]) -> None:
        """Put a state into slot 0 (call :meth:`begin` first)."""
        for room, solver in (("mpm", self.mpm), ("rigid", self.rigid)):
            prefix = f"{room}/"
            solver.write_first_slot({n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)})

    def clear_adjoints(self) -> None:
        """Set every adjoint to zero, before a backward sweep."""
        for part in (self.mpm, self.rigid, self.coupling):
            part.clear_adjoints()

    def close(self) -> None:
        """Free all memory."""
        for part in (self.coupling, self.mpm, self.rigid):
            part.close()
