"""What an audit reads of the particle solver after a step.

Forces are gathered once more from the state before the step, in a kernel of its own: those of walls and obstacles, and
all of them, so that points that are held can say what holds them. It writes what the step wrote already, bit by bit.
"""

import numpy as np

from taichi_sim.core.operator import bind_kernel
from taichi_sim.core.reading import (
    ACTUATORS,
    DAMPING,
    FORCES,
    GRAVITY,
    HELD,
    WALLS,
    Act,
    Energy,
    Reading,
    State,
    act,
    act_of,
    lifted,
    lifted_turn,
    summed,
    work_only,
)
from taichi_sim.runtime import free, ndarray, ti
from taichi_sim.solvers.particles.arrays import GROUP, SURFACE
from taichi_sim.solvers.particles.arrays import HELD as HELD_COLUMN
from taichi_sim.solvers.particles.contact import contact, elastic
from taichi_sim.solvers.particles.forces import contact_forces, elastic_forces, locate
from taichi_sim.solvers.particles.kernels import A1, A2, A3
from taichi_sim.solvers.particles.search import COUNT
from taichi_sim.solvers.particles.search import WALLS as COUNT_WALLS
from taichi_sim.solvers.particles.solver import ParticlesSolver

#: Columns of ``felt``: force and torque of walls and obstacles, force and torque of all; energy contacts hold.
BY_WALLS, BY_WALLS_TURN, BY_ALL, BY_ALL_TURN, STORED = 0, 3, 6, 9, 12


@ti.func
def held_by_walls(
    has: ti.template(), e, i, k, x: ti.template(), v: ti.template(), spin: ti.template(), partner: ti.template(),
    stretch: ti.template(), roll: ti.template(), radius: ti.template(), surface: ti.template(), step: ti.template(),
    wall_normal: ti.template(), wall: ti.template(), obstacle_friction: ti.template(), tag: ti.template(),
    wall_kind: ti.template(), distance: ti.template(), grid: ti.template(), neighbour: ti.template(),
    extent: ti.template(),
):
    """Force and torque of walls and obstacles on particle ``i``; and its share of what its contacts store."""
    F, T, stored = x[k, i] * 0.0, spin[k, i] * 0.0, radius[i] * 0.0
    room = partner.shape[2]
    if radius[i] > 0.0 and tag[i - e * extent[COUNT]][SURFACE] >= 0:
        for m in range(neighbour[i, 0] + extent[COUNT_WALLS] + ti.static(int(has.obstacle))):
            other, n, L, delta, relative, W, turn, R, share, pair = locate(
                has, e, i, m, k, x, v, spin, radius, surface, wall_normal, wall, obstacle_friction, tag, wall_kind,
                distance, grid, neighbour, extent)
            if delta > 0.0:
                kept, rolled = n * 0.0, spin[k, i] * 0.0
                for s in range(room):
                    if partner[k, i, s] == other:
                        kept = stretch[k, i, s]
                        if ti.static(has.rolling):
                            rolled = roll[k, i, s]
                push, slope = elastic(has.hertz, pair[0], R, delta)
                part = ti.select(m < neighbour[i, 0], 0.5, 1.0)
                stored = stored + part * (
                    push * delta / ti.static(2.5 if has.hertz else 2.0)
                    + 0.5 * slope * (kept.norm_sqr() + R * R * rolled.norm_sqr()))
                if m >= neighbour[i, 0]:
                    force, couple, moment, _kept, _rolled = contact(
                        has, n, L, delta, relative, W, turn, kept, rolled, R, pair[0], pair[1], pair[2], pair[3],
                        step[e][0])
                    F = F + force
                    T = T + share * couple + moment
    return F, T, stored


