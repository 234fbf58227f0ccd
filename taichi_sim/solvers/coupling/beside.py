"""Matter of a second kind that meets the same bodies: its contacts are more rows of one velocity problem.

Continua and points (networks, grains) that touch the same bodies must not push them one after the other: what one
presses on a body the other holds up in the same step. So both find their contacts, each with rows of its own, and
those of the second are copied behind those of the first (``lead``) before bodies are solved for. Then each side pushes
its own particles. Backwards a copied row brings ``v_bar/m`` of its particle along; the adjoints of the contacts are
each side's own again.

Points meet bodies within the substep of the continuum, after all forces on both.
"""

from taichi_sim.core.launch import Launch
from taichi_sim.core.operator import bind_kernel
from taichi_sim.runtime import ti
from taichi_sim.solvers.coupling.arrays import BAR, ROOM, CouplingPlan
from taichi_sim.solvers.coupling.records import set_frames
from taichi_sim.solvers.coupling.stepper import Coupling
from taichi_sim.solvers.coupling.thin import Sides
from taichi_sim.solvers.particles.solver import ParticlesSolver
from taichi_sim.solvers.rigid.kernels import A1, A2, SPREAD
from taichi_sim.solvers.rigid.rotation import lift


@ti.kernel
def stand(
    dim: ti.template(), alone: ti.template(), extent: A1, position: A2, turned: A1, centre: A1, place: A1, size: A1,
    skin_offset: A1, axes: A1, collider: A1, sampling: A1, lattice_of: A1, band: A1, counts: A1, frame: A1, origin: A1,
    ball: A1, hull: A1, envs: ti.i32, k: ti.i32,
):  # fmt: skip
    """Where colliders are, of bodies that are ready at slot ``k``."""
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            set_frames(dim, spread // SPREAD, k, extent[0], position, turned, centre, place, size, skin_offset, axes,
                       collider, sampling, lattice_of, band, counts, frame, origin, ball, hull,
                       ti.static(Sides(0, None, None, None)))  # fmt: skip


@ti.kernel
def join(
    dim: ti.template(), alone: ti.template(), row: A1, row_body: A1, row_count: A1, counts: A1, lead_row: A1,
    lead_row_body: A1, lead_row_count: A1, lead_counts: A1, mpm_material: A1, d_mpm_v: A1, envs: ti.i32, back: ti.i32,
):  # fmt: skip
    """Copy all rows behind those of ``lead``, where their particle is -1; with ``back`` they bring what particles bring
    in ``balance.pull_adjoint``, which is told none of them."""
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            first = e * lead_counts[ROOM] + lead_row_count[e]
            for j in range(row_count[e]):
                i, at = e * counts[ROOM] + j, first + j
                lead_row[at] = row[i]
                lead_row_body[at] = ti.Vector([row_body[i][0], -1, -1])
                if back == 1:
                    bar = lift(dim, d_mpm_v[row_body[i][2]])
                    mass = mpm_material[row_body[i][1]][1]
                    for d in ti.static(range(3)):
                        row[i][BAR + d] = bar[d]
                        lead_row[at][BAR + d] = bar[d] / mass
            lead_row_count[e] = lead_row_count[e] + row_count[e]


class Beside(Coupling):
    """Contacts of points with the bodies that ``lead`` steps, a coupling of a continuum.

    Raises ``ValueError`` where ``lead`` has no room for them: its plan needs ``plan.room`` more than its own.
    """

    def __init__(
        self, plan: CouplingPlan, host: ParticlesSolver, lead: Coupling, pool: int, plain: bool = False
    ) -> None:
        own = 2 * lead.plan.particles
        if lead.plan.room < own + plan.room:
            raise ValueError(
                f"the coupling has room for {lead.plan.room} contacts; its own particles may have {own}, those beside "
                f"it {plan.room}: give it more room"
            )
        super().__init__(plan, host, lead.rigid, pool, plain)
        self.lead = lead
        lead.beside = self

    def _launch(self, name: str) -> Launch:
        kernel = {"stand": stand, "join": join}.get(name)
        if kernel is None:
            return super()._launch(name)
        if name not in self._bound:
            arrays = self._arrays()
            for shared in ("row", "row_body", "row_count", "counts"):
                arrays.arrays[f"lead_{shared}"] = self.lead.store[shared]
            fixed = {"dim": self.plan.dim, "alone": self.plan.envs == 1}
            self._bound[name] = bind_kernel(kernel, arrays, fixed, self._plain)
        return self._bound[name]

    def enter_rows(self, k: int, look: int) -> None:
        """Contacts of slot ``k`` into the velocity problem: with ``look`` as they are found, else for its adjoint."""
        if not look:
            self.swap(k)
        self._launch("stand")(self.plan.envs, k)
        self.lie(k, 0, look)
        self._launch("join")(self.plan.envs, 1 - look)
