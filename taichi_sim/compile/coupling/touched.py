"""What rigid bodies and what they touch gave each other in the last step, summed over each pair."""

import numpy as np

from taichi_sim.compile.contact_table import contact_table
from taichi_sim.compile.continuum.family import Continuum
from taichi_sim.compile.particles.family import ParticlesFamily
from taichi_sim.compile.rigid.family import RigidFamily
from taichi_sim.solvers.coupling.arrays import ALPHA, ARM, BIAS, FRICTION, MASS, NORMAL, ROOM, SPEED, STICTION
from taichi_sim.solvers.coupling.stepper import Coupling
from taichi_sim.solvers.particles.solver import ParticlesSolver
from taichi_sim.solvers.rigid.sensing import kicks


def pair_impulses(coupling: Coupling, soft: Continuum | ParticlesFamily, rigid: RigidFamily, k: int) -> np.ndarray:
    """A table of contacts (``contact_table``) with a row for each pair that touched in the step to slot ``k``, the last
    one that was run: the coupling still holds its rows."""
    dim, solver, store = rigid.plan.dim, coupling.rigid, coupling.store
    if k == 0:
        none = np.zeros((0, dim))
        return contact_table(dim, np.zeros(0, int), [], none, none, none, none, np.zeros(0))
    solver.press(k - 1)  # leaves the velocities the step has solved for in dof
    motion = np.array(solver.store.view("dof"))[:, 1].reshape(rigid.plan.envs, rigid.plan.bodies, -1)
    counts, room = store.view("row_count").astype(int), int(store.view("counts")[ROOM])
    length, host = kicks(solver, k), coupling.host
    if isinstance(host, ParticlesSolver):
        assert isinstance(soft, ParticlesFamily)
        ids = np.tile(np.arange(coupling.plan.particles), rigid.plan.envs)
        names, slices = [one.path for one in soft.clusters], list(soft.slices)
    else:
        assert isinstance(soft, Continuum)
        ids, slices = host.store.view("id")[host.epoch], list(soft.slices.values())
        names = [f"bodies.{name}" for name in soft.slices]
    starts = np.array([where.start for where in slices])
    env, sides, impulses = [], [], []
    for e, count in enumerate(counts):
        mine = slice(e * room, e * room + count)
        row, owner = np.asarray(store.view("row")[mine], np.float64), store.view("row_body")[mine]
        moves = owner[:, 0] >= 0
        row, owner = row[moves], owner[moves]
        given = -_meet(row, _surface(motion[e, owner[:, 0]], row, dim))[:, :dim]
        which = np.searchsorted(starts, ids[owner[:, 2]], side="right") - 1
        for b, m in sorted(set(zip(owner[:, 0].tolist(), which.tolist(), strict=True))):
            total = given[(owner[:, 0] == b) & (which == m)].sum(axis=0)
            if total.any():
                env.append(e)
                sides.append((f"rigid.{rigid.bodies[b].name}", names[m]))
                impulses.append(total)
    impulse = np.reshape(impulses, (-1, dim))
    force = impulse / length[np.array(env, int)][:, None]
    many = np.full(impulse.shape, np.nan)
    return contact_table(dim, np.array(env, int), sides, many, many, impulse, force, np.full(len(env), np.nan))


def _surface(motion: np.ndarray, row: np.ndarray, dim: int) -> np.ndarray:
    """(rows, 3) velocity of the bodies' surfaces."""
    v, w = np.zeros((len(row), 3)), np.zeros((len(row), 3))
    v[:, :dim], w[:, 3 - (motion.shape[1] - dim) :] = motion[:, :dim], motion[:, dim:]
    return v + np.cross(w, row[:, ARM : ARM + 3])


def _meet(row: np.ndarray, moving: np.ndarray) -> np.ndarray:
    """``solvers.coupling.law.meet`` of many rows: impulses on the particles, (rows, 3)."""
    n, u = row[:, NORMAL : NORMAL + 3], row[:, SPEED : SPEED + 3] - moving
    un = np.einsum("ij,ij->i", n, u)
    ut = u - un[:, None] * n
    s, vs, mass = np.linalg.norm(ut, axis=1), row[:, STICTION], row[:, MASS]
    deep = np.maximum(row[:, BIAS] - un, 0.0)
    a = row[:, FRICTION] * row[:, ALPHA] * deep
    start = vs + 2.0 * a
    both = start + np.sqrt(np.maximum(start**2 - 4.0 * a * s, 0.25 * vs**2))
    c = np.where(s >= vs + a, a / np.maximum(s, 1e-300), (both - 2.0 * vs) / both)
    return ((row[:, ALPHA] * mass * deep)[:, None] * n - (mass * c)[:, None] * ut) * (deep > 0.0)[:, None]