@ti.kernel
def feel(
    has: ti.template(), shares: ti.template(), x: A2, v: A2, spin: A2, partner: A3, stretch: A3, roll: A3, radius: A1,
    spring: A1, bend_stiffness: A1, surface: A1, step: A1, wall_normal: A1, wall: A1, obstacle_friction: A1,
    actuation: A2, tag: A1, edge: A1, head: A1, spring_of: A1, bend: A1, bend_of: A1, wall_kind: A1, distance: A1,
    grid: A1, neighbour: A2, extent: A1, flag: A1, felt: A2, envs: ti.i32, k: ti.i32, f: ti.i32,
):
    """What acts on every particle in slot ``k``, columns above."""
    for i in range(envs * extent[COUNT]):
        e = i // extent[COUNT]
        F = elastic_forces(has, e, i, k, f, x, v, spring, bend_stiffness, actuation, edge, head, spring_of, bend,
                           bend_of, extent)
        for c in range(13):
            felt[i, c] = 0.0
        if ti.static(has.grains):
            mine = e * shares + (i - e * extent[COUNT]) * shares // extent[COUNT]
            push, turned = contact_forces(has, e, mine, i, k, x, v, spin, partner, stretch, roll, radius, surface, step,
                                      wall_normal, wall, obstacle_friction, tag, wall_kind, distance, grid, neighbour,
                                      extent, flag)
            F = F + push
            G, T, stored = held_by_walls(
                has, e, i, k, x, v, spin, partner, stretch, roll, radius, surface, step, wall_normal, wall,
                obstacle_friction, tag, wall_kind, distance, grid, neighbour, extent)
            felt[i, STORED] = stored
            for d in ti.static(range(has.dim)):
                felt[i, BY_WALLS + d] = G[d]
            for d in ti.static(range(T.n)):
                felt[i, BY_WALLS_TURN + ti.static(2 if T.n == 1 else d)] = T[d]
                felt[i, BY_ALL_TURN + ti.static(2 if T.n == 1 else d)] = turned[d]
        for d in ti.static(range(has.dim)):
            felt[i, BY_ALL + d] = F[d]


class _With:
    """The arrays of the solver and one more."""

    def __init__(self, solver: ParticlesSolver, felt: ti.Ndarray) -> None:
        self.runtime, self.real = solver.store.runtime, solver.store.real
        self.arrays = {**solver.store.arrays, "felt": felt}

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def __getitem__(self, name: str) -> ti.Ndarray:
        return self.arrays[name]


