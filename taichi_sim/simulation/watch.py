"""A world that is run one substep at a time, and read after each."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from taichi_sim.core.reading import Along, Reading
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
        self.soft = MpmAudit(solvers["continuum"]) if "continuum" in solvers else None
        first = next(iter(world.couplings), None)
        self.rigid = RigidAudit(solvers["rigid"], first) if "rigid" in solvers else None
        self.particles = ParticlesAudit(solvers["particles"]) if "particles" in solvers else None
        self.couplings = {name: CouplingAudit(coupling) for name, coupling in world.couplings.items()}
        inner = self.couplings.get("continuum")
        self.spheres = SpheresAudit(world.spheres, inner) if world.spheres is not None else None

    def read(self, k: int) -> dict[str, Reading]:
        """The substep from slot ``k``, by family."""
        found: dict[str, Reading] = {}
        if self.soft is not None:
            found["continuum"] = self.soft.read(k, self.stored(k + 1))
        if self.rigid is not None:
            found["rigid"] = self.rigid.read(k)
        if self.particles is not None:
            found["particles"] = self.particles.read(k)
        if self.couplings and self.rigid is not None:
            self._read_couplings(k, found)
        if self.spheres is not None and self.soft is not None:
            on_soft, on_points = self.spheres.read(k, self.soft.masses(), *self.soft.meeting(k))
            found["continuum"].acts.extend(on_soft)
            found["particles"].acts.extend(on_points)
        return found

    def _read_couplings(self, k: int, found: dict[str, Reading]) -> None:
        """What the families in ``found`` and rigid bodies did to each other. Of bodies on joints the first family is
        told the sum."""
        first, sums = next(iter(self.couplings)), []
        assert self.rigid is not None
        for name, audit in self.couplings.items():
            host = self.soft if name == "continuum" else self.particles
            assert host is not None
            x, v = host.meeting(k)
            if self.spheres is not None and host is self.particles:
                v = self.spheres.points_before(k)
            acts, got, met = audit.read(k, host.masses(), x, v)
            found[name].acts.extend(acts)
            sums.append((*got, *met))
            if name != first:
                self.rigid.tell_apart(k, found["rigid"], first, name, got)
        if found["rigid"].along is not None:
            push, couple, *met = (np.sum(parts, axis=0) for parts in zip(*sums, strict=True))
            theirs = self.rigid.along(k, push, couple)
            along = Along(-theirs.impulse, theirs.size, self.rigid.along(k, *met).size)
            found[first] = replace(found[first], along=along)

    def close(self) -> None:
        """Free what was allocated."""
        if self.particles is not None:
            self.particles.close()
