"""What touches bodies: particles of a continuum, or points of networks and grains.

The coupling asks the same of both: places, velocities before contact, masses, and which row of a table of skins is
theirs. It knows them by the names of the MPM solver; what those stand for is said here. A particle of a continuum
shares its row with all of its material, and meets bodies before it is scattered. A point has a row of its own (masses
and radii differ) and meets bodies after all other forces of the step have acted on it, so that what presses it on a
body is held up in the same step.

A grain meets bodies at its centre, ``radius`` beyond their surface: friction does not turn it, and momentum and angular
momentum are those of its centre. A point that is held takes the impulse and does not move.
"""

from typing import Protocol

import numpy as np

from taichi_sim.core.array import Array
from taichi_sim.core.store import Store
from taichi_sim.runtime import Runtime, ti
from taichi_sim.solvers.mpm.solver import MpmSolver
from taichi_sim.solvers.particles.solver import ParticlesSolver

#: What the coupling is told of points; ``id``, ``tag`` and ``work`` say that they are never sorted.
POINT_ARRAYS = (
    Array("material", (2,), "point", "param", "1, kg", "nothing, mass"),
    Array("gravity", ("dim",), "env", "param", "m/s²", "nothing: velocities before contact know it"),
    Array("id", (), ("one", "point"), "scratch", "1", "point in its environment", dtype="int"),
    Array("tag", (2,), "local", "scratch", "1", "row, nothing", dtype="int"),
    Array("work", (), "work", "scratch", "1", "first point of every worker, and the next one's", dtype="int"),
)


class Matter(Protocol):
    """Arrays called ``mpm_…`` and ``d_mpm_…``, for ``slots`` slots."""

    runtime: Runtime
    slots: int
    arrays: dict[str, ti.Ndarray]

    def refresh(self) -> None:
        """Before a segment: what may have changed."""

    def collect(self) -> None:
        """After a backward sweep: give adjoints to whom they belong."""

    def close(self) -> None:
        """Free its own memory."""


class Continuum:
    """Particles of an MPM solver, as they stand."""

    def __init__(self, mpm: MpmSolver) -> None:
        self.runtime, self.slots = mpm.store.runtime, mpm.store.slots
        self.arrays = {
            f"d_mpm_{name[2:]}" if name.startswith("d_") else f"mpm_{name}": array
            for name, array in mpm.store.arrays.items()
        }

    def refresh(self) -> None: ...
    def collect(self) -> None: ...
    def close(self) -> None: ...


class Points:
    """Points of networks and grains. Raises ``ValueError`` for a solver that is no host."""

    def __init__(self, solver: ParticlesSolver) -> None:
        p, store = solver.plan, solver.store
        if not p.hosting:
            raise ValueError("particles that meet bodies need a plan with hosting = True")
        self.solver, self.runtime, self.slots = solver, store.runtime, store.slots
        total = p.envs * p.particles
        sizes = {"point": total, "env": p.envs, "one": 1, "local": p.particles, "work": 2 * p.workers}
        self.store = Store(store.runtime, POINT_ARRAYS, sizes, p.dim, 1, 1, 1, double=True)
        self.store.zero(["gravity", "material"])
        rows = np.arange(p.particles, dtype=np.int32)
        ends = p.particles * np.arange(p.shares + 1, dtype=np.int64) // p.shares
        shares = np.stack([ends[:-1], ends[1:]], axis=1)
        self.store.write("id", np.tile(rows, p.envs)[None])
        self.store.write("tag", np.stack([rows, 0 * rows], axis=1))
        work = (p.particles * np.arange(p.envs)[:, None, None] + shares).astype(np.int32)
        self.store.write("work", work.ravel())
        own = {f"mpm_{name}": self.store[name] for name in ("material", "gravity", "id", "tag", "work")}
        own["mpm_colour"] = self.store["id"]  # nobody looks: no grid glues points
        own |= {f"d_mpm_{name}": self.store[f"d_{name}"] for name in ("material", "gravity")}
        self.arrays = own | {
            "mpm_x": store["x"],
            "mpm_v": store["free_velocity"],
            "d_mpm_x": store["d_x"],
            "d_mpm_v": store["force_bar"],
        }

    def refresh(self) -> None:
        material = np.array(self.store.view("material"))
        material[:, 1] = self.solver.store.view("mass")
        self.store.write("material", material)
        self.store.zero(["d_material", "d_gravity"])

    def collect(self) -> None:
        mine, target = self.store.reduced_adjoint("material"), self.solver.store.view("d_mass")
        self.solver.store.write("d_mass", target + mine[:, 1])
        self.store.zero(["d_material"])

    def close(self) -> None:
        self.store.close()


def matter_of(solver: MpmSolver | ParticlesSolver) -> Matter:
    """What a solver's particles are to bodies."""
    return Points(solver) if isinstance(solver, ParticlesSolver) else Continuum(solver)
