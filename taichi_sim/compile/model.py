"""A compiled scene: sizes, bindings, objectives, and where everything is.

Read :func:`compile_scene` from top to bottom; what it calls lies beside it: the scene's values (``initial``), materials
(``matter``), the step (``limits``, ``sizes``), contacts (``barriers``), actuators and objectives (``wiring``).
"""

from dataclasses import dataclass, field, replace

import numpy as np

from taichi_sim.compile import barriers, wiring
from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.contacts import Contacts
from taichi_sim.compile.doubts import obstacle_notes
from taichi_sim.compile.drives import Actuators, Fields, Pushes
from taichi_sim.compile.initial import admissible, initial_values
from taichi_sim.compile.judge import Judge
from taichi_sim.compile.limits import StepLimit, expected_speed, step_limit
from taichi_sim.compile.matter import Matter, body_matter, law_order
from taichi_sim.compile.scalars import Scalars
from taichi_sim.compile.sizes import (
    check_envs,
    check_grid_memory,
    check_size,
    check_values_memory,
    sort_every,
    substeps_per_frame,
)
from taichi_sim.compile.start import BodyStart, Start
from taichi_sim.laws.law import kernel_functions, laws
from taichi_sim.scene.bodies import BodyParticles, build_bodies
from taichi_sim.scene.load import from_dict
from taichi_sim.scene.paths import Quantity, quantities
from taichi_sim.scene.schema import Scene
from taichi_sim.solvers.mpm.arrays import MpmPlan

#: Below this many particles a 2-D environment is stepped by one task (a launch costs as much as 100 particles; in 3-D
#: particles cost more, and the fused kernels take a minute to compile).
SMALL = 2_500


@dataclass
class Model:
    """Everything compiled from a scene, apart from memory."""

    scene: Scene
    bodies: list[BodyParticles]
    slices: dict[str, slice]
    plan: MpmPlan
    substeps: int
    limit: StepLimit
    values: Values
    quantities: dict[str, Quantity]
    start: Start
    matter: Matter
    contacts: Contacts
    actuators: Actuators
    judge: Judge
    bindings: list[Binding]
    law_order: np.ndarray
    tags: np.ndarray
    field_accelerations: np.ndarray
    bounds: dict[str, tuple[np.ndarray, np.ndarray]]
    notes: list[str] = field(default_factory=list)

    @property
    def particles(self) -> int:
        """Particles of one environment."""
        return self.plan.particles

    def limit_at(self, values: Values) -> StepLimit:
        """Step limit of given values (without the head room of the design's bounds)."""
        s = self.scene
        return step_limit(
            self.matter.bodies,
            values,
            {},
            self.actuators.stiffness(values, {}),
            self.plan.spacing,
            float(s.solver.cfl),
            self.limit.max_speed,
            s.dim,
        )

    def in_environment(self, values: Values) -> str:
        """Which environment of given values has the smallest step limit, in words; empty where there is only one."""
        envs = self.plan.envs
        if envs == 1:
            return ""
        alone = ({k: np.broadcast_to(v[e : e + 1], v.shape) for k, v in values.items()} for e in range(envs))
        return f" in environment {int(np.argmin([self.limit_at(each).allowed for each in alone]))}"