class ParticlesAudit:
    """Reads one step at a time: the solver has to be run so."""

    def __init__(self, solver: ParticlesSolver) -> None:
        self.solver, p = solver, solver.plan
        self.env = np.repeat(np.arange(p.envs), p.particles)
        self.tag = np.tile(solver.store.view("tag"), (p.envs, 1))
        self.felt = ndarray(solver.store.runtime.real, (p.envs * p.particles, 13))
        fixed = {"has": p.features, "shares": p.shares}
        self.feel = bind_kernel(feel, _With(solver, self.felt), fixed)

    def close(self) -> None:
        """Free what was allocated."""
        free(self.felt, self.solver.store.runtime)

    def _array(self, name: str) -> np.ndarray:
        return np.asarray(self.solver.store.view(name), np.float64)

    def masses(self) -> np.ndarray:
        """(envs * particles,) kg."""
        return self._array("mass")

    def meeting(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Places of slot ``k``, and the velocities with which points leave bodies."""
        return self.solver.store.view("x")[k], self.solver.store.view("free_velocity")[k]

    def _slot(self, name: str, k: int) -> np.ndarray:
        return np.asarray(self.solver.store.view(name)[k], np.float64)

    def _inertia(self) -> np.ndarray:
        return (0.4 if self.solver.plan.dim == 3 else 0.5) * self._array("mass") * self._array("radius") ** 2

    def _spin(self, k: int) -> np.ndarray:
        if not self.solver.plan.grains:
            return np.zeros((len(self.env), 3))
        return lifted_turn(self._slot("spin", k))

    def _state(self, k: int) -> State:
        m, x, v = self._array("mass"), lifted(self._slot("x", k)), lifted(self._slot("v", k))
        p = m[:, None] * v
        turn = np.cross(x, p) + self._inertia()[:, None] * self._spin(k)
        parts = (p, turn, np.linalg.norm(p, axis=1), np.linalg.norm(turn, axis=1))
        return State(*(summed(part, self.env, self.solver.plan.envs) for part in parts))

    def read(self, k: int) -> Reading:
        """The step from slot ``k``."""
        s, p, envs = self.solver, self.solver.plan, self.solver.plan.envs
        f = min((s.start + k) // s.substeps, s.frames - 1)
        self.feel(envs, k, f)
        felt = np.asarray(self.felt.to_numpy(), np.float64)
        m, x, x1 = self._array("mass"), lifted(self._slot("x", k)), lifted(self._slot("x", k + 1))
        v, v1, w, w1 = lifted(self._slot("v", k)), lifted(self._slot("v", k + 1)), self._spin(k), self._spin(k + 1)
        h, c = self._array("step")[self.env].T
        moves = (self.tag[:, HELD_COLUMN] == 0).astype(float)
        gravity, keep = lifted(self._array("gravity"))[self.env], np.exp(-h * c)
        mid, turning = 0.5 * (v + v1), 0.5 * (w + w1)
        pushed = moves * h
        held = self.tag[:, HELD_COLUMN] == 1

        def on(by: str, impulse: np.ndarray, couple: np.ndarray | None = None, source: bool = False) -> Act:
            return act(by, self.env, envs, x, impulse, mid, couple, turning, source)

        acts = [on(GRAVITY, (pushed * m)[:, None] * gravity)]
        if p.grains:
            by_walls, turned = felt[:, BY_WALLS : BY_WALLS + 3], felt[:, BY_WALLS_TURN : BY_WALLS_TURN + 3]
            acts.append(on(WALLS, pushed[:, None] * by_walls, pushed[:, None] * turned))
        if p.features.hard:
            before = lifted(s.store.view("free_velocity")[k])
            impulse = (moves * m)[:, None] * (v1 - before)
            turn = (moves * m)[:, None] * (np.cross(x1, v1) - np.cross(x, before))
            work = np.einsum("ni,ni->n", impulse, 0.5 * (before + v1))
            acts.append(act_of(WALLS, self.env, envs, impulse, turn, work))
        if held.any():
            stopped, turned = (-(held * h)[:, None] * felt[:, c : c + 3] for c in (BY_ALL, BY_ALL_TURN))
            acts.append(on(HELD, stopped, turned, source=True))
        if c.any():
            lost = moves * (keep - 1.0)
            acts.append(on(DAMPING, (lost * m)[:, None] * v, (lost * self._inertia())[:, None] * w))
        if p.groups > 1:
            push = lifted(s.store.view("group_force")[f][self.env * p.groups + self.tag[:, GROUP]])
            acts.append(on(ACTUATORS, pushed[:, None] * push, source=True))
        if p.driven:
            given = s.store.view("particle_force")
            acts.append(on(FORCES, pushed[:, None] * lifted(given[min(f, len(given) - 1)]), source=True))
        if p.coupled:
            acts.append(on(ACTUATORS, moves[:, None] * lifted(s.store.view("impulse")[k]), source=True))
        stored, command = self._springs(k, f, x), np.zeros(envs)
        if f != (before := min(max(s.start + k - 1, 0) // s.substeps, s.frames - 1)):  # rest lengths change at frames
            command = stored - self._springs(k, before, x)
        if p.edges and p.actuators > 1:
            acts.append(work_only("rest lengths", command, at_once=True))
        half = 0.5 * (m * np.sum(mid**2, axis=1) + self._inertia() * np.sum(turning**2, axis=1))
        half[held] = 0.0
        energy = Energy(
            summed(half, self.env, envs),
            summed(-moves * m * np.einsum("ni,ni->n", gravity, x), self.env, envs),
            stored + summed(felt[:, STORED], self.env, envs),
            np.full(envs, 0.5),
        )
        return Reading(self._state(k), self._state(k + 1), energy, acts, s.store.runtime.precision)

    def _springs(self, k: int, f: int, x: np.ndarray) -> np.ndarray:
        """Energy of springs and bends, J, with the rest lengths of frame ``f``."""
        p, store, out = self.solver.plan, self.solver.store, np.zeros(self.solver.plan.envs)
        for rows, count in ((store.view("edge"), len(p.edges)), (store.view("bend"), len(p.bends))):
            if not count:
                continue
            e = np.repeat(np.arange(p.envs), count)
            at = np.tile(rows[:count], (p.envs, 1))
            corners = x[e[:, None] * p.particles + at[:, : 2 if rows is store.view("edge") else 3]]
            if corners.shape[1] == 2:
                spring = self._array("spring")[: p.envs * count]
                rest = spring[:, 2] * (1.0 + self._array("actuation")[f][e * p.actuators + at[:, 2]])
                length = np.linalg.norm(corners[:, 1] - corners[:, 0], axis=1)
                out += summed(0.5 * spring[:, 0] * (length - rest) ** 2, e, p.envs)
            else:
                sides = np.diff(corners, axis=1)
                sides /= np.maximum(np.linalg.norm(sides, axis=2, keepdims=True), 1e-300)
                straight = np.einsum("ni,ni->n", sides[:, 0], sides[:, 1])
                out += summed(self._array("bend_stiffness")[: p.envs * count] * (1.0 - straight), e, p.envs)
        return out
