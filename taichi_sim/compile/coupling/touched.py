"""What rigid bodies and what they touch gave each other in the last step, summed over each pair."""

import numpy as np

from taichi_sim.compile.contact_table import contact_table
from taichi_sim.compile.continuum.family import Continuum
from taichi_sim.compile.particles.family import ParticlesFamily
from taichi_sim.compile.rigid.family import RigidFamily
from taichi_sim.solvers.coupling.sensing import given
from taichi_sim.solvers.coupling.stepper import Coupling
from taichi_sim.solvers.particles.solver import ParticlesSolver
from taichi_sim.solvers.rigid.sensing import kicks


def pair_impulses(coupling: Coupling, soft: Continuum | ParticlesFamily, rigid: RigidFamily, k: int) -> np.ndarray:
    """A table of contacts (``contact_table``) with a row for each pair that touched, or is welded, in the step to slot
    ``k``, the last one that was run: the coupling still holds its rows. Bodies that are held are listed too."""
    dim, host = rigid.plan.dim, coupling.host
    if k == 0:
        none = np.zeros((0, dim))
        return contact_table(dim, np.zeros(0, int), [], none, none, none, none, np.zeros(0))
    coupling.rigid.press(k - 1)  # leaves the velocities the step has solved for in dof
    if isinstance(host, ParticlesSolver):
        assert isinstance(soft, ParticlesFamily)
        ids = np.tile(np.arange(coupling.plan.particles), rigid.plan.envs)
        names, slices = [one.path for one in soft.clusters], list(soft.slices)
    else:
        assert isinstance(soft, Continuum)
        ids, slices = host.store.view("id")[host.epoch], list(soft.slices.values())
        names = [f"bodies.{name}" for name in soft.slices]
    found = given(coupling, k - 1)
    which = np.searchsorted([where.start for where in slices], ids[found.particle], side="right") - 1
    keys = np.stack([found.env, found.body, which], axis=1)[found.body >= 0]
    pairs, at = np.unique(keys, axis=0, return_inverse=True)
    impulse = np.zeros((len(pairs), dim))
    np.add.at(impulse, at.ravel(), -found.impulse[found.body >= 0, :dim])
    pairs, impulse = pairs[impulse.any(axis=1)], impulse[impulse.any(axis=1)]
    sides = [(f"rigid.{rigid.bodies[b].name}", names[m]) for _, b, m in pairs]
    many = np.full(impulse.shape, np.nan)
    force = impulse / kicks(coupling.rigid, k)[pairs[:, 0], None]
    return contact_table(dim, pairs[:, 0], sides, many, many, impulse, force, np.full(len(pairs), np.nan))