def compile_scene(scene: Scene, envs: int = 1, seed: int = 0) -> Model:
    """Compile a scene for ``envs`` environments. Raises ``SceneError`` or ``ValueError`` for mistakes in it."""
    scene = from_dict(scene.to_dict(), scene.source)  # plain dicts become tables
    known = quantities(scene)
    pushed = {name for name, body in scene.bodies.items() if body.acceleration is not None}
    scene = scene.resolved()
    dim, frames, frame_dt = scene.dim, scene.frames, float(scene.frame_dt)
    check_envs(scene, envs)
    bodies = build_bodies(scene, seed)
    slices, at = {}, 0
    for body in bodies:
        slices[body.name] = slice(at, at + len(body.points_rest))
        at += len(body.points_rest)
    particles = at
    check_values_memory(bodies, known, envs)
    values = initial_values(scene, bodies, known, envs)
    bounds = admissible(scene, known)

    matter = Matter(body_matter(scene, bodies, slices, values), envs)
    start = Start([BodyStart(b.name, b.points_rest, b.center, slices[b.name]) for b in bodies], envs, particles, dim)
    acts, group_of, groups = wiring.actuation(scene, bodies, slices, particles, known)
    times = np.arange(frames) * frame_dt
    actuators = Actuators(acts, times, groups, envs, dim)
    gains = wiring.field_gains(scene, known)

    domain, state = scene.domain, start.state(values)
    spacing = float(domain.spacing or 0.0)
    max_speed = expected_speed(scene, state["v"], slices, bounds)
    cfl = float(scene.solver.cfl)
    stiffness = actuators.stiffness(values, bounds)
    limit = step_limit(matter.bodies, values, bounds, stiffness, spacing, cfl, max_speed, dim)
    substeps = substeps_per_frame(scene, limit)
    dt = frame_dt / substeps
    values["dt"] = np.full(envs, dt)

    laws_used = sorted({b.law.name for b in matter.bodies})
    order, ranges = law_order(matter.bodies, laws_used)
    pushes = [(f"bodies.{b.name}.acceleration", slices[b.name]) for b in bodies]
    for path, where in pushes:
        _check_push(path, values[path].shape[1:], (frames, where.stop - where.start, dim))
    driven = bool(pushed) or any(path in bounds for path, _ in pushes)
    in_time = any(values[path].ndim == 4 for path, _ in pushes)
    if not driven:  # nothing pushes: no arrays are made for it, so it is not a quantity of this model either
        for path, _ in pushes:
            del values[path]
        pushes = []
    walls = barriers.walls(scene, known)
    obstacles = barriers.obstacles(scene, known)
    cells_per_step = max_speed * dt / spacing
    plan = MpmPlan(
        dim=dim,
        spacing=spacing,
        lower=tuple(np.asarray(domain.lower, float)),
        upper=tuple(np.asarray(domain.upper, float)),
        periodic=tuple(domain.wall(f"{a}_lower").kind == "periodic" for a in "xyz"[:dim]),
        envs=envs,
        partitions=1,
        particles=particles,
        laws=tuple(map(kernel_functions, map(laws.get, laws_used))),
        law_ranges=ranges,
        rows=matter.rows,
        groups=groups,
        fields=len(scene.fields),
        contacts=1,
        driven=driven,
        driven_frames=frames if in_time else 1,
        sort_every=sort_every(scene.solver.sort_every, cells_per_step),
        segment_mode=envs > 1 or (dim == 2 and particles < SMALL),
    )
    check_size(plan)
    check_grid_memory(plan, frames)
    contacts, room = barriers.contacts_and_room(walls, obstacles, plan, values, bounds)
    plan = replace(plan, contacts=room, partitions=1 if plan.segment_mode else scene.solver.partitions)
    contacts.plan = plan
    places = {o.name: values[o.position][0] for o in obstacles}
    begin = {name: state["x"][0, where] for name, where in slices.items()}
    terms = wiring.terms(scene, bodies, slices, known, [a.name for a in acts], values, state["x"][0])
    accelerations = wiring.field_accelerations(scene, plan)
    rows = np.zeros(particles, np.int32)
    for b in matter.bodies:
        n = b.particles.stop - b.particles.start
        rows[b.particles] = b.rows.start + (np.arange(n) if b.per_particle else 0)
    return Model(
        scene=scene,
        bodies=bodies,
        slices=slices,
        plan=plan,
        substeps=substeps,
        limit=limit,
        values=values,
        quantities=known,
        start=start,
        matter=matter,
        contacts=contacts,
        actuators=actuators,
        judge=Judge(terms, frames, frame_dt),
        bindings=[
            Scalars(),
            matter,
            start,
            contacts,
            actuators,
            Fields(gains, times, envs),
            Pushes(pushes, plan.driven_frames, envs, particles, dim),
        ],
        law_order=order,
        tags=np.stack([rows, group_of], axis=1).astype(np.int32),
        field_accelerations=accelerations,
        bounds=bounds,
        notes=[note for b in bodies for note in b.notes] + obstacle_notes(contacts, places, begin),
    )


def _check_push(path: str, shape: tuple[int, ...], full: tuple[int, ...]) -> None:
    """``full`` is (frames, particles, dim)."""
    if shape not in (full[2:], full[1:], full):
        raise ValueError(
            f"{path} has shape {shape}: must be {full[2:]}, {full[1:]} for {full[1]} particles, or {full} for "
            f"{full[0]} frames"
        )
