"""A world that is run one substep at a time, and read after each."""

from collections.abc import Callable

import numpy as np

from taichi_sim.core.reading import Reading
from taichi_sim.simulation.world import World
from taichi_sim.solvers.coupling.audit import CouplingAudit, SpheresAudit
from taichi_sim.solvers.mpm.audit import MpmAudit
from taichi_sim.solvers.particles.audit import ParticlesAudit
from taichi_sim.solvers.rigid.audit import RigidAudit


class Watch:
    """Reads what every solver of a world did in one substep.

    ``stored`` gives the elastic energy (envs,) of the continuum in a slot.
    """

    def __init__(self, world: World, stored: Callable) -> None:
        self.world, self.stored, solvers = world, stored, world.solvers
        host = None if world.coupling is None else world.host
        self.soft = MpmAudit(solvers["continuum"]) if "continuum" in solvers else None
        self.rigid = RigidAudit(solvers["rigid"], host) if "rigid" in solvers else None
        self.particles = ParticlesAudit(solvers["particles"]) if "particles" in solvers else None
        self.coupling = CouplingAudit(world.coupling) if world.coupling is not None else None
        self.spheres = SpheresAudit(world.spheres) if world.spheres is not None else None

    def read(self, k: int) -> dict[str, Reading]:
        """The substep from slot ``k``, by family."""
        found: dict[str, Reading] = {}
        if self.soft is not None:
            reading = self.soft.read(k, self.stored(k + 1))
            if self.coupling is not None and self.world.host == "continuum":
                reading.acts.append(self.coupling.read(k, self.soft.masses()))
            found["continuum"] = reading
        if self.rigid is not None:
            found["rigid"] = self.rigid.read(k)
        if self.particles is not None:
            found["particles"] = self.particles.read(k)
            if self.coupling is not None and self.world.host == "particles":
                masses = np.asarray(self.world.solvers["particles"].store.view("mass"), np.float64)
                found["particles"].acts.append(self.coupling.read(k, masses))
        if self.spheres is not None and self.soft is not None:
            on_soft, on_points = self.spheres.read(k, self.soft.masses())
            found["continuum"].acts.append(on_soft)
            found["particles"].acts.append(on_points)
        return found

    def close(self) -> None:
        """Free what was allocated."""
        if self.particles is not None:
            self.particles.close()
