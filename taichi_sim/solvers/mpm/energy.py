"""Stored energy of particles, for audits."""

from taichi_sim.runtime import ti
from taichi_sim.solvers.mpm.sweep import coefficients


@ti.kernel
def stored_energy(
    energy_of: ti.template(), F: ti.types.ndarray(ndim=1), rows: ti.types.ndarray(ndim=1),
    material: ti.types.ndarray(ndim=1), out: ti.types.ndarray(ndim=1), offset: ti.i32,
):
    """``out[p]``: energy (J) of particle ``p`` of one law with deformation ``F[p]`` and material row ``rows[p]``."""
    for p in range(rows.shape[0]):
        m = material[offset + rows[p]]
        out[p] = m[0] * energy_of(F[p], coefficients(m))
