"""A compiled scene: sizes, bindings, objectives, and where everything is."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.actuation.actuator import actuators as actuator_kinds
from taichi_sim.actuation.signal import signals as signal_kinds
from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.contacts import Contacts, ObstacleContact, WallContact
from taichi_sim.compile.drives import Actuation, Actuators, Driven, Fields, Pushes, Quantified
from taichi_sim.compile.judge import Judge, Term
from taichi_sim.compile.limits import StepLimit, default_max_speed, step_limit
from taichi_sim.compile.matter import BodyMatter, Matter
from taichi_sim.compile.scalars import Scalars
from taichi_sim.compile.start import BodyStart, Start
from taichi_sim.core.errors import unknown
from taichi_sim.laws.law import kernel_functions, laws
from taichi_sim.objectives.objective import objectives as objective_kinds
from taichi_sim.scene.bodies import BodyParticles, build_bodies
from taichi_sim.scene.fields.field import fields as field_kinds
from taichi_sim.scene.paths import Quantity, match, quantities
from taichi_sim.scene.presets import resolve_material
from taichi_sim.scene.profiles import interpolate
from taichi_sim.scene.schema import Scene, wall_names
from taichi_sim.scene.shapes.shape import resolve_shape
from taichi_sim.solvers.mpm.arrays import MOST_DRIFT, MpmPlan
from taichi_sim.solvers.mpm.spline import NODE_MASK

#: Below this many particles an environment is stepped by one task (a launch costs as much as 100 particles).
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


def compile_scene(scene: Scene, envs: int = 1, seed: int = 0) -> Model:
    """Compile a scene for ``envs`` environments. Raises ``SceneError`` or ``ValueError`` for mistakes in it."""
    known = quantities(scene)
    pushed = {name for name, body in scene.bodies.items() if body.acceleration is not None}
    scene = scene.resolved()
    dim, frames, frame_dt = scene.dim, scene.frames, float(scene.frame_dt)
    bodies = build_bodies(scene, seed)
    slices, at = {}, 0
    for body in bodies:
        slices[body.name] = slice(at, at + len(body.points_rest))
        at += len(body.points_rest)
    particles = at
    values = _initial_values(scene, bodies, known, envs)
    bounds = _admissible(scene, known)

    matter = Matter(_body_matter(scene, bodies, slices, values), envs)
    start = Start([BodyStart(b.name, b.points_rest, b.center, slices[b.name]) for b in bodies], envs, particles, dim)
    acts, group_of, groups = _actuation(scene, bodies, slices, particles, known)
    times = np.arange(frames) * frame_dt
    actuators = Actuators(acts, times, groups, envs, dim)
    signals = {name: f.signal for name, f in scene.fields.items() if f.signal is not None}
    gains = [
        Driven(signal_kinds.get(s.kind), _quantified(f"fields.{name}.signal", s.parameters, known))
        for name, s in signals.items()
    ]

    domain = scene.domain
    spacing = float(domain.spacing or 0.0)
    speed = float(np.max(np.linalg.norm(start.state(values)["v"], axis=-1), initial=0.0))
    for body in bodies:  # the fastest start that is allowed
        ends = np.abs(np.concatenate([np.ravel(b) for b in bounds.get(f"bodies.{body.name}.velocity", ())] or [[0.0]]))
        if np.isfinite(ends).all():
            speed = max(speed, float(np.sqrt(dim) * ends.max()))
    extent = np.asarray(domain.upper) - np.asarray(domain.lower)
    max_speed = scene.solver.max_speed
    if max_speed is None:
        max_speed = default_max_speed(speed, np.asarray(scene.gravity), scene.duration, extent)
    cfl = float(scene.solver.cfl)
    stiffness = actuators.stiffness(values, bounds)
    limit = step_limit(matter.bodies, values, bounds, stiffness, spacing, cfl, float(max_speed), dim)
    substeps = _substeps(scene, limit)
    dt = frame_dt / substeps
    values["dt"] = np.full(envs, dt)

    laws_used = sorted({b.law.name for b in matter.bodies})
    order, ranges = _law_order(matter.bodies, laws_used)
    pushes = [(f"bodies.{b.name}.acceleration", slices[b.name]) for b in bodies]
    for path, where in pushes:
        _check_push(path, values[path].shape[1:], (frames, where.stop - where.start, dim))
    driven = bool(pushed) or any(path in bounds for path, _ in pushes)
    in_time = any(values[path].ndim == 4 for path, _ in pushes)
    if not driven:  # nothing pushes: no arrays are made for it, so it is not a quantity of this model either
        for path, _ in pushes:
            del values[path]
        pushes = []
    walls = _walls(scene, known)
    obstacles = _obstacles(scene, known)
    cells_per_step = float(max_speed) * dt / spacing
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
        sort_every=_sort_every(scene.solver.sort_every, cells_per_step),
        segment_mode=envs > 1 or particles < SMALL,
    )
    _check_size(plan)
    contacts, room = _contacts(walls, obstacles, plan, values, bounds)
    plan = replace(plan, contacts=room, partitions=1 if plan.segment_mode else scene.solver.partitions)
    contacts.plan = plan
    terms = _terms(scene, bodies, slices, known, [a.name for a in acts])
    accelerations = _field_accelerations(scene, plan)
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
        notes=[note for b in bodies for note in b.notes],
    )


def _check_push(path: str, shape: tuple[int, ...], full: tuple[int, ...]) -> None:
    """``full`` is (frames, particles, dim)."""
    if shape not in (full[2:], full[1:], full):
        raise ValueError(
            f"{path} has shape {shape}: must be {full[2:]}, {full[1:]} for {full[1]} particles, or {full} for "
            f"{full[0]} frames"
        )


def _initial_values(scene: Scene, bodies: list[BodyParticles], known: dict[str, Quantity], envs: int) -> Values:
    values: Values = {}
    for path, quantity in known.items():
        value = quantity.value
        if path == "dt":
            continue
        if value is None:
            value = _seeded(path, bodies)
        values[path] = np.repeat(np.asarray(value, np.float64)[None], envs, axis=0)
    return values


def _seeded(path: str, bodies: list[BodyParticles]) -> np.ndarray:
    """Value of a profile: one entry a particle."""
    _, name, key = path.split(".")
    body = next(b for b in bodies if b.name == name)
    if key == "velocity":
        return interpolate(body.given_velocity, body.points_rest)
    return interpolate(body.given_deformation, body.points_rest)[:, :, None] * np.eye(len(body.center))


def _admissible(scene: Scene, known: dict[str, Quantity]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Range the step is chosen for, by path: the design's bounds; without them a modulus is unbounded and anything
    else is taken as it is (the declared range of Poisson's ratio reaches to where no step would do)."""
    out = {}
    for entry in scene.design:
        for path in match(known, entry.path):
            value = known[path].value
            if value is None:
                continue
            free = np.asarray(np.inf) if known[path].scale == "log" else None
            low = np.asarray(entry.lower) if entry.lower is not None else value if free is None else -free
            high = np.asarray(entry.upper) if entry.upper is not None else value if free is None else free
            out[path] = (low, high)
    return out


