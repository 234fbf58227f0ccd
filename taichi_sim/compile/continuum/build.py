"""The continua of a scene, compiled. Read :func:`continuum` from top to bottom; what it calls lies beside it."""

from dataclasses import replace

import numpy as np

from taichi_sim.compile import wiring
from taichi_sim.compile.acting.forces import ActingForces
from taichi_sim.compile.binding import Values
from taichi_sim.compile.continuum import barriers
from taichi_sim.compile.continuum.diagnose import active_nodes
from taichi_sim.compile.continuum.doubts import obstacle_notes
from taichi_sim.compile.continuum.family import Continuum
from taichi_sim.compile.continuum.limits import expected_speed, step_limit
from taichi_sim.compile.continuum.matter import Matter, body_matter, law_order
from taichi_sim.compile.continuum.scalars import Scalars
from taichi_sim.compile.continuum.sizes import check_grid_memory, check_size, sort_every, substeps_per_frame
from taichi_sim.compile.continuum.start import BodyStart, Start
from taichi_sim.compile.drives import Actuators, Fields, Loads, Pushes
from taichi_sim.laws.law import kernel_functions, laws
from taichi_sim.scene.bodies import BodyParticles
from taichi_sim.scene.paths import Quantity
from taichi_sim.scene.schema import Scene
from taichi_sim.solvers.mpm.arrays import MpmPlan

#: Below this many particles a 2-D environment is stepped by one task (a launch costs as much as 100 particles; in 3-D
#: particles cost more, and the fused kernels take a minute to compile).
SMALL = 2_500

#: Head room for the number of active grid nodes over that at the start.
GRID_GROWTH = 1.3


def continuum(
    scene: Scene,
    bodies: list[BodyParticles],
    known: dict[str, Quantity],
    values: Values,
    bounds: dict[str, tuple[np.ndarray, np.ndarray]],
    actuators: Actuators,
    group_of: np.ndarray,
    groups: int,
    envs: int,
    pushed: bool,
    others: float = 0.0,
) -> tuple[Continuum, int, list[str]]:
    """The family of a resolved scene's bodies of particles, the substeps of a frame it needs, and notes.

    ``group_of`` (particles,) is the group of actuators that drives each; ``pushed`` says whether external
    accelerations were given, ``others`` how fast rigid bodies begin, m/s. Raises ``SceneError`` or ``ValueError`` for
    mistakes in the scene.
    """
    dim, frames, frame_dt = scene.dim, scene.frames, float(scene.frame_dt)
    slices, at = {}, 0
    for body in bodies:
        slices[body.name] = slice(at, at + len(body.points_rest))
        at += len(body.points_rest)
    particles = at
    matter = Matter(body_matter(scene, bodies, slices, values), envs)
    start = Start([BodyStart(b.name, b.points_rest, b.center, slices[b.name]) for b in bodies], envs, particles, dim)
    times = np.arange(frames) * frame_dt
    gains = wiring.field_gains(scene, known)
    loads = Loads(actuators, groups, dim)
    acting = ActingForces(
        scene, {b.name: (b, slices[b.name]) for b in bodies}, actuators, particles,
        lambda now: start.state(now)["x"], lambda now: matter.masses(now, particles), matter.pullback_mass,
        lambda solver, bar: solver.add_adjoint("x", bar), values,
    )  # fmt: skip

    domain, state = scene.domain, start.state(values)
    spacing = float(domain.spacing or 0.0)
    max_speed = expected_speed(scene, state["v"], slices, bounds, others)
    cfl = float(scene.solver.cfl)
    stiffness = loads.stiffness(values, bounds)
    limit = step_limit(matter.bodies, values, bounds, stiffness, spacing, cfl, max_speed, dim)
    limit = acting.tightened(limit, values, bounds)
    substeps = substeps_per_frame(scene, limit)

    laws_used = sorted({b.law.name for b in matter.bodies})
    order, ranges = law_order(matter.bodies, laws_used)
    pushes = [(f"bodies.{b.name}.acceleration", slices[b.name]) for b in bodies]
    for path, where in pushes:
        _check_push(path, values[path].shape[1:], (frames, where.stop - where.start, dim))
    driven = pushed or any(path in bounds for path, _ in pushes)
    in_time = any(values[path].ndim == 4 for path, _ in pushes)
    if not driven:  # nothing pushes: no arrays are made for it, so it is not a quantity of this model either
        for path, _ in pushes:
            del values[path]
        pushes = []
    walls = barriers.walls(scene, known)
    obstacles = barriers.obstacles(scene, known)
    cells_per_step = max_speed * frame_dt / substeps / spacing
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
    rows = np.zeros(particles, np.int32)
    for b in matter.bodies:
        n = b.particles.stop - b.particles.start
        rows[b.particles] = b.rows.start + (np.arange(n) if b.per_particle else 0)
    found = Continuum(
        points=slice(0, particles),
        bodies=bodies,
        plan=plan,
        scene=scene,
        limit=limit,
        start=start,
        matter=matter,
        loads=loads,
        contacts=contacts,
        bindings=[
            *([acting] if acting else []),
            Scalars(),
            matter,
            start,
            contacts,
            loads,
            Fields(gains, times, envs),
            Pushes(pushes, plan.driven_frames, envs, particles, dim),
        ],
        law_order=order,
        tags=np.stack([rows, group_of], axis=1).astype(np.int32),
        field_accelerations=wiring.field_accelerations(scene, plan),
        slices=slices,
        stored_nodes=int(GRID_GROWTH * active_nodes(plan, state["x"])),
        acting=acting or None,
    )
    places = {o.name: values[o.position][0] for o in obstacles}
    begin = {name: state["x"][0, where] for name, where in slices.items()}
    return found, substeps, [note for b in bodies for note in b.notes] + obstacle_notes(contacts, places, begin)


def _check_push(path: str, shape: tuple[int, ...], full: tuple[int, ...]) -> None:
    """``full`` is (frames, particles, dim)."""
    if shape not in (full[2:], full[1:], full):
        raise ValueError(
            f"{path} has shape {shape}: must be {full[2:]}, {full[1:]} for {full[1]} particles, or {full} for "
            f"{full[0]} frames"
        )
