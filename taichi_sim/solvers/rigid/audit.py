"""What an audit reads of the rigid body solver after a step.

The impulses of contacts follow once more from the tape (``sensing``), at the velocities that were found; what other
solvers did is what is then missing between the velocities without contact and those after the step: the other solver's
own reading is what that is compared with.
"""

from dataclasses import replace

import numpy as np

from taichi_sim.core.reading import (
    ACTUATORS,
    FORCES,
    GRAVITY,
    WALLS,
    Act,
    Along,
    Energy,
    Reading,
    State,
    act,
    lifted,
    lifted_turn,
    summed,
    work_only,
)
from taichi_sim.solvers.rigid.attitude import lift, matrices
from taichi_sim.solvers.rigid.drive import (
    BOUND,
    DAMPING,
    DRY,
    LOWER,
    PUSH,
    PUSH_SLOPE,
    SLOPE,
    SPRING,
    STIFF,
)
from taichi_sim.solvers.rigid.drive import STICTION as DRY_SPEED
from taichi_sim.solvers.rigid.solver import RigidSolver
from taichi_sim.solvers.rigid.topology import BALL, LOOSE
from taichi_sim.solvers.rigid.tree import COORDINATE, COUNT, FIRST, KIND, PARENT
from taichi_sim.solvers.rigid.twist import FREE, NOW

#: What holds bodies that hang on the world.
JOINTS = "joints to the world"