def _body_matter(
    scene: Scene, bodies: list[BodyParticles], slices: dict[str, slice], values: Values
) -> list[BodyMatter]:
    out, row = [], 0
    for body in bodies:
        found = resolve_material(scene, scene.bodies[body.name].material)
        law = laws.get(found.law)
        own, shared = f"bodies.{body.name}.material", f"materials.{found.shared}"
        names = ["density", *(p.name for p in law.parameters if p.kind == "real" and p.differentiable)]
        where = {name: f"{own if name in found.overridden else shared}.{name}" for name in names}
        density, parameters = where["density"], {name: path for name, path in where.items() if name != "density"}
        paths = list(where.values())
        n = len(body.points_rest)
        sizes = {int(np.prod(values[p].shape[1:], dtype=int)) for p in paths if values[p].ndim > 1}
        for size in sizes - {n}:
            bad = next(p for p in paths if values[p].ndim > 1 and values[p][0].size == size)
            raise ValueError(f"{bad} has {size} entries, body {body.name!r} has {n} particles: give one each")
        volume = body.rest_volume
        count = n if sizes or np.ptp(volume) > 1e-12 * volume.max() else 1
        out.append(
            BodyMatter(body.name, law, density, parameters, volume[:count], slices[body.name], slice(row, row + count))
        )
        row += count
    return out


