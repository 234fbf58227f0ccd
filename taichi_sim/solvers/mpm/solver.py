"""The MPM solver: runs substeps forwards and backwards within one segment of the timeline."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from taichi_sim.core.launch import Launch
from taichi_sim.core.operator import bind_kernel
from taichi_sim.core.store import Store
from taichi_sim.runtime import Runtime
from taichi_sim.solvers.mpm import kernels, layers, ordering
from taichi_sim.solvers.mpm.arrays import MOST_DRIFT, PARAMETERS, SCRATCH, STATE, MpmPlan, domain_sizes
from taichi_sim.solvers.mpm.spline import NODE_MASK

#: What went wrong in a rollout; ``flag[w, 0]`` and :class:`Trouble`.
OUTSIDE, TOO_FAST = 1, 2


class Trouble(Exception):
    """A rollout that cannot go on; the simulation turns it into a sentence with names."""

    def __init__(self, kind: int, substep: int, env: int, particle: int, slot: int, speed: float = 0.0) -> None:
        super().__init__(kind)
        self.kind, self.substep, self.env, self.particle = kind, substep, env, particle
        self.slot, self.speed = slot, speed


class Guest(Protocol):
    """Something that acts on particles between gather and scatter (rigid bodies, say).

    ``enter`` changes their velocities in place and keeps those before; ``impart`` adds the change to the grid, into
    which they have been scattered as they were, and takes it back, so that a slot holds what was gathered into it.
    ``swap`` exchanges the two, for the backward sweep.
    """

    def part(self, k: int) -> None: ...
    def enter(self, k: int, frame: int, epoch: int) -> None: ...
    def impart(self, k: int, epoch: int) -> None: ...
    def swap(self, k: int) -> None: ...
    def enter_adjoint(self, k: int, frame: int, epoch: int) -> None: ...
    def again(self, start: int) -> bool: ...


class Drive(Protocol):
    """Forces on particles of a slot before anything else acts on them (chambers and tendons, say).

    ``kick`` changes velocities in place, ``unkick`` takes that back to the bit; ``kick_adjoint`` follows both. ``sort``
    is told the particles, in the order of the scene, that stand in the solver's arrays. ``given`` says who got which
    impulses, N s, in the last substep.
    """

    def sort(self, order: np.ndarray) -> None: ...
    def kick(self, k: int, frame: int) -> None: ...
    def unkick(self, k: int) -> None: ...
    def given(self) -> tuple[np.ndarray, np.ndarray]: ...
    def kick_adjoint(self, k: int, frame: int) -> None: ...
    def clear_adjoints(self) -> None: ...
    def close(self) -> None: ...


@dataclass
class _Piece:
    """Consecutive substeps within one order of the particles, as the backward sweep needs them."""

    k0: int
    k1: int
    epoch: int
    sorted: bool
    save: int
    stride: int
    env_stride: int
    saved: bool


class MpmSolver:
    """State, parameters and launches of one compiled scene.

    ``slots`` is one more than the longest segment. ``saved_nodes`` is the room for active grids of a segment; where
    it does not suffice, the backward sweep scatters again instead. With a ``guest`` or a ``drive``, substeps are not
    fused: they act between gather and scatter, the drive first.
    """

    guest: Guest | None = None
    drive: Drive | None = None
    #: What was run last; its grids are in ``saved`` until the next.
    last: _Piece

    def __init__(
        self, runtime: Runtime, plan: MpmPlan, substeps: int, frames: int, slots: int, saved_nodes: int, plain: bool
    ) -> None:
        self.plan = plan
        self.substeps = substeps
        self.spare = plan.nodes * plan.envs * plan.layers
        p = plan
        sizes = domain_sizes(plan, slots, saved_nodes)
        if max(sizes["saved_node"], sizes["copy_node"]) > NODE_MASK:
            raise ValueError(
                f"the grid has {p.nodes:,} nodes ({p.workers} private copies): too many; use a larger domain.spacing"
            )
        self.store = Store(runtime, STATE + PARAMETERS + SCRATCH, sizes, p.dim, slots, frames, p.partitions)
        self.capacity = saved_nodes
        self._plain = plain
        self._bound: dict[tuple[str, int], Launch] = {}
        self._fill_constants()
        self.begin(0)

    def _fill_constants(self) -> None:
        p, store = self.plan, self.store
        lattice = np.zeros(12)
        lattice[0], lattice[1] = p.spacing, 1.0 / p.spacing
        lattice[3 : 3 + p.dim] = p.origin
        for d in range(p.dim):
            lattice[6 + d] = p.upper[d] - p.lower[d] if p.periodic[d] else 0.0
            lattice[9 + d] = p.lower[d]
        store.write("lattice", lattice)
        extent = np.zeros(12, np.int32)
        extent[: p.dim] = p.sizes
        extent[3 : 3 + p.dim] = p.strides
        extent[6:12] = p.nodes * p.layers, p.particles, p.rows, p.groups, p.blocks, p.nodes
        store.write("extent", extent)
        work = np.zeros((len(p.laws), p.envs, p.partitions, 2), np.int32)
        for l, (first, last) in enumerate(p.law_ranges):
            cuts = first + (last - first) * np.arange(p.partitions + 1) // p.partitions
            for e in range(p.envs):
                work[l, e, :, 0] = e * p.particles + cuts[:-1]
                work[l, e, :, 1] = e * p.particles + cuts[1:]
        store.write("work", work.reshape(-1))
        store.zero(["contact_head", "copies", "flag", "speed", "colour", "plate"])
        store.write("contact_head", np.full(p.envs * p.nodes, -1, np.int32))

    def set_mass_floor(self, floor: float) -> None:
        """Nodes lighter than this have no velocity (kg)."""
        lattice = np.array(self.store.view("lattice"))
        lattice[2] = floor
        self.store.write("lattice", lattice)

    # ---- launches, compiled when first needed ----

    def _launch(self, name: str, law: int = 0) -> Launch:
        key = (name, law)
        if key not in self._bound:
            self._bound[key] = self._bind(name, law)
        return self._bound[key]

    def _bind(self, name: str, law: int) -> Launch:
        p, store, plain = self.plan, self.store, self._plain
        common = {"dim": p.dim, "periodic": p.periodic, "partitions": p.partitions, "fields": p.fields,
                  "alone": p.workers == 1, "plates": p.plates}
        acted = {"loaded": p.groups > 1, "driven": p.driven}
        one_law = {**common, **acted, "law": p.laws[law]}
        all_laws = {**common, **acted, "laws": p.laws}
        match name:
            case "particles":
                return kernels.particles.bind(store, plain, **one_law)
            case "particles_adjoint":
                return kernels.particles.bind_adjoint(store, plain, **one_law)
            case "nodes":
                return kernels.nodes.bind(store, plain, **common)
            case "nodes_adjoint":
                return kernels.nodes.bind_adjoint(store, plain, **common)
            case "segment":
                return kernels.segment.bind(store, plain, **all_laws)
            case "segment_adjoint":
                return kernels.segment.bind_adjoint(store, plain, **all_laws)
            case "sort":
                return bind_kernel(ordering.sort, store, {**common, "laws": len(p.laws)}, plain)
            case "permute":
                return bind_kernel(ordering.permute, store, common, plain)
            case "colour":
                return bind_kernel(layers.colour_particles, store, common, plain)
            case "unpermute":
                return bind_kernel(ordering.unpermute_adjoint, store, {}, plain)
        raise ValueError(name)

    # ---- a segment ----

    def begin(self, start: int) -> None:
        """Start a segment at absolute substep ``start``; slot 0 and ``id[0]`` hold its state."""
        self.start = start
        self.epoch = 0
        self._told = -1  # the order of particles that the drive knows
        self._pieces: list[_Piece] = []
        self._used = 0
        self._drift = 0.0
        self._sorted_slots: dict[int, int] = {}
        self.store.zero(["flag", "speed"])

    def forward(self, k0: int, k1: int, record: bool) -> None:
        """Substeps of slots ``k0 … k1``. With ``record`` the active grids are kept for :meth:`backward`."""
        every = self.plan.sort_every
        k = k0
        while k < k1:
            t = self.start + k
            moved = False
            if self.epoch == 0 or t % every == 0:
                moved = t % every == 0
                self._sort(k, keep=not moved)
            end = min(k1, k + every - t % every)
            piece = self._piece(k, end, moved, record)
            self._run(piece)
            while self.guest is not None and self.guest.again(self.start):
                self._run(piece)
            self._check(k, end)
            k = end

    def _sort(self, k: int, keep: bool) -> None:
        self.epoch += 1
        self._drift = 0.0
        self._launch("sort")(self.plan.envs, k, self.epoch, int(keep))
        if not keep:
            self._launch("permute")(k, self.epoch)
            self._sorted_slots[k] = self.epoch

    def _piece(self, k0: int, k1: int, moved: bool, record: bool) -> _Piece:
        per_block = 4**self.plan.dim * self.plan.layers
        active = int(self.store.view("block_count")[self.epoch].max()) * per_block
        stride = active * self.plan.envs
        need = stride * (k1 - k0)
        if not record:
            return _Piece(k0, k1, self.epoch, moved, 0, 0, active, False)
        fits = self._used + need <= self.capacity
        piece = _Piece(k0, k1, self.epoch, moved, self.spare + self._used if fits else 0, stride if fits else 0,
                       active, fits)
        self._used += need if fits else 0
        self._pieces.append(piece)
        return piece

    def _run(self, piece: _Piece) -> None:
        p = self.plan
        self.last = piece
        if self.guest is not None or self.drive is not None:
            self._run_with(self.guest, piece)
            return
        if p.segment_mode:
            self._launch("segment")(
                p.envs, piece.k0, piece.k1, self.start, self.substeps, piece.epoch, piece.save, piece.stride,
                piece.env_stride,
            )
            return
        particles = [self._launch("particles", l) for l in range(len(p.laws))]
        nodes = self._launch("nodes")
        workers, epoch = p.workers, piece.epoch
        for k in range(piece.k0, piece.k1):
            f = (self.start + k) // self.substeps
            gather = int(k > piece.k0)
            for l, launch in enumerate(particles):
                launch(l, workers, k, f, epoch, gather, 1)
            nodes(workers, f, epoch, piece.save + (k - piece.k0) * piece.stride, piece.env_stride, 0)
        for l, launch in enumerate(particles):
            launch(l, workers, piece.k1, 0, epoch, 1, 0)

    def _kick(self, k: int, frame: int, epoch: int) -> None:
        if self.drive is None:
            return
        if self._told != epoch:
            self.drive.sort(self.store.view("id")[epoch])
            self._told = epoch
        self.drive.kick(k, frame)

    def _part(self, k: int, colour: bool) -> None:
        """Where thin bodies are in slot ``k``, and (``colour``) on which side of them its particles."""
        if self.plan.plates and self.guest is not None:
            self.guest.part(k)
            if colour:
                self._launch("colour")(self.plan.envs * self.plan.particles, self.plan.particles, k)

    def _run_with(self, guest: Guest | None, piece: _Piece) -> None:
        particles = [self._launch("particles", l) for l in range(len(self.plan.laws))]
        nodes = self._launch("nodes")
        workers, epoch = self.plan.workers, piece.epoch
        # a drive acts on what was gathered before it is scattered, and so do thin bodies: it tells its side
        apart = self.drive is not None or self.plan.plates > 0
        for k in range(piece.k0, piece.k1):
            f = (self.start + k) // self.substeps
            self._kick(k, f, epoch)
            self._part(k, colour=True)
            for l, launch in enumerate(particles):
                launch(l, workers, k, f, epoch, int(k > piece.k0 and not apart), 1)
            if guest is not None:
                guest.enter(k, f, epoch)
                guest.impart(k, epoch)
            if self.drive is not None:
                self.drive.unkick(k)
            nodes(workers, f, epoch, piece.save + (k - piece.k0) * piece.stride, piece.env_stride, 0)
            for l, launch in enumerate(particles if apart or k == piece.k1 - 1 else ()):
                launch(l, workers, k + 1, 0, epoch, 1, 0)

    def _check(self, k0: int, k1: int) -> None:
        flags = self.store.view("flag")
        if flags[:, 0].any():
            w = int(np.argmin(np.where(flags[:, 0] > 0, flags[:, 1], np.iinfo(np.int32).max)))
            _, slot, place, _ = (int(i) for i in flags[w])
            env = w // self.plan.partitions
            particle = int(self.store.view("id")[self.epoch, place])
            raise Trouble(OUTSIDE, self.start + slot, env, particle, slot)
        fastest = float(np.max(self.store.view("speed")))
        dt = float(np.max(self.store.view("step")[:, 0]))
        cells = fastest * dt / self.plan.spacing
        self._drift += cells * (k1 - k0)
        self.store.zero(["speed"])
        if not (cells <= 1.0 and self._drift <= MOST_DRIFT):
            raise Trouble(TOO_FAST, self.start + k1, 0, -1, k1, fastest)

    def backward(self, k0: int, k1: int) -> None:
        """Carry the adjoint of slot ``k1`` back to slot ``k0``; undoes pieces in the order they were run."""
        while self._pieces and self._pieces[-1].k0 >= k0:
            piece = self._pieces.pop()
            if self.guest is not None or self.drive is not None:
                self._run_backward_with(self.guest, piece)
            elif piece.saved and self.plan.segment_mode:
                self._launch("segment_adjoint")(
                    self.plan.envs, piece.k0, piece.k1, self.start, self.substeps, piece.epoch, piece.save,
                    piece.stride, piece.env_stride,
                )
            elif piece.saved:
                self._run_backward(piece)
            else:
                self._run_backward_again(piece)
            if piece.sorted:
                self._launch("unpermute")(piece.epoch)
                self.epoch = piece.epoch - 1

    def _run_backward(self, piece: _Piece) -> None:
        laws = range(len(self.plan.laws))
        particles = [self._launch("particles_adjoint", l) for l in laws]
        nodes, nodes_adjoint = self._launch("nodes"), self._launch("nodes_adjoint")
        workers, epoch = self.plan.workers, piece.epoch
        last = piece.k1 - 1
        f = (self.start + last) // self.substeps
        nodes(workers, f, epoch, piece.save + (last - piece.k0) * piece.stride, piece.env_stride, 1)
        for k in range(last, piece.k0 - 1, -1):
            save = piece.save + (k - piece.k0) * piece.stride
            after = (self.start + k + 1) // self.substeps if k < last else 0
            for l, launch in enumerate(particles):
                launch(l, workers, k + 1, after, epoch, int(k < last), 1)
            f = (self.start + k) // self.substeps
            before = max(0, self.start + k - 1) // self.substeps
            nodes_adjoint(workers, f, epoch, save, save - piece.stride, before, piece.env_stride, int(k > piece.k0))
        for l, launch in enumerate(particles):
            launch(l, workers, piece.k0, (self.start + piece.k0) // self.substeps, epoch, 1, 0)

    def _run_backward_again(self, piece: _Piece) -> None:
        """Backward without stored grids: scatter every substep once more."""
        laws = range(len(self.plan.laws))
        forward = [self._launch("particles", l) for l in laws]
        adjoint = [self._launch("particles_adjoint", l) for l in laws]
        nodes, nodes_adjoint = self._launch("nodes"), self._launch("nodes_adjoint")
        workers, epoch, stride = self.plan.workers, piece.epoch, piece.env_stride
        for k in range(piece.k1 - 1, piece.k0 - 1, -1):
            f = (self.start + k) // self.substeps
            for l, launch in enumerate(forward):
                launch(l, workers, k, f, epoch, 0, 1)
            nodes(workers, f, epoch, 0, stride, 0)
            for l, launch in enumerate(adjoint):
                launch(l, workers, k + 1, 0, epoch, 0, 1)
            nodes_adjoint(workers, f, epoch, 0, 0, 0, stride, 0)
            for l, launch in enumerate(adjoint):
                launch(l, workers, k, f, epoch, 1, 0)

    def _run_backward_with(self, guest: Guest | None, piece: _Piece) -> None:
        """Backward with a guest or a drive; grids from what was saved, or scattered once more."""
        laws = range(len(self.plan.laws))
        forward = [self._launch("particles", l) for l in laws]
        adjoint = [self._launch("particles_adjoint", l) for l in laws]
        nodes, nodes_adjoint = self._launch("nodes"), self._launch("nodes_adjoint")
        workers, epoch, stride = self.plan.workers, piece.epoch, piece.env_stride
        for k in range(piece.k1 - 1, piece.k0 - 1, -1):
            f = (self.start + k) // self.substeps
            save = piece.save + (k - piece.k0) * piece.stride
            self._kick(k, f, epoch)
            self._part(k, colour=False)
            if guest is not None:
                guest.swap(k)
            for l, launch in enumerate(forward if not piece.saved else ()):
                launch(l, workers, k, f, epoch, 0, 1)
            nodes(workers, f, epoch, save, stride, int(piece.saved))
            for l, launch in enumerate(adjoint):
                launch(l, workers, k + 1, 0, epoch, 0, 1)
            nodes_adjoint(workers, f, epoch, save, 0, 0, stride, 0)
            for l, launch in enumerate(adjoint):
                launch(l, workers, k, f, epoch, 1, 0)
            if guest is not None:
                guest.swap(k)
                guest.enter_adjoint(k, f, epoch)
            if self.drive is not None:
                self.drive.unkick(k)
                self.drive.kick_adjoint(k, f)

    # ---- state as the timeline stores it ----

    def read_slot(self, k: int) -> dict[str, np.ndarray]:
        """Copy of the state of slot ``k`` with its order."""
        state = {name: np.array(self.store.view(name)[k]) for name in self.store.states()}
        if self.plan.plates:
            state["colour"] = np.array(self.store.view("colour")[k])
        state["id"] = np.array(self.store.view("id")[self.epoch])
        return state

    def write_first_slot(self, state: dict[str, np.ndarray]) -> None:
        """Put a state into slot 0 (call :meth:`begin` first); without colours, sides are those of places."""
        fresh = {"colour": np.zeros(self.store.view("colour").shape[1], np.int32)}
        self.store.write_first_slot(fresh | state)

    def _places(self, epoch: int) -> np.ndarray:
        """Place in body order, over all environments, of every particle in the order of ``epoch``."""
        p = self.plan
        return self.store.view("id")[epoch] + p.particles * np.repeat(np.arange(p.envs), p.particles)

    def _to_body_order(self, values: np.ndarray, epoch: int) -> np.ndarray:
        out = np.empty_like(values)
        out[self._places(epoch)] = values
        return out.reshape(self.plan.envs, self.plan.particles, *values.shape[1:])

    def in_body_order(self, name: str, k: int) -> np.ndarray:
        """(envs, particles, …) values of a state array in body order.

        Where a sort happened at slot ``k`` its state is stored in the new order, though adjoints arrive in the old.
        """
        return self._to_body_order(self.store.view(name)[k], self._sorted_slots.get(k, self.epoch))

    def adjoint_in_body_order(self, name: str) -> np.ndarray:
        """(envs, particles, …) adjoint of a state array in body order."""
        return self._to_body_order(self.store.view(f"d_{name}"), self.epoch)

    def add_adjoint(self, name: str, values: np.ndarray) -> None:
        """Add to the adjoint of a state array, given in body order (envs, particles, …)."""
        p = self.plan
        target = self.store.view(f"d_{name}")
        target += values.reshape(p.envs * p.particles, *values.shape[2:])[self._places(self.epoch)]
        if self.store.runtime.arch != "cpu":
            self.store.write(f"d_{name}", target)

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
