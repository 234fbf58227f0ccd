"""What an audit reads of the coupling after a substep: what particles felt, from their velocities before and after.

What bodies that do not move gave them, and what those that are held got, is taken apart with the laws of contact, once
more on the host (``sensing``).
"""

from dataclasses import replace

import numpy as np

from taichi_sim.core.reading import HELD, Act, act, lifted, summed
from taichi_sim.solvers.coupling.matter import Points
from taichi_sim.solvers.coupling.sensing import given
from taichi_sim.solvers.coupling.sphere_stepper import Spheres
from taichi_sim.solvers.coupling.spheres import BEGINS, MU, OPENS, PARTICLE, POINT
from taichi_sim.solvers.coupling.stepper import Coupling
from taichi_sim.solvers.particles.arrays import HELD as HELD_COLUMN

#: Impulse on every body, and couple about its centre of mass, (envs * bodies, 3) both.
Wrench = tuple[np.ndarray, np.ndarray]

#: Bodies that do not move.
FIXED = "fixed bodies"

#: Why what continua and points turn in each other does not cancel.
APART = "friction acts at centres, a radius apart"


class CouplingAudit:
    """Reads one substep at a time: the solvers have to be run so."""

    def __init__(self, coupling: Coupling) -> None:
        self.coupling = coupling
        self.points = coupling.matter.solver if isinstance(coupling.matter, Points) else None

    def velocities(self, k: int, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n, 3) of all particles before and after contact in the substep from slot ``k``, from those the slot holds.

        A slot of a continuum holds velocities before contact, and the pool those after, of every particle once; those
        of points, which a step goes on with, stand the other way round.
        """
        found = given(self.coupling, k)
        once = found.first == np.arange(len(found.first))
        held, other = lifted(held), lifted(held).copy()
        other[found.particle[once]] = found.kept[once]
        return (other, held) if self.points is not None else (held, other)

    def read(self, k: int, masses: np.ndarray, x: np.ndarray, held: np.ndarray) -> tuple[list[Act], Wrench, Wrench]:
        """What bodies did to particles in the substep from slot ``k``; of all particles, in the order of the solver,
        ``masses``, places and the velocities the slot holds. And what every body got of it, and the momentum that what
        touched it had.
        """
        rigid, found, envs = self.coupling.rigid, given(self.coupling, k), self.coupling.plan.envs
        first, x = found.first, lifted(x)
        once = first == np.arange(len(first))
        before, after = (all_of[found.particle] for all_of in self.velocities(k, held))
        measured = masses[found.particle][:, None] * (after - before)
        if self.points is not None:  # what is held took the impulse, and did not move
            stays = self.points.store.view("tag")[found.particle % self.points.plan.particles, HELD_COLUMN] == 1
        else:
            stays = np.zeros(len(first), bool)
        told = summed(found.impulse, first, len(first))[first]
        # each contact its part: what was measured of a particle is shared as the law says
        part = found.impulse + (once & ~stays)[:, None] * (measured - told)
        before[stays], after[stays] = 0.0, 0.0
        place, mid = x[found.particle], 0.5 * (before + after)

        def on(by: str, which: np.ndarray, impulse: np.ndarray) -> Act:
            whole = summed(which[:, None] * impulse, first, len(first))[once]
            return act(by, found.env[once], envs, place[once], whole, mid[once])

        acts = [on("rigid", found.moves, part)]
        if not found.moves.all():
            acts.append(on(FIXED, ~found.moves, part))
        if stays.any():
            acts.append(on(HELD, stays, -part))
        row = found.env * rigid.plan.bodies + np.maximum(found.body, 0)
        arm = place - lifted(rigid.store.view("position")[k])[row]

        def onto(each: np.ndarray) -> Wrench:
            each = found.moves[:, None] * each
            return summed(each, row, envs * rigid.plan.bodies), summed(
                np.cross(arm, each), row, envs * rigid.plan.bodies
            )

        return acts, onto(-part), onto(masses[found.particle][:, None] * before)


class SpheresAudit:
    """The same for what points and particles of continua did to each other, after all contact with rigid bodies;
    ``inner`` reads that of the particles, if there is any."""

    def __init__(self, spheres: Spheres, inner: CouplingAudit | None = None) -> None:
        self.spheres, self.inner = spheres, inner

    def _pairs(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """(n,) places in the pool, and environments."""
        pairs = self.spheres.store.view("pairs")[k]
        at = np.concatenate([first + np.arange(count) for first, count in pairs]).astype(int)
        return at, np.repeat(np.arange(len(pairs)), pairs[:, 1])

    def points_before(self, k: int) -> np.ndarray:
        """(points, 3) velocities of all points before they met continua."""
        at, s = self._pairs(k)[0], self.spheres
        at = at[s.pool.view("pair")[at, BEGINS] == 1]
        before = lifted(s.points.store.view("free_velocity")[k]).copy()
        before[s.pool.view("pair")[at, POINT]] = lifted(s.pool.view("point_before")[at])
        return before

    def read(self, k: int, masses: np.ndarray, x: np.ndarray, held: np.ndarray) -> tuple[list[Act], list[Act]]:
        """What acted on particles, and on points; of all particles ``masses``, places and velocities as for
        :meth:`CouplingAudit.read`.

        A slot holds velocities of particles before all contact, and the pool those after it; of points it is the other
        way round."""
        (at, env), s, envs = self._pairs(k), self.spheres, self.spheres.plan.envs
        pair, points = s.pool.view("pair")[at], s.points.store
        apart = APART if np.any(s.store.view("touch")[pair[:, POINT], MU]) else ""

        def on(by: str, env: np.ndarray, x: np.ndarray, impulse: np.ndarray, mid: np.ndarray) -> Act:
            return replace(act(by, env, envs, lifted(x), impulse, mid), apart=apart)

        once = pair[:, OPENS] == 1
        p = pair[once, PARTICLE]
        before = held if self.inner is None else self.inner.velocities(k, held)[1]
        after = lifted(s.pool.view("particle_before")[at[once]])
        impulse = masses[p][:, None] * (after - before[p])
        on_soft = on("particles", env[once], x[p], impulse, 0.5 * (before[p] + after))

        once = pair[:, BEGINS] == 1
        q = pair[once, POINT]
        before, after = self.points_before(k)[q], lifted(points.view("free_velocity")[k])[q]
        impulse = np.asarray(points.view("mass"), np.float64)[q][:, None] * (after - before)
        stays = points.view("tag")[q % s.plan.points, HELD_COLUMN] == 1  # these took it, and did not move
        impulse[stays] = lifted(s.store.view("point_push"))[q[stays]]
        mid, at, env = np.where(stays[:, None], 0.0, 0.5 * (before + after)), points.view("x")[k][q], env[once]
        on_points = [on("continuum", env, at, impulse, mid)]
        if stays.any():
            on_points.append(on(HELD, env[stays], at[stays], -impulse[stays], mid[stays]))
        return [on_soft], on_points
