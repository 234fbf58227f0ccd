"""What an audit reads of the MPM solver after a substep: all from its arrays, nothing is launched."""

import numpy as np

from taichi_sim.core.reading import (
    ACTUATORS,
    DAMPING,
    FORCES,
    GRAVITY,
    WALLS,
    Act,
    Energy,
    Reading,
    State,
    act,
    lifted,
    summed,
    work_only,
)
from taichi_sim.solvers.mpm.contact import SLIP, STICKY
from taichi_sim.solvers.mpm.order import BLOCK, PADDING
from taichi_sim.solvers.mpm.solver import MpmSolver

#: Momentum of nodes too light to have a velocity.
LIGHT = "light nodes"


class MpmAudit:
    """Reads one substep at a time: the solver has to be run so."""

    def __init__(self, solver: MpmSolver) -> None:
        self.solver = solver
        p = solver.plan
        self.env = np.repeat(np.arange(p.envs), p.particles)
        self.nodes = lifted(p.node_positions())

    def _array(self, name: str) -> np.ndarray:
        return np.asarray(self.solver.store.view(name), np.float64)

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Row of the material table and actuated group of every particle, in the order of the solver."""
        tag = self.solver.store.view("tag")[self.solver.store.view("id")[self.solver.epoch]]
        return self.env * self.solver.plan.rows + tag[:, 0], tag[:, 1]

    def masses(self) -> np.ndarray:
        """(envs * particles,) kg, in the order of the solver."""
        return self._array("material")[self.rows()[0], 1]

    def driven(self) -> np.ndarray:
        """(envs * particles, 3) impulses of chambers and tendons in the last substep, N s."""
        out = np.zeros((len(self.env), 3))
        if self.solver.drive is not None:
            where, impulse = self.solver.drive.given()
            out[where] = lifted(impulse)
        return out

    def meeting(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Places and velocities with which particles of slot ``k`` meet others: chambers and tendons act before."""
        v = lifted(self.solver.store.view("v")[k]) + self.driven() / self.masses()[:, None]
        return lifted(self.solver.store.view("x")[k]), v

    def _state(self, m: np.ndarray, x: np.ndarray, v: np.ndarray, C: np.ndarray) -> State:
        envs, quarter = self.solver.plan.envs, 0.25 * self.solver.plan.spacing**2
        curl = np.zeros((len(m), 3))
        curl[:, 2] = C[:, 1, 0] - C[:, 0, 1]
        if C.shape[1] == 3:
            curl[:, 0], curl[:, 1] = C[:, 2, 1] - C[:, 1, 2], C[:, 0, 2] - C[:, 2, 0]
        turn = np.cross(x, m[:, None] * v) + (quarter * m)[:, None] * curl
        size, turn_size = m * np.linalg.norm(v, axis=1), np.linalg.norm(turn, axis=1)
        parts = (m[:, None] * v, turn, size, turn_size)
        return State(*(summed(part, self.env, envs) for part in parts))

    def read(self, k: int, stored: np.ndarray) -> Reading:
        """The substep from slot ``k``; ``stored`` (envs,) is the elastic energy of the deformation in slot ``k + 1``,
        which belongs to the positions of slot ``k``: deformations stand a substep behind."""
        s, store, p = self.solver, self.solver.store, self.solver.plan
        x, v, C = (np.asarray(store.view(name)[k], np.float64) for name in ("x", "v", "C"))
        x1, v1, C1 = (np.asarray(store.view(name)[k + 1], np.float64) for name in ("x", "v", "C"))
        m = self.masses()
        x, x1, v, v1 = lifted(x), lifted(x1), lifted(v), lifted(v1)
        half, halfC, gravity = 0.5 * (v + v1), 0.5 * (C + C1), lifted(self._array("gravity"))
        affine = 0.25 * p.spacing**2 * np.einsum("nij,nij->n", halfC, halfC)
        energy = Energy(
            summed(0.5 * m * (np.einsum("ni,ni->n", half, half) + affine), self.env, p.envs),
            summed(-m * np.einsum("ni,ni->n", gravity[self.env], x), self.env, p.envs),
            stored,
            np.full(p.envs, 0.5),
        )
        f = (s.start + k) // s.substeps
        acts = [*self._loads(f, k, m, x, half, halfC), *self._nodes(f)]
        precision = store.runtime.precision
        return Reading(self._state(m, x, v, C), self._state(m, x1, v1, C1), energy, acts, precision)

    def _loads(self, f: int, k: int, m: np.ndarray, x: np.ndarray, v: np.ndarray, C: np.ndarray) -> list[Act]:
        """Muscles, body forces, chambers and tendons, and accelerations given from outside."""
        s, p, found = self.solver, self.solver.plan, []
        h = self._array("step")[self.env, 0]
        rows, group = self.rows()
        if p.groups > 1:
            on, at = (group > 0)[:, None], self.env * p.groups + group
            push = on * lifted(s.store.view("active_acceleration")[f][at])
            acted = act(ACTUATORS, self.env, p.envs, x, (h * m)[:, None] * push, v, source=True)
            F = np.asarray(s.store.view("F")[k + 1], np.float64)
            S = on[:, :, None] * np.asarray(s.store.view("active_stress")[f], np.float64)[at]
            strain = np.einsum("nij,njk,nlk,nil->n", F, S, F, C)
            muscle = summed(-h * self._array("material")[rows, 0] * strain, self.env, p.envs)
            found += [acted, work_only(ACTUATORS, muscle)]
        if s.drive is not None:
            found.append(act(ACTUATORS, self.env, p.envs, x, self.driven(), v, source=True))
        if p.driven:
            given = self.solver.store.view("particle_acceleration")
            ids = self.env * p.particles + s.store.view("id")[s.epoch]
            push = lifted(given[min(f, given.shape[0] - 1)][ids])
            found.append(act(FORCES, self.env, p.envs, x, (h * m)[:, None] * push, v, source=True))
        return found

    def _nodes(self, f: int) -> list[Act]:
        """Gravity, fields, damping and contact of every node, from its momentum before and its velocity after."""
        s, p, store = self.solver, self.solver.plan, self.solver.store
        piece, per_block = s.last, BLOCK**p.dim
        env, nodes, momenta = [], [], []
        for e in range(p.envs):
            active = int(store.view("block_count")[piece.epoch, e])
            packed = store.view("blocks")[piece.epoch, e * p.blocks : e * p.blocks + active]
            i = np.arange(per_block)
            corner = np.stack([packed >> 20, (packed >> 10) & 1023, packed & 1023][: p.dim], axis=1) * BLOCK
            inner = np.stack([(i >> (2 * (p.dim - 1 - d))) & 3 for d in range(p.dim)], axis=1)
            J = np.repeat((corner[:, None] + inner[None]).reshape(-1, p.dim), p.layers, axis=0)
            first = piece.save + e * piece.env_stride
            m = np.asarray(store.view("saved")[first : first + len(J)], np.float64)
            counts = m[:, 3] > 0
            if p.plates:  # layers that hold the same are one
                counts[1::2] &= (m[1::2] != m[::2]).any(axis=1)
            for d in range(p.dim):
                if p.periodic[d]:  # images of nodes inside
                    counts &= (J[:, d] >= PADDING) & (J[:, d] < PADDING + p.cells[d])
            env.append(np.full(int(counts.sum()), e))
            nodes.append(J[counts] @ np.asarray(p.strides))
            momenta.append(m[counts])
        e, node, m = np.concatenate(env), np.concatenate(nodes), np.concatenate(momenta)
        mass, before = m[:, 3], m[:, : p.dim] / m[:, 3:]
        h, damping = self._array("step")[e].T
        pull = self._array("gravity")[e]
        blown = np.zeros_like(pull)
        for j in range(p.fields):
            gain = self._array("field_gain")[f, e * p.fields + j]
            blown += gain[:, None] * self._array("field_acceleration")[j * p.nodes + node]
        free = (before + h[:, None] * (pull + blown)) / (1.0 + h * damping)[:, None]
        after = self._touch(free, e * p.nodes + node)
        heavy = mass > self._array("lattice")[2]
        after[~heavy] = 0.0
        place, mid = self.nodes[node], lifted(0.5 * (before + after))
        drag = free - before - h[:, None] * (pull + blown)

        def on(by: str, change: np.ndarray, which: np.ndarray, source: bool = False) -> Act:
            return act(by, e, p.envs, place, lifted((which * mass)[:, None] * change), mid, source=source)

        found = [on(GRAVITY, h[:, None] * pull, heavy), on(WALLS, after - free, heavy), on(LIGHT, -before, ~heavy)]
        if p.fields:
            found.append(on("fields", h[:, None] * blown, heavy, source=True))
        if damping.any():
            found.append(on(DAMPING, drag, heavy))
        return found

    def _touch(self, v: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Velocities after all contacts of the nodes ``at``: the law of ``contact.project`` once more, on the host."""
        view = self.solver.store.view
        out, c = v.copy(), view("contact_head")[at]
        kinds, friction, alpha = view("contact_kind"), self._array("contact_friction"), self._array("contact_alpha")
        normals = self._array("contact_normal")
        while (c >= 0).any():
            on = np.flatnonzero(c >= 0)
            q, w, n = c[on], out[on], normals[c[on]]
            u = np.einsum("ni,ni->n", w, n)
            along = w - u[:, None] * n
            speed = np.linalg.norm(along, axis=1)
            keep = np.where(speed > 0, np.maximum(0.0, 1.0 + friction[q] * u / np.maximum(speed, 1e-300)), 0.0)
            keep = np.where((kinds[q] == SLIP) | (friction[q] == 0.0), 1.0, keep)
            after = keep[:, None] * along
            after[kinds[q] == STICKY] = 0.0
            leaving = (u >= 0) & (kinds[q] != STICKY) & (kinds[q] != SLIP)
            after[leaving] = w[leaving]
            out[on] = w + alpha[q][:, None] * (after - w)
            c = np.where(c >= 0, view("contact_next")[np.maximum(c, 0)], -1)
        return out
