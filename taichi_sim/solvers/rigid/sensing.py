"""What was felt in a step, read again after it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from taichi_sim.solvers.rigid.geometry import GAP

if TYPE_CHECKING:
    from taichi_sim.solvers.rigid.solver import RigidSolver


@dataclass(frozen=True)
class Contacts:
    """Contacts of one step, in all environments, one row each.

    ``env`` (n,); ``body`` (n, 2) the bodies A and B, B -1 where it does not move; ``surface`` (n,) the pair of surfaces
    that touched; ``point`` (n, dim) where they push, m; ``normal`` (n, dim) from B to A; ``impulse`` (n, dim) what A
    got, N s, and B the opposite; ``force`` (n, dim) the same over the length of the kick, N; ``gap`` (n,) at the
    beginning of the step, m. Where impacts split the step each of its pieces has its own.
    """

    env: np.ndarray
    body: np.ndarray
    surface: np.ndarray
    point: np.ndarray
    normal: np.ndarray
    impulse: np.ndarray
    force: np.ndarray
    gap: np.ndarray


def kicks(solver: "RigidSolver", k: int) -> np.ndarray:
    """(envs,) time between the velocities of slots ``k - 1`` and ``k``, s: each stands half its ``kick`` behind."""
    kick, dt = (np.asarray(solver.store.view(name), np.float64) for name in ("kick", "dt"))
    return dt + 0.5 * (kick[k - 1] - kick[k])


def read_contacts(solver: "RigidSolver", k: int) -> Contacts:
    """Contacts of the step to slot ``k``; none where there was no step (0)."""
    plan, store, dim = solver.plan, solver.store, solver.plan.dim
    rows: list[tuple[np.ndarray, ...]] = []
    if k > 0 and plan.capacity:
        length, at = kicks(solver, k), np.asarray(store.view("position"), np.float64)
        turns = 1 + 3 * int(store.view("chain")[k - 1, :, 1].max()) if plan.events else 1
        for turn in reversed(range(turns)):
            solver.press(k - 1, turn)
            for e, (slot, count) in enumerate(store.view("told").tolist()):
                mine = slice(e * plan.capacity, e * plan.capacity + count)
                contact = np.array(store.view("contact")[mine], np.float64)
                body = np.array(store.view("contact_body")[mine])
                impulse = np.array(store.view("push")[mine], np.float64)[:, :dim]
                place = at[slot, e * plan.bodies + body[:, 0]] + contact[:, 3 : 3 + dim]
                surface = np.array(store.view("taped")[slot, mine, 3])
                force, which = impulse / length[e], np.full(count, e)
                rows.append((which, body, surface, place, contact[:, :dim], impulse, force, contact[:, GAP]))
    if not rows:
        none, vectors = np.zeros(0, int), np.zeros((0, dim))
        return Contacts(none, np.zeros((0, 2), int), none, vectors, vectors, vectors, vectors, np.zeros(0))
    return Contacts(*(np.concatenate(column) for column in zip(*rows, strict=True)))
