"""The rigid body solver: runs steps forwards and backwards within one segment of the timeline."""

import contextlib
from collections.abc import Iterator

import numpy as np

from taichi_sim.core.launch import Launch
from taichi_sim.core.store import Store
from taichi_sim.runtime import Runtime
from taichi_sim.solvers.rigid import kernels, readings, tree_kernels
from taichi_sim.solvers.rigid.arrays import RigidPlan, declare, domain_sizes
from taichi_sim.solvers.rigid.march import march
from taichi_sim.solvers.rigid.newton import TOLERANCE
from taichi_sim.solvers.rigid.sensing import Contacts, read_contacts
from taichi_sim.solvers.rigid.softening import POLICIES

#: What went wrong in a rollout; ``flag[e, 0]`` and :class:`RigidTrouble`.
UNSOLVED, CROWDED, NOT_FINITE, RATTLING = 1, 2, 3, 4

#: :data:`TOLERANCE` of runs whose differences are taken, where rounding allows it. What is left of a residual creeps on
#: in every step after: by 10⁻¹⁴ m/s or so, which is 10⁻⁴ of what a change of 10⁻⁷ m/s leaves of a body that friction
#: holds.
FINE = 1e-14

#: Stiffness of an impact times the contact's inverse mass, and the resolution of its time in steps (``impact``).
IMPACT = (1e6, 1e-14)

#: Gap below which a contact is looked at whatever the speed, m.
MARGIN = 1e-3

#: The same where gaps push in the backward sweep, in units of their range: there the push is 1/400 of the stiffness.
SEEN = 10.0


class RigidTrouble(Exception):
    """A rollout that cannot go on; the simulation turns it into a sentence with names."""

    def __init__(self, kind: int, substep: int, env: int, detail: int) -> None:
        super().__init__(kind)
        self.kind, self.substep, self.env, self.detail = kind, substep, env, detail

    def __str__(self) -> str:
        return {
            UNSOLVED: f"step {self.substep}, environment {self.env}: the velocities of {self.detail} contacts could "
            "not be found; use a smaller step, less friction or a smaller stiffness",
            CROWDED: f"step {self.substep}, environment {self.env}: more than {self.detail} contacts; give the solver "
            "a larger capacity",
            NOT_FINITE: f"step {self.substep}, environment {self.env}: a velocity is not finite; use a smaller step",
            RATTLING: f"step {self.substep}, environment {self.env}: more than {self.detail} impacts since the last "
            "checkpoint; reserve more impacts a step, or raise the threshold of impacts",
        }[self.kind]