def _quantified(prefix: str, parameters: dict[str, Any], known: dict[str, Quantity]) -> Quantified:
    names = tuple(name for name in parameters if f"{prefix}.{name}" in known)
    return Quantified(prefix, names, {k: v for k, v in parameters.items() if k not in names})


def _actuation(
    scene: Scene, bodies: list[BodyParticles], slices: dict[str, slice], particles: int, known: dict[str, Quantity]
) -> tuple[list[Actuation], np.ndarray, int]:
    """Actuators, group of every particle (0: none) and number of groups."""
    by_name = {b.name: b for b in bodies}
    members = np.zeros((len(scene.actuators), particles), bool)
    for a, actuator in enumerate(scene.actuators.values()):
        members[a, _selection(by_name[actuator.body], slices[actuator.body], actuator.region)] = True
    combinations, group_of = np.unique(members.T, axis=0, return_inverse=True)
    group_of = np.asarray(group_of).reshape(-1)
    if not len(scene.actuators):
        return [], np.zeros(particles, np.int32), 1
    empty = [i for i, c in enumerate(combinations) if not c.any()]
    renumber = np.zeros(len(combinations), int)
    used = [i for i in range(len(combinations)) if i not in empty]
    renumber[used] = np.arange(1, len(used) + 1)
    acts = []
    for a, (name, actuator) in enumerate(scene.actuators.items()):
        prefix = f"actuators.{name}"
        signal = Driven(
            signal_kinds.get(actuator.signal.kind), _quantified(f"{prefix}.signal", actuator.signal.parameters, known)
        )
        groups = tuple(int(renumber[i]) for i in used if combinations[i, a])
        acts.append(
            Actuation(
                name,
                actuator.body,
                actuator_kinds.get(actuator.kind),
                _quantified(prefix, actuator.parameters, known),
                signal,
                groups,
            )
        )
    return acts, renumber[group_of].astype(np.int32), len(used) + 1


def _selection(body: BodyParticles, where: slice, region: str | None) -> np.ndarray:
    """Indices, over all bodies, of a body's or region's particles."""
    if region is None:
        return np.arange(where.start, where.stop)
    if region not in body.regions:
        raise ValueError(f"body {body.name!r}: {unknown('region', region, body.regions)}")
    return where.start + np.asarray(body.regions[region])


def _terms(
    scene: Scene,
    bodies: list[BodyParticles],
    slices: dict[str, slice],
    known: dict[str, Quantity],
    actuators: list[str],
) -> list[Term]:
    by_name = {b.name: b for b in bodies}
    terms = []
    total = sum(len(b.points_rest) for b in bodies)
    for name, objective in scene.objectives.items():
        kind = objective_kinds.get(objective.kind)
        if objective.body is None:
            chosen = np.arange(total)
        else:
            chosen = _selection(by_name[objective.body], slices[objective.body], objective.region)
        wanted = str(objective.parameters.get("actuators", "*"))
        if wanted != "*" and wanted not in actuators:
            raise ValueError(f"objectives.{name}.actuators: {unknown('actuator', wanted, actuators)}")
        columns = np.array([i for i, a in enumerate(actuators) if wanted in ("*", a)], int)
        if kind.name == "effort" and not len(columns):
            raise ValueError(f"objectives.{name}: measures effort, but the scene has no actuators")
        terms.append(
            Term(
                name,
                kind,
                _quantified(f"objectives.{name}", objective.parameters, known),
                chosen,
                columns,
                float(objective.weight),
                objective.when == "running",
            )
        )
    return terms