class RigidAudit:
    """Reads one step at a time: the solver has to be run so. ``other``: the family of matter that acts too, if any."""

    def __init__(self, solver: RigidSolver, other: str | None = None) -> None:
        self.solver, self.other = solver, other
        p = solver.plan
        self.env = np.repeat(np.arange(p.envs), p.bodies)
        link = solver.store.view("link")
        roots = link[:, PARENT] < 0
        self.hangs = p.jointed and bool((roots & (link[:, KIND] != LOOSE)).any())
        self.hangs |= any(-1 in row[1:] for row in p.closures)

    def _array(self, name: str) -> np.ndarray:
        return np.array(self.solver.store.view(name), np.float64)  # a copy: reading contacts writes into some

    def _moved(self, k: int) -> tuple[np.ndarray, ...]:
        """Places, velocities, spins, moments in world axes of slot ``k``."""
        x, v, w = (np.asarray(self.solver.store.view(name)[k], np.float64) for name in ("position", "velocity", "spin"))
        R = np.tile(np.eye(3), (len(x), 1, 1))
        dim = self.solver.plan.dim
        R[:, :dim, :dim] = matrices(np.asarray(self.solver.store.view("rotation")[k], np.float64), dim)
        return lifted(x), lifted(v), lifted_turn(w), R @ lift(self._array("inertia")) @ R.transpose(0, 2, 1)

    def _state(self, k: int) -> State:
        m, (x, v, w, I) = self._array("mass"), self._moved(k)
        p, turn = m[:, None] * v, np.einsum("nij,nj->ni", I, w)
        turn = turn + np.cross(x, p)
        envs = self.solver.plan.envs
        size, turn_size = np.linalg.norm(p, axis=1), np.linalg.norm(turn, axis=1)
        return State(*(summed(part, self.env, envs) for part in (p, turn, size, turn_size)))

    def read(self, k: int) -> Reading:
        """The step from slot ``k``."""
        s, p, envs = self.solver, self.solver.plan, self.solver.plan.envs
        m, gravity = self._array("mass"), lifted(self._array("gravity"))[self.env]
        free = 1.0 - np.tile(np.array(p.held or (0,) * p.bodies), envs)
        kick, after = self._array("kick")[k], self._array("kick")[k + 1]
        dt = self._array("dt")
        length = (dt + 0.5 * (kick - after))[self.env]
        x, v, w, I = self._moved(k)
        v1, w1 = self._found(k)
        mid, turning = 0.5 * (v + v1), 0.5 * (w + w1)
        f = min((s.start + k) // s.substeps, s.store.view("force").shape[0] - 1)
        acts = [act(GRAVITY, self.env, envs, x, (free * m * length)[:, None] * gravity, mid)]
        force = lifted(s.store.view("force")[f]) * (free * length)[:, None]
        torque = lifted_turn(s.store.view("torque")[f]) * (free * length)[:, None]
        if force.any() or torque.any():
            acts.append(act(FORCES, self.env, envs, x, force, mid, torque, turning, source=True))
        free_v, free_w = self._column(FREE) if self.other is not None else (v, w)  # not there after the next line
        wall_push, wall_couple, push, couple, stored = self._contacts(k, x)
        acts.append(act(WALLS, self.env, envs, x, wall_push, mid, wall_couple, turning))
        push, couple = push + wall_push, couple + wall_couple
        if p.jointed:
            work, springs = self._joints(k, f, length[:: p.bodies])
            acts.append(work_only(ACTUATORS, work))
            stored = stored + springs
        left = m[:, None] * (v1 - free_v) - push
        left_turn = np.einsum("nij,nj->ni", I, w1 - free_w) - couple
        along = None
        if self.other is not None and p.jointed and not p.closures:
            along = self.along(k, left, left_turn)
            along = replace(along, impulse=along.impulse - self._rows(k))
        if self.other is not None and not p.jointed:
            acts.append(act(self.other, self.env, envs, x, left, mid, left_turn, turning))
        state, end = self._state(k), self._state(k + 1)
        if self.hangs:
            lost, lost_turn = end.momentum - state.momentum, end.turn - state.turn
            for one in acts:
                lost, lost_turn = lost - one.impulse, lost_turn - one.turn
            sizes = (np.linalg.norm(part, axis=1) for part in (lost, lost_turn))
            acts.append(Act(JOINTS, lost, lost_turn, np.full(envs, np.nan), *sizes, derived=True))
        part = kick / np.maximum(kick + after, 1e-300)
        at, spinning = v + part[self.env, None] * (v1 - v), w + part[self.env, None] * (w1 - w)
        kinetic = 0.5 * (m * np.einsum("ni,ni->n", at, at) + np.einsum("ni,nij,nj->n", spinning, I, spinning))
        rates = self._armature(k, part)
        energy = Energy(
            summed(kinetic, self.env, envs) + rates,
            summed(-m * free * np.einsum("ni,ni->n", gravity, x), self.env, envs), stored, part,
        )  # fmt: skip
        unknown = "trees carry momentum on in the middle of a step" if p.jointed else ""
        blind = "free spin is of second order in the step" if p.dim == 3 else ""
        loops = "what closures store" if p.closures else ""
        return Reading(state, end, energy, acts, "f64", unknown, unknown or blind, loops, along)

    def tell_apart(self, k: int, reading: Reading, other: str, one: str, got: tuple[np.ndarray, np.ndarray]) -> None:
        """Where two families act, all that bodies got stands as the act of ``other``: make what they ``got`` of
        ``one`` (impulses and couples (n, 3), as that tells it) an act of its own. Not for bodies on joints."""
        if self.solver.plan.jointed:
            return
        x, v, w, _ = self._moved(k)
        v1, w1 = self._found(k)
        envs = self.solver.plan.envs
        told = act(one, self.env, envs, x, got[0], 0.5 * (v + v1), got[1], 0.5 * (w + w1))
        at = next(i for i, found in enumerate(reading.acts) if found.by == other)
        whole = reading.acts[at]
        reading.acts[at] = replace(
            whole, impulse=whole.impulse - told.impulse, turn=whole.turn - told.turn, work=whole.work - told.work
        )
        reading.acts.append(told)

    def along(self, k: int, push: np.ndarray, couple: np.ndarray) -> Along:
        """Impulses and couples on bodies (n, 3) as impulses along degrees of freedom, with joints where they are in
        slot ``k``: the transpose of ``tree.spread``, body by body."""
        p, link = self.solver.plan, self.solver.store.view("link")
        lever = self._array("lever").reshape(p.envs, p.bodies, 6)
        motion = self._array("motion").reshape(p.envs, p.freedoms, 6)
        push, couple = push.reshape(p.envs, p.bodies, 3), couple.reshape(p.envs, p.bodies, 3)
        x = lifted(self.solver.store.view("position")[k]).reshape(p.envs, p.bodies, 3)
        out, size = np.zeros((p.envs, p.freedoms)), np.zeros((p.envs, p.freedoms))
        for b in range(p.bodies):
            a = b
            while a >= 0:
                arm = x[:, b] - x[:, a] + lever[:, a, 3:]
                for i in range(link[a, FIRST], link[a, FIRST] + link[a, COUNT]):
                    slide, turning = motion[:, i, :3], motion[:, i, 3:]
                    moment = couple[:, b] + np.cross(arm, push[:, b])
                    out[:, i] += np.sum(slide * push[:, b] + turning * moment, axis=1)
                    parts = (slide, push[:, b]), (turning, couple[:, b]), (turning, np.cross(arm, push[:, b]))
                    size[:, i] += sum(np.linalg.norm(s, axis=1) * np.linalg.norm(t, axis=1) for s, t in parts)
                a = link[a, PARENT]
        return Along(out, size, 0.0 * size)

    def _rows(self, k: int) -> np.ndarray:
        """(envs, freedoms) impulses of all that acts along joints, less what armatures took: ``drive.row_impulse``."""
        p, count = self.solver.plan, self.solver.plan.topology.joint_freedoms
        out = np.zeros((p.envs, p.freedoms))
        if not count:
            return out
        r = self._array("row").reshape(p.envs, count, -1)
        v = self._array("rate")[k + 1].reshape(p.envs, count)
        free = self._array("reduced")[:, FREE].reshape(p.envs, -1)[:, p.freedoms - count :]
        s, vs = np.abs(v), r[..., DRY_SPEED]
        factor = np.where(s >= vs, 1.0 / np.maximum(s, 1e-300), (2.0 - s / vs) / vs)
        found = r[..., SPRING] - (r[..., SLOPE] + r[..., DRY] * factor) * v
        found += np.clip(r[..., PUSH] - r[..., PUSH_SLOPE] * v, -r[..., BOUND], r[..., BOUND])
        for side, sign in ((0, 1.0), (1, -1.0)):
            near, slow = r[..., LOWER + side] - sign * v, 1.0 - sign * r[..., DAMPING] * v
            found += sign * r[..., STIFF] * np.maximum(near, 0.0) * np.maximum(slow, 0.0)
        armature = self._array("armature").reshape(p.envs, count) * (v - free)
        out[:, p.freedoms - count :] = found - armature
        return out

    def _column(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Velocities and spins of one column of the last step's velocity problem, where nothing was launched since."""
        rows = self._array("dof")[:, column].reshape(len(self.env), -1)
        if rows.shape[1] == 3:
            return lifted(rows[:, :2]), lifted_turn(rows[:, 2:])
        return rows[:, :3], rows[:, 3:]

    def _found(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Velocities after the step at the poses before it."""
        if self.solver.plan.jointed:
            return self._column(NOW)
        _x, v, w, _I = self._moved(k + 1)
        return v, w

    def _contacts(self, k: int, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """Impulses and couples on all bodies (n, 3) by the world, and by each other; and the energy contacts hold, J.

        Where impacts split a step their stiffness is not that of contact, and nothing is taken to be stored.
        """
        p, found = self.solver.plan, self.solver.contacts(k + 1)
        first = found.env * p.bodies
        a, b = first + found.body[:, 0], first + np.maximum(found.body[:, 1], 0)
        point, gamma, alone = lifted(found.point), lifted(found.impulse), found.body[:, 1] < 0
        sums = []
        for which in (alone, ~alone):
            push, couple = np.zeros_like(x), np.zeros_like(x)
            for on, sign in ((a, which), (b, -1.0 * (which & ~alone))):
                np.add.at(push, on, sign[:, None] * gamma)
                np.add.at(couple, on, np.cross(point - x[on], sign[:, None] * gamma))
            sums += [push, couple]
        stiff = self._array("stiffness").reshape(p.envs, -1)[found.env, found.surface]
        depth = np.minimum(found.gap, 0.0) if p.events is None else 0.0 * found.gap
        return *sums, summed(0.5 * stiff * depth**2, found.env, p.envs)

    def _armature(self, k: int, part: np.ndarray) -> np.ndarray:
        """Kinetic energy of what drives joints, J."""
        p = self.solver.plan
        if not p.jointed or not p.topology.joint_freedoms:
            return np.zeros(p.envs)
        rate = self._array("rate")[k : k + 2].reshape(2, p.envs, -1)
        at = rate[0] + part[:, None] * (rate[1] - rate[0])
        return 0.5 * np.sum(self._array("armature").reshape(p.envs, -1) * at**2, axis=1)

    def _joints(self, k: int, f: int, length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Work of motors and drives in the step, and the energy in springs and limits of joints, J, (envs,)."""
        p, count = self.solver.plan, self.solver.plan.topology.joint_freedoms
        if not count:
            return np.zeros(p.envs), np.zeros(p.envs)
        given = {
            name: self._array(name).reshape(p.envs, -1)
            for name in ("joint_stiffness", "joint_rest", "joint_lower", "joint_upper", "limit_stiffness")
        }
        row = self._array("row").reshape(p.envs, count, -1)
        rate = self._array("rate")[k : k + 2].reshape(2, p.envs, count)
        motors = length[:, None] * self._array("joint_force")[f].reshape(p.envs, count)
        drive = np.clip(row[..., PUSH] - row[..., PUSH_SLOPE] * rate[1], -row[..., BOUND], row[..., BOUND])
        work = np.sum((motors + drive) * 0.5 * (rate[0] + rate[1]), axis=1)
        coordinate = self._array("coordinate")[k].reshape(p.envs, -1)
        stored = np.zeros(p.envs)
        for link in self.solver.store.view("link"):
            if link[KIND] in (LOOSE, BALL) or not link[COUNT]:
                continue
            q, j = coordinate[:, link[COORDINATE]], self._freedom(link)
            stored += 0.5 * given["joint_stiffness"][:, j] * (q - given["joint_rest"][:, j]) ** 2
            over = np.maximum(q - given["joint_upper"][:, j], 0.0) + np.maximum(given["joint_lower"][:, j] - q, 0.0)
            stored += 0.5 * given["limit_stiffness"][:, j] * over**2
        return work, stored

    def _freedom(self, link: np.ndarray) -> int:
        """Degree of freedom among those of joints, of a joint that has one."""
        p = self.solver.plan
        return int(link[3]) - (p.topology.freedoms - p.topology.joint_freedoms)
