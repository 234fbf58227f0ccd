"""What bodies and particles gave each other in one substep, read again after it: the laws once more, on the host."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.core.reading import lifted, lifted_turn
from taichi_sim.solvers.coupling.arrays import ALPHA, ARM, BIAS, FRICTION, MASS, NORMAL, SPEED, STICTION
from taichi_sim.solvers.coupling.stepper import Coupling
from taichi_sim.solvers.rigid.twist import NOW


@dataclass(frozen=True)
class Given:
    """Contacts of one substep and behind them all welds, a row each.

    ``env`` (n,); ``body`` (n,), -1 for the world; ``moves`` (n,) whether it is neither that nor held; ``particle`` (n,)
    where it is in memory; ``impulse`` (n, 3) what the particle got, N s; ``first`` (n,) the row of the particle's first
    contact; ``kept`` (n, 3) at that row its other velocity (``Coupling.pool``), m/s. The first ``contacts`` are no
    welds.
    """

    env: np.ndarray
    body: np.ndarray
    moves: np.ndarray
    particle: np.ndarray
    impulse: np.ndarray
    first: np.ndarray
    kept: np.ndarray
    contacts: int


def given(coupling: Coupling, k: int) -> Given:
    """Of the substep from slot ``k``, the last one that was run: the coupling still holds its rows, and the rigid
    solver the velocities that were found."""
    store, plan = coupling.store, coupling.plan
    envs, welds = plan.envs, len(plan.welds)
    span, record, after = store.view("span")[k], coupling.pool.view("record"), coupling.pool.view("after")
    at = np.concatenate([first + np.arange(count) for first, count in span]).astype(int)
    contact = np.concatenate([e * plan.room + np.arange(span[e, 1]) for e in range(envs)]).astype(int)
    weld = np.concatenate([e * plan.room + span[e, 1] + np.arange(welds) for e in range(envs)]).astype(int)
    rows = np.concatenate([contact, weld])
    row, owner = np.asarray(store.view("row")[rows], np.float64), store.view("row_body")[rows, 0]
    env = np.concatenate([np.repeat(np.arange(envs), span[:, 1]), np.repeat(np.arange(envs), welds)])
    surface = _surface(coupling, env, owner, row[:, ARM : ARM + 3])
    pushed = np.concatenate([_meet(row[: len(at)], surface[: len(at)]), _tie(row[len(at) :], surface[len(at) :])])
    bodies = np.array([body for _, body in plan.colliders] + [-1])[record[at, 1]]
    return Given(
        env,
        np.concatenate([bodies, np.tile(np.array([w[1] for w in plan.welds], int), envs)]),
        owner >= 0,
        np.concatenate([record[at, 0], store.view("weld_at")[k] if welds else np.zeros(0, int)]),
        pushed,
        np.concatenate([np.arange(len(at)) - record[at, 3], len(at) + np.arange(len(weld))]),
        np.concatenate([lifted(after[at]), lifted(store.view("weld_after")[k]) if welds else np.zeros((0, 3))]),
        len(at),
    )


def _surface(coupling: Coupling, env: np.ndarray, body: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """(n, 3) velocities of the surfaces of bodies that move; 0 of all others."""
    plan = coupling.rigid.plan
    motion = np.asarray(coupling.rigid.store.view("dof"), np.float64)[:, NOW].reshape(plan.envs, plan.bodies, -1)
    found = motion[env, np.maximum(body, 0)]
    out = lifted(found[:, : plan.dim]) + np.cross(lifted_turn(found[:, plan.dim :]), arm)
    return (body >= 0)[:, None] * out


def _meet(row: np.ndarray, moving: np.ndarray) -> np.ndarray:
    """``law.meet`` of contacts (n, 19) at surfaces that move with (n, 3): impulses on particles."""
    n, u = row[:, NORMAL : NORMAL + 3], row[:, SPEED : SPEED + 3] - moving
    m, alpha, b, mu, vs = row[:, (MASS, ALPHA, BIAS, FRICTION, STICTION)].T
    un = np.einsum("ni,ni->n", n, u)
    ut, d = u - un[:, None] * n, np.maximum(b - un, 0.0)
    s, a = np.linalg.norm(ut, axis=1), mu * alpha * d
    start = vs + 2.0 * a
    w = np.sqrt(np.maximum(start**2 - 4.0 * a * s, 0.25 * vs**2))
    c = np.where(s >= vs + a, a / np.maximum(s, 1e-300), 1.0 - 2.0 * vs / np.maximum(start + w, 1e-300))
    return (d > 0)[:, None] * ((alpha * m * d)[:, None] * n - (m * c)[:, None] * ut)


def _tie(row: np.ndarray, moving: np.ndarray) -> np.ndarray:
    """The law of ``welds``: ``m (b - u)``, with ``b`` in the place of the normal."""
    return row[:, MASS, None] * (row[:, NORMAL : NORMAL + 3] - row[:, SPEED : SPEED + 3] + moving)