def _substeps(scene: Scene, limit: StepLimit) -> int:
    frame_dt = float(scene.frame_dt)
    if scene.solver.dt is None:
        return max(1, int(np.ceil(frame_dt / limit.allowed * (1 - 1e-9))))
    dt = float(scene.solver.dt)
    if dt > limit.allowed * (1 + 1e-6):
        raise ValueError(
            f"solver.dt = {dt:g} s is too large: allowed is {limit.text} s (body {limit.body!r}: waves of "
            f"{limit.wave_speed:.3g} m/s, particles of up to {limit.max_speed:.3g} m/s, spacing "
            f"{float(scene.domain.spacing or 0):g} m)"
        )
    return max(1, int(np.ceil(frame_dt / dt * (1 - 1e-9))))


def _sort_every(wanted: int, cells_per_step: float) -> int:
    """Substeps between sorts: a particle at twice the expected speed stays within the active blocks."""
    return int(max(1, min(wanted, MOST_DRIFT / max(2.0 * cells_per_step, 1e-12))))


def _check_size(plan: MpmPlan) -> None:
    if max(plan.sizes) > 4 * 1023 or plan.nodes * plan.workers > NODE_MASK:
        raise ValueError(
            f"domain.spacing = {plan.spacing:g} m makes a grid of {' x '.join(map(str, plan.sizes))} nodes: too large; "
            "use a larger spacing or a smaller domain"
        )


def _law_order(bodies: list[BodyMatter], names: list[str]) -> tuple[np.ndarray, tuple[tuple[int, int], ...]]:
    """Particles grouped by law, and the range of each law."""
    order, ranges, at = [], [], 0
    for name in names:
        for body in bodies:
            if body.law.name == name:
                order.append(np.arange(body.particles.start, body.particles.stop))
        size = sum(map(len, order)) - at
        ranges.append((at, at + size))
        at += size
    return np.concatenate(order).astype(np.int32), tuple(ranges)


def _walls(scene: Scene, known: dict[str, Quantity]) -> list[WallContact]:
    out = []
    for name in wall_names(scene.dim):
        wall = scene.domain.wall(name)
        if wall.kind == "periodic":
            continue
        friction = f"domain.walls.{name}.friction"
        out.append(
            WallContact(
                "xyz".index(name[0]),
                -1 if name.endswith("lower") else 1,
                wall.kind,
                friction if friction in known else None,
            )
        )
    return out


def _obstacles(scene: Scene, known: dict[str, Quantity]) -> list[ObstacleContact]:
    folder = Path(scene.source).parent if scene.source else None
    out = []
    for name, o in scene.obstacles.items():
        friction = f"obstacles.{name}.friction"
        shape = resolve_shape(o.shape, scene.dim, f"obstacles.{name}.shape", folder)
        out.append(
            ObstacleContact(
                name,
                shape,
                np.asarray(o.rotation),
                o.kind,
                f"obstacles.{name}.position",
                friction if friction in known else None,
            )
        )
    return out


def _contacts(
    walls: list[WallContact],
    obstacles: list[ObstacleContact],
    plan: MpmPlan,
    values: Values,
    bounds: dict[str, tuple[np.ndarray, np.ndarray]],
) -> tuple[Contacts, int]:
    """The binding, and rows of its table: the walls', and what the obstacles may need wherever they are moved."""
    contacts = Contacts(walls, obstacles, plan, 1)
    room = sum(len(contacts._wall_nodes(w)) for w in walls)
    for o in obstacles:
        room += contacts.most_nodes(o, values[o.position][0], moves=o.position in bounds)
    contacts.room = max(1, room * plan.envs)
    return contacts, contacts.room


def _field_accelerations(scene: Scene, plan: MpmPlan) -> np.ndarray:
    points = plan.node_positions()[plan.canonical_nodes()]
    found = [field_kinds.get(f.kind).acceleration(f.parameters, points) for f in scene.fields.values()]
    return np.concatenate(found) if found else np.zeros((1, plan.dim))
