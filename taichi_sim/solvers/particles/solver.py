"""The particle solver: runs steps forwards and backwards within one segment of the timeline."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from taichi_sim.core.launch import Launch
from taichi_sim.core.operator import bind_kernel
from taichi_sim.core.store import Store
from taichi_sim.runtime import Runtime
from taichi_sim.solvers.particles import kernels, search
from taichi_sim.solvers.particles.arrays import ParticlesPlan, declare, domain_sizes
from taichi_sim.solvers.particles.obstacle import samples

#: What went wrong in a rollout; :class:`ParticlesTrouble`.
CROWDED, NOT_FINITE, TOO_FAST = search.CROWDED, 2, 3

#: Reach of the lists of neighbours beyond touching, in largest radii; of the same speed from 0.15 to 0.4.
REACH = 0.25


class ParticlesTrouble(Exception):
    """A rollout that cannot go on; the simulation turns it into a sentence with names."""

    def __init__(self, kind: int, substep: int, env: int, particle: int) -> None:
        super().__init__(kind)
        self.kind, self.substep, self.env, self.particle = kind, substep, env, particle

    def __str__(self) -> str:
        return f"step {self.substep}, environment {self.env}, particle {self.particle}: " + {
            CROWDED: "more neighbours or contacts than there is room for; give the plan more of both",
            NOT_FINITE: "its velocity is not finite; use a smaller step",
            TOO_FAST: "it moves by more than its radius in a step and would pass through others; use a smaller step",
        }[self.kind]


class Guest(Protocol):
    """Something that acts on the particles within a step, after all forces and before hard walls (rigid bodies, say).

    ``enter`` changes ``free_velocity[k]`` in place and keeps those before, ``swap`` exchanges the two;
    ``enter_adjoint`` finds the adjoint of the velocities after it in ``force_bar``, leaves that of those before, and
    adds to the others.
    """

    def enter(self, k: int, frame: int, epoch: int) -> None: ...
    def swap(self, k: int) -> None: ...
    def enter_adjoint(self, k: int, frame: int, epoch: int) -> None: ...
    def again(self, start: int) -> bool: ...


class Drive(Protocol):
    """Forces on particles beside all others (chambers and tendons, say): ``give`` writes ``impulse[k]``,
    ``give_adjoint`` carries ``d_impulse[k]`` on to positions."""

    def give(self, k: int, frame: int) -> None: ...
    def give_adjoint(self, k: int, frame: int) -> None: ...
    def clear_adjoints(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class _Piece:
    """Consecutive steps with the lists of neighbours made at slot ``listed``."""

    k0: int
    k1: int
    listed: int


class ParticlesSolver:
    """State, parameters and launches of one compiled scene; a :class:`~taichi_sim.timeline.timeline.Stepper`.

    ``slots`` is one more than the longest segment, ``substeps`` the number of steps in a frame.

    Another solver that acts on the particles steps one slot at a time (``forward(k, k + 1, True)``, later
    ``backward(k, k + 1)``): where the plan is ``coupled`` it writes ``impulse[k]`` (N s) before a step and finds
    ``d_impulse[k]`` after the step's backward sweep; a ``drive`` of such a plan does so by itself. A ``guest`` of a
    ``hosting`` plan acts within the step.
    """

    drive: Drive | None = None
    guest: Guest | None = None

    def __init__(
        self, runtime: Runtime, plan: ParticlesPlan, substeps: int, frames: int, slots: int, plain: bool = False
    ) -> None:
        self.plan = plan
        self.substeps = substeps
        self.frames = frames
        self.store = Store(runtime, declare(plan.dim), domain_sizes(plan, slots), plan.dim, slots, frames, plan.shares)
        self._plain = plain
        self._bound: dict[str, Launch] = {}
        self._stride = 8
        self._fill_constants()
        self.begin(0)

    def _fill_constants(self) -> None:
        p, store = self.plan, self.store
        counts = (p.particles, len(p.edges), len(p.bends), p.surfaces, len(p.walls), p.groups, p.actuators, p.buckets)
        store.write("extent", np.array([*counts, *p.obstacle, *([0] * (3 - len(p.obstacle)))], np.int32))
        head = np.zeros((p.particles + 1, 2), np.int32)
        for column, name, rows, ends in ((0, "spring_of", p.edges, 2), (1, "bend_of", p.bends, 3)):
            if rows:
                corners = np.asarray(rows, np.int32)[:, :ends].ravel()
                store.write(name, np.argsort(corners, kind="stable").astype(np.int32))
                head[1:, column] = np.cumsum(np.bincount(corners, minlength=p.particles))
        store.write("head", head)
        for name, rows in (("edge", p.edges), ("bend", p.bends), ("wall_kind", p.walls)):
            if rows:
                store.write(name, np.array(rows, np.int32))
        store.zero(["tag", "flag", "stale", "radius", "group_force", "actuation", "particle_force", "impulse", "spin"])
        store.zero(["surface", "stretch", "roll", "neighbour"])
        store.write("partner", np.full(store.view("partner").shape, -1, np.int32))

    def set_obstacle(self, distance: np.ndarray, origin: np.ndarray, spacing: float) -> None:
        """Distances, m, positive outside, at the nodes of a grid: shaped as ``plan.obstacle``, node 0 at ``origin``."""
        if np.shape(distance) != self.plan.obstacle:
            raise ValueError(f"the plan has an obstacle of {self.plan.obstacle} nodes, got {np.shape(distance)}")
        grid = np.zeros((1, 4))
        grid[0, : self.plan.dim], grid[0, 3] = origin, 1.0 / spacing
        self.store.write("grid", grid)
        self.store.write("distance", samples(distance, spacing))

    # ---- launches, compiled when first needed ----

    def _launch(self, name: str) -> Launch:
        if name not in self._bound:
            p, store, plain = self.plan, self.store, self._plain
            fixed = {"has": p.features, "shares": p.shares, "dim": p.dim}
            match name:
                case "sort":
                    launch = bind_kernel(search.sort, store, fixed, plain)
                case "list":
                    launch = bind_kernel(search.list_neighbours, store, fixed, plain)
                case "pull" | "move":
                    launch = getattr(kernels, name).bind(store, plain, **fixed)
                case "pull_adjoint" | "move_adjoint":
                    launch = getattr(kernels, name.removesuffix("_adjoint")).bind_adjoint(store, plain, **fixed)
                case "forward":
                    op = kernels.segment if p.segment_mode else kernels.one_step
                    launch = op.bind(store, plain, **fixed)
                case _:
                    op = kernels.segment if p.segment_mode else kernels.one_step
                    launch = op.bind_adjoint(store, plain, **fixed)
            self._bound[name] = launch
        return self._bound[name]

    # ---- a segment ----

    def begin(self, start: int) -> None:
        """Start a segment at absolute step ``start``; slot 0 holds its state."""
        self.start = start
        self._pieces: list[_Piece] = []
        self._listed_for: dict[int, int] = {}
        self._listed = -1
        self.store.zero(["flag"])
        if self.plan.grains:
            largest = float(np.max(self.store.view("radius")))
            reach = REACH * largest
            cell = 2.0 * largest + reach
            self.store.write("reach", np.array([[reach, 0.25 * reach * reach, 1.0 / cell if cell > 0 else 1.0]]))

    def forward(self, k0: int, k1: int, record: bool) -> None:
        """Steps of slots ``k0 … k1``. Recording changes nothing but that :meth:`backward` may follow.

        Where a grain leaves the reach of the lists within a run, the steps after that are thrown away, the lists made
        anew, and the run goes on. Raises :class:`ParticlesTrouble` where it cannot.
        """
        k = k0
        while k < k1:
            end = min(k1, k + self._stride) if self.plan.grains else k1
            if self.plan.grains and self._listed < 0:
                self._list(k)
            self._steps(k, end)
            while self.guest is not None and self.guest.again(self.start):
                self._steps(k, end)
            good = self._good_until(k, end)
            if good > k:
                self._check(k, good)
                if record:
                    self._pieces.append(_Piece(k, good, self._listed))
            if good < end:
                self._listed = -1
            k = good

    def _good_until(self, k: int, end: int) -> int:
        """The first slot of ``k … end`` for which the lists of neighbours are stale, or ``end``."""
        if not self.plan.grains:
            return end
        stale = self.store.view("stale")[k:end].any(axis=1)
        if not stale.any():
            self._stride = min(self._stride + self._stride // 4 + 1, 1000)
            return end
        good = k + int(np.argmax(stale))
        self._stride = max(4, good - self._listed)
        return good

    def _list(self, k: int) -> None:
        """Make the lists of neighbours at slot ``k``."""
        self.store.zero(["flag"])
        self._launch("sort")(self.plan.envs, k)
        self._launch("list")(self.plan.envs, k)
        self._listed = k
        self._raise_flag(k + 1)

    def _steps(self, k0: int, k1: int) -> None:
        self.store.zero(["stale", "flag"])
        envs = self.plan.envs
        if self.guest is not None:
            for k in range(k0, k1):
                self._give(k)
                self._launch("pull")(envs, k, self._frame(k))
                self.guest.enter(k, self._frame(k), 0)
                self._launch("move")(envs, k)
                if self.plan.grains and self.store.view("stale")[k].any():
                    return  # the guest has not to see what comes after
            return
        launch = self._launch("forward")
        if self.plan.segment_mode:
            launch(envs, k0, k1, self.start, self.substeps, self.frames)
            return
        for k in range(k0, k1):
            self._give(k)
            launch(envs, k, self._frame(k))

    def _give(self, k: int) -> None:
        if self.drive is not None:
            self.drive.give(k, self._frame(k))

    def _give_adjoint(self, k: int) -> None:
        if self.drive is not None:
            self.drive.give_adjoint(k, self._frame(k))

    # ---- halves of a step, for whoever has particles of its own to step in between ----

    def pull(self, k: int) -> None:
        """Velocities of slot ``k`` before a guest and hard walls, with lists of neighbours that serve."""
        if self.plan.grains and self._listed < 0:
            self._list(k)
        self.store.zero(["stale", "flag"])
        self._give(k)
        self._launch("pull")(self.plan.envs, k, self._frame(k))
        if self.plan.grains and self.store.view("stale")[k].any():
            self._list(k)
            self.store.zero(["stale"])
            self._launch("pull")(self.plan.envs, k, self._frame(k))
        self._listed_for[k] = self._listed
        if self.guest is not None:
            self.guest.enter(k, self._frame(k), 0)

    def move(self, k: int) -> None:
        """Hard walls, and slot ``k + 1``."""
        self._launch("move")(self.plan.envs, k)

    def check(self, k0: int, k1: int) -> None:
        """Raise :class:`ParticlesTrouble` for what went wrong in slots ``k0 … k1``."""
        self._check(k0, k1)

    def move_adjoint(self, k: int) -> None:
        """Adjoint of :meth:`move`: that of velocities after the guest into ``force_bar``."""
        self._launch("move_adjoint")(self.plan.envs, k)

    def pull_adjoint(self, k: int) -> None:
        """Adjoint of :meth:`pull`."""
        if self.guest is not None:
            self.guest.swap(k)
            self.guest.enter_adjoint(k, self._frame(k), 0)
        if self.plan.grains and self._listed != self._listed_for[k]:
            self._list(self._listed_for[k])
        self._launch("pull_adjoint")(self.plan.envs, k, self._frame(k))
        self._give_adjoint(k)

    def _frame(self, k: int) -> int:
        return min((self.start + k) // self.substeps, self.frames - 1)

    def _raise_flag(self, k1: int) -> None:
        """Raise what was flagged before slot ``k1``; what comes after it was run with stale lists."""
        flags = self.store.view("flag")
        if flags[:, 0].any():
            w = int(np.argmin(np.where(flags[:, 0] > 0, flags[:, 1], np.iinfo(np.int32).max)))
            kind, slot, particle = (int(n) for n in flags[w])
            if slot < k1:
                raise ParticlesTrouble(kind, self.start + slot, w // self.plan.shares, particle)

    def _check(self, k0: int, k1: int) -> None:
        if self.plan.grains:
            self._raise_flag(k1)
        v = self.store.view("v")
        if not np.isfinite(v[k1]).all():
            k = next(k for k in range(k0, k1 + 1) if not np.isfinite(v[k]).all())
            i = int(np.argmin(np.isfinite(v[k]).all(axis=1)))
            raise ParticlesTrouble(NOT_FINITE, self.start + k, *divmod(i, self.plan.particles))
        if self.plan.grains:
            self._check_speed(k1)

    def _check_speed(self, k: int) -> None:
        p, radius = self.plan, self.store.view("radius")
        moved = np.linalg.norm(self.store.view("v")[k], axis=1) * np.repeat(self.store.view("step")[:, 0], p.particles)
        fast = (radius > 0) & (moved > radius)
        if fast.any():
            raise ParticlesTrouble(TOO_FAST, self.start + k, *divmod(int(np.argmax(fast)), p.particles))

    def backward(self, k0: int, k1: int) -> None:
        """Carry the adjoint of slot ``k1`` back to slot ``k0``; undoes pieces in the order they were run."""
        while self._pieces and self._pieces[-1].k0 >= k0:
            piece = self._pieces.pop()
            if self.plan.grains and self._listed != piece.listed:
                self._list(piece.listed)
            envs = self.plan.envs
            if self.guest is not None:
                for k in range(piece.k1 - 1, piece.k0 - 1, -1):
                    self._launch("move_adjoint")(envs, k)
                    self.guest.swap(k)
                    self.guest.enter_adjoint(k, self._frame(k), 0)
                    self._launch("pull_adjoint")(envs, k, self._frame(k))
                    self._give_adjoint(k)
                continue
            launch = self._launch("backward")
            if self.plan.segment_mode:
                launch(envs, piece.k0, piece.k1, self.start, self.substeps, self.frames)
                continue
            for k in range(piece.k1 - 1, piece.k0 - 1, -1):
                launch(envs, k, self._frame(k))
                self._give_adjoint(k)

    # ---- state as the timeline stores it ----

    def read_slot(self, k: int) -> dict[str, np.ndarray]:
        """Copy of the state of slot ``k``."""
        return {name: np.array(self.store.view(name)[k]) for name in self.store.states()}

    def write_first_slot(self, state: Mapping[str, np.ndarray]) -> None:
        """Put a state into slot 0 (call :meth:`begin` first)."""
        self.store.write_first_slot(state)

    def at_rest(self, x: np.ndarray, v: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """A state in which no contact has a history: (envs * particles, dim) positions, m, and velocities, m/s."""
        state = {name: np.zeros_like(self.store.view(name)[0]) for name in self.store.states()}
        state["partner"][...] = -1
        state["x"][...] = x
        if v is not None:
            state["v"][...] = v
        return state

    def clear_adjoints(self) -> None:
        """Set every adjoint to zero, before a backward sweep."""
        self.store.zero(name for name in self.store.arrays if name.startswith("d_"))
        if self.drive is not None:
            self.drive.clear_adjoints()

    def close(self) -> None:
        """Free all memory."""
        self._bound.clear()
        if self.drive is not None:
            self.drive.close()
        self.store.close()
