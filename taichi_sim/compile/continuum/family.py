"""All continua of a scene as one family: particles and a grid."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.acting.forces import ActingForces
from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.continuum import diagnose
from taichi_sim.compile.continuum.contacts import Contacts
from taichi_sim.compile.continuum.matter import Matter
from taichi_sim.compile.continuum.start import Start
from taichi_sim.compile.drives import Loads
from taichi_sim.compile.family import Family, State, add
from taichi_sim.compile.limits import StepLimit
from taichi_sim.core.errors import RolloutError
from taichi_sim.runtime import Runtime
from taichi_sim.scene.bodies import BodyParticles
from taichi_sim.scene.schema import Scene
from taichi_sim.solvers.acting.solver import Acting
from taichi_sim.solvers.mpm.arrays import MpmPlan, footprint, longest_segment
from taichi_sim.solvers.mpm.solver import MpmSolver, Trouble
from taichi_sim.timeline.schedule import Costs


@dataclass
class Continuum(Family):
    """Bodies of particles with their materials, contacts and loads.

    ``law_order`` is the order of the solver (particles of one law together), ``tags`` (particles, 2) the row of the
    material table and the actuated group of every particle, ``stored_nodes`` the room for active grid nodes a substep.
    """

    points: slice
    bodies: list[BodyParticles]
    plan: MpmPlan
    scene: Scene
    limit: StepLimit
    start: Start
    matter: Matter
    loads: Loads
    contacts: Contacts
    bindings: list[Binding]
    law_order: np.ndarray
    tags: np.ndarray
    field_accelerations: np.ndarray
    slices: dict[str, slice]
    stored_nodes: int
    acting: ActingForces | None = None

    @property
    def every(self) -> int:
        return self.plan.sort_every

    def longest(self) -> int | None:
        return longest_segment(self.plan, self.stored_nodes)

    def costs(self, precision: str, frames: int) -> Costs:
        plan, ten = self.plan, 10 * self.plan.sort_every
        fixed = footprint(plan, precision, frames, 0, 0)
        more = footprint(plan, precision, frames, ten, ten * self.stored_nodes)
        state = plan.envs * plan.particles * (2 * plan.dim + 2 * plan.dim**2) * (4 if precision == "f32" else 8)
        return Costs(fixed, -(-(more - fixed) // ten), state + 4 * plan.envs * plan.particles)

    def make(self, runtime: Runtime, substeps: int, frames: int, segment: int, plain: bool) -> MpmSolver:
        room = self.stored_nodes * segment
        solver = MpmSolver(runtime, self.plan, substeps, frames, segment + 1, room, plain)
        solver.store.write("tag", self.tags)
        if self.plan.fields:
            solver.store.write("field_acceleration", self.field_accelerations)
        if self.acting is not None:
            arrays = {name: solver.store[name] for name in ("x", "v", "d_x", "d_v")}
            solver.drive = Acting(runtime, self.acting.plan, arrays, frames, plain)
        return solver

    def begin(self, values: Values) -> State:
        return self.start.state(values)

    def check(self, values: Values, start: State) -> None:
        diagnose.check_start(self, start)

    def masses(self, values: Values) -> np.ndarray:
        return self.matter.masses(values, self.plan.particles)

    def first(self, values: Values, start: State) -> dict[str, np.ndarray]:
        count = self.plan.envs * self.plan.particles
        state = {name: v[:, self.law_order].reshape(count, *v.shape[2:]) for name, v in start.items()}
        state["id"] = np.tile(self.law_order, self.plan.envs)
        return state

    def apply(self, values: Values, solver: MpmSolver) -> None:
        for binding in self.bindings:
            binding.apply(values, solver)

    def look(self, solver: MpmSolver, k: int, names: tuple[str, ...]) -> State:
        return {name: solver.in_body_order(name, k) for name in names}

    def explain(self, solver: MpmSolver, trouble: Exception, values: Values) -> RolloutError:
        assert isinstance(trouble, Trouble)
        return diagnose.explain(self, solver, trouble, values)

    def enter(self, solver: MpmSolver, k: int, bars: State) -> None:
        for name, bar in bars.items():
            solver.add_adjoint(name, bar)

    def pullback(self, values: Values, solver: MpmSolver) -> Values:
        total: Values = {}
        for binding in self.bindings:
            add(total, binding.pullback(values, solver))
        return total

    def pullback_mass(self, values: Values, mass: np.ndarray, inertia: np.ndarray | None) -> Values:
        return self.matter.pullback_mass(values, mass) if mass.any() else {}