class RigidSolver:
    """State, parameters and launches of one compiled scene; a :class:`~taichi_sim.timeline.timeline.Stepper`.

    ``slots`` is one more than the longest segment, ``substeps`` the number of steps in a frame. Everything is computed
    in double precision, whatever the runtime's: the slope of friction that sticks is 10⁴ to 10⁸ times a mass, which
    leaves single precision no digits of the velocities it has to find.
    """

    def __init__(
        self, runtime: Runtime, plan: RigidPlan, substeps: int, frames: int, slots: int, plain: bool = False
    ) -> None:
        self.plan = plan
        self.substeps = substeps
        self.start = 0
        sizes = domain_sizes(plan, slots)
        self.store = Store(runtime, declare(plan.dim), sizes, plan.dim, sizes["slot"], frames, 1, double=True)
        self._slots = slots
        self._plain = plain
        self._bound: dict[str, Launch] = {}
        self._fill_constants()

    def _fill_constants(self) -> None:
        p, store = self.plan, self.store
        t = p.topology
        counts = [
            p.bodies, len(p.point_body), len(p.plane_body), p.surfaces, len(p.shapes), p.capacity, t.freedoms,
            t.joint_freedoms, t.coordinates, len(p.joints), len(p.closures),
        ]  # fmt: skip
        store.write("extent", np.array(counts, np.int32))
        policy = POLICIES[p.contact_gradient]
        store.write("settings", np.array([TOLERANCE, max(MARGIN, SEEN * policy[3]), 1.0, *policy]))
        store.write("census", np.array([p.bounded, len(p.shapes), len(p.lines), len(p.grids)], np.int32))
        for name, values in (
            ("shape", p.shapes), ("line", p.lines), ("point_body", p.point_body), ("plane_body", p.plane_body),
            ("pairing", np.ravel(p.pairing)), ("held", p.held or (0,) * p.bodies), ("grid", p.grids),
            ("link", t.links), ("order", t.order), ("closure", p.closures),
            ("sequence", np.tile(np.arange(p.bounded), p.envs)),
        ):  # fmt: skip
            if len(values):
                store.write(name, np.array(values, np.int32))
        if p.events:
            settings = [p.events.threshold, p.events.touch, *IMPACT]
            store.write("event_settings", np.array(settings))
            store.write("pool", np.array([p.events.most, self._slots, self._slots + p.pool(self._slots)], np.int32))
        inputs = [a.name for a in store.specs.values() if a.role == "input"]
        store.zero(["flag", "kick", "touching", "restitution", "lent", "lent_bar", *inputs])

    def _launch(self, name: str) -> Launch:
        if name not in self._bound:
            p = self.plan
            fixed = {"dim": p.dim, "met": p.met, "trees": p.jointed, "loops": bool(p.closures)}
            fixed |= {"alone": p.jointed and p.envs == 1, "events": bool(p.events)}
            op_name = name.removesuffix("_adjoint")
            room = tree_kernels if p.jointed and op_name != "segment" else kernels
            op = march if op_name == "march" else getattr(readings if op_name in readings.NAMES else room, op_name)
            bind = op.bind_adjoint if name.endswith("_adjoint") else op.bind
            self._bound[name] = bind(self.store, self._plain, **fixed)
        return self._bound[name]

    def _links(self, name: str, *integers: int) -> None:
        """Launch a kernel of ``tree_kernels``."""
        self._launch(name)(self.plan.envs, *integers)

    @contextlib.contextmanager
    def finely(self) -> Iterator[None]:
        """Velocities to the last digits while this lasts, for finite differences."""
        settings = np.array(self.store.view("settings"))
        try:
            self.store.write("settings", np.concatenate([[FINE], settings[1:]]))
            yield
        finally:
            self.store.write("settings", settings)

    # ---- a segment ----

    def begin(self, start: int) -> None:
        """Start a segment at absolute step ``start``; slot 0 holds its state."""
        self.start = start
        self.store.zero(["flag"])

    def forward(self, k0: int, k1: int, record: bool) -> None:
        """Steps of slots ``k0 … k1``. The tape is always written: recording changes nothing.

        Raises :class:`RigidTrouble` where the velocity problem has no solution or a number is not finite.
        """
        launch, envs = self._launch, self.plan.envs
        launch("march" if self.plan.jointed else "segment")(envs, k0, k1, self.start, self.substeps)
        self.check()

    def check(self) -> None:
        """Raise :class:`RigidTrouble` for what went wrong since :meth:`begin`."""
        flags = self.store.view("flag")
        if flags[:, 0].any():
            env = int(np.argmin(np.where(flags[:, 0] > 0, flags[:, 1], np.iinfo(np.int32).max)))
            kind, slot, detail = (int(i) for i in flags[env])
            raise RigidTrouble(kind, self.start + slot, env, detail)

    def backward(self, k0: int, k1: int) -> None:
        """Carry the adjoint of slot ``k1`` back to slot ``k0``.

        What was added to the adjoints of links in slot ``k1`` goes to joints; after adding to links in the very first
        slot, ``backward(0, 0)`` does just that.
        """
        launch = self._launch("march_adjoint" if self.plan.jointed else "segment_adjoint")
        launch(self.plan.envs, k0, k1, self.start, self.substeps)

    def launch(self, name: str, k: int) -> None:
        """``segment`` or ``segment_adjoint`` of the step from slot ``k``, for environments without a flag."""
        self._launch(name)(self.plan.envs, k, k + 1, self.start, self.substeps)

    # ---- what a step of bodies on joints takes besides; nothing where there are none ----

    def place(self, k: int) -> None:
        """Poses and velocities of links in slot ``k``."""
        if self.plan.jointed:
            self._links("place", k)

    def make_ready(self, k: int, frame: int) -> None:
        """:meth:`place`, and what contacts do not change in the step from slot ``k``."""
        if self.plan.jointed:
            self._links("place", k)
            self._links("ready", k, frame)

    def make_ready_adjoint(self, k: int, frame: int) -> None:
        """Adjoint of :meth:`make_ready`, after that of the step."""
        if self.plan.jointed:
            self._links("ready_adjoint", k, frame, 1)
            self._links("place_adjoint", k)

    def settle(self, k: int) -> None:
        """Give what was added to the adjoints of links in slot ``k`` to joints."""
        if self.plan.jointed:
            self._links("place", k)
            self._links("ready_adjoint", k, 0, 0)
            self._links("place_adjoint", k)

    # ---- state as the timeline stores it ----

    def read_slot(self, k: int) -> dict[str, np.ndarray]:
        """Copy of the state of slot ``k``."""
        return {name: np.array(self.store.view(name)[k]) for name in self.store.states()}

    def write_first_slot(self, state: dict[str, np.ndarray]) -> None:
        """Put a state into slot 0 (call :meth:`begin` first). Poses and velocities of links follow from the joints."""
        self.store.write_first_slot(state)
        if self.plan.jointed:
            self._links("place", 0)

    # ---- what users see ----

    def synchronous_velocity(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Velocity and spin of slot ``k`` at the time of its positions: (envs * bodies, dim), (envs * bodies, 1 or 3).

        Velocities are stored half a kick behind. What is missing is the free motion of half a kick,
        ``v + kick/2 (g + F/m)``, and ``ω + kick/2 α`` with Euler's equations; a body in contact keeps the velocity it
        has, which already answers to the positions (first order in contact, second order elsewhere). So does a tree
        that touches something, or where something acts along a joint.
        """
        self._synchronise(k, "")
        return np.array(self.store.view("velocity_out")), np.array(self.store.view("spin_out"))

    def synchronous_rate(self, k: int) -> np.ndarray:
        """Velocities of the joints of slot ``k`` at the time of their coordinates: (envs * joint freedoms,)."""
        self._synchronise(k, "")
        return np.array(self.store.view("rate_out"))

    def add_velocity_adjoint(
        self, k: int, velocity: np.ndarray, spin: np.ndarray, rate: np.ndarray | None = None
    ) -> None:
        """Add what enters at :meth:`synchronous_velocity` and :meth:`synchronous_rate` of slot ``k``, to the adjoints
        of state and parameters."""
        self.store.write("velocity_out", velocity)
        self.store.write("spin_out", spin)
        self.store.zero(["rate_out"])
        if rate is not None:
            self.store.write("rate_out", rate)
        self._synchronise(k, "_adjoint")

    def _synchronise(self, k: int, way: str) -> None:
        f = self.frame_of(max(-self.start, k - 1))
        if not self.plan.jointed:
            self._launch(f"synchronise{way}")(self.plan.envs, self.plan.bodies, k, f)
            return
        self._links("place", k)
        self._links("ready", k, f)
        if way:
            self._links("follow_adjoint", k, f)
            self._links("place_adjoint", k)
        else:
            self._links("follow", k)

    def contacts(self, k: int) -> Contacts:
        """What contacts did in the step to slot ``k``, read again from the tape: a run costs no more for it."""
        return read_contacts(self, k)

    def press(self, k: int, turn: int = 0) -> None:
        """Contacts of the step from slot ``k`` and their impulses into ``contact`` and ``push``: of its last piece but
        ``turn`` where impacts have split it."""
        if self.plan.jointed:
            self._links("place", k)
        self._launch("press")(self.plan.envs, k, self.frame_of(k), turn)

    def press_adjoint(self, k: int, force: np.ndarray, late: bool) -> None:
        """Of contact forces on bodies on joints (envs, bodies, dim) in the step from slot ``k``: added to the adjoint
        of slot ``k + 1`` where ``late``, else to that of slot ``k`` and of parameters."""
        self.store.write("velocity_out", force.reshape(-1, self.plan.dim))
        self._links("place", k)
        self._launch("press_adjoint")(self.plan.envs, k, int(late))
        if not late:
            self._links("place_adjoint", k)

    def strain(self, k: int) -> None:
        """What acts along joints in the step from slot ``k`` into ``rate_out``, N m or N."""
        self._launch("strain")(self.plan.envs, k, self.frame_of(k))

    def strain_adjoint(self, k: int, effort: np.ndarray, late: bool) -> None:
        """Adjoint of :meth:`strain` (envs, joint freedoms); ``late`` as in :meth:`press_adjoint`."""
        self.store.write("rate_out", effort.reshape(-1))
        self._launch("strain_adjoint")(self.plan.envs, k, self.frame_of(k), int(late))

    def frame_of(self, k: int) -> int:
        """Row of the inputs in the step from slot ``k``."""
        return min((self.start + k) // self.substeps, self.store.view("force").shape[0] - 1)

    def clear_adjoints(self) -> None:
        """Set every adjoint to zero, before a backward sweep."""
        self.store.zero(name for name in self.store.arrays if name.startswith("d_"))
        self.store.zero(["dof", "lever_bar", "motion_bar", "turned_bar"])

    def close(self) -> None:
        """Free all memory."""
        self._bound.clear()
        self.store.close()
