"""A compiled scene: families of matter, objectives, actuators, and the values of everything.

Read :func:`compile_scene` from top to bottom; what it calls lies beside it: the scene's values (``initial``), each
family (``continuum``, ``rigid``) and what couples them (``coupling``), actuators and objectives (``wiring``).
"""

import math
from dataclasses import dataclass, field

import numpy as np

from taichi_sim.compile import wiring
from taichi_sim.compile.binding import Values
from taichi_sim.compile.continuum.build import continuum
from taichi_sim.compile.continuum.family import Continuum
from taichi_sim.compile.continuum.limits import step_limit
from taichi_sim.compile.continuum.sizes import check_envs, check_values_memory
from taichi_sim.compile.coupling.interface import Interface, fastest, interface, overlap_notes, rebound_notes
from taichi_sim.compile.coupling.points import met, points_interface, solids_message, tied
from taichi_sim.compile.coupling.spheres import Meeting, meeting, soft_message, soft_met
from taichi_sim.compile.drives import Actuators
from taichi_sim.compile.family import Family, Piece, State
from taichi_sim.compile.initial import admissible, initial_values
from taichi_sim.compile.judge import Judge
from taichi_sim.compile.limits import StepLimit
from taichi_sim.compile.particles.build import particles_family
from taichi_sim.compile.particles.family import ParticlesFamily
from taichi_sim.compile.rigid.build import rigid_family, substeps_of
from taichi_sim.compile.rigid.family import RigidFamily
from taichi_sim.compile.rigid.notes import limit_notes, sinking_notes
from taichi_sim.compile.sensors import sensor_quantity
from taichi_sim.core.errors import RolloutError
from taichi_sim.scene.bodies import build_bodies
from taichi_sim.scene.load import from_dict
from taichi_sim.scene.particles import build_clusters
from taichi_sim.scene.paths import Quantity, quantities
from taichi_sim.scene.rigid import build_rigid
from taichi_sim.scene.schema import Scene, Sensor


@dataclass
class Model:
    """Everything compiled from a scene, apart from memory.

    ``pieces`` are what may be named, by name; ``slices`` the points of each, without gaps, in the order of the scene.
    """

    scene: Scene
    envs: int
    pieces: dict[str, Piece]
    slices: dict[str, slice]
    substeps: int
    limit: StepLimit
    values: Values
    quantities: dict[str, Quantity]
    continuum: Continuum | None
    rigid: RigidFamily | None
    particle: ParticlesFamily | None
    interface: Interface | None
    meeting: Meeting | None
    actuators: Actuators
    judge: Judge
    bounds: dict[str, tuple[np.ndarray, np.ndarray]]
    notes: list[str] = field(default_factory=list)

    @property
    def families(self) -> dict[str, Family]:
        """Families of matter by name, in the order of their points."""
        found: dict[str, Family | None] = {
            "continuum": self.continuum, "rigid": self.rigid, "particles": self.particle,
        }  # fmt: skip
        return {name: family for name, family in found.items() if family is not None}

    @property
    def points(self) -> int:
        """Points of one environment."""
        return max(family.points.stop for family in self.families.values())

    @property
    def particles(self) -> int:
        """Particles, points and grains of one environment, and rigid bodies with their markers: what a step works
        on."""
        return self.points

    @property
    def joints(self) -> dict[str, Piece]:
        """Joints of the tree by name, with their degrees of freedom."""
        if self.rigid is None:
            return {}
        tree = self.rigid.joints.tree
        return {k.name: Piece(k.name, "joints", np.arange(k.freedoms.start, k.freedoms.stop), {}) for k in tree}

    @property
    def sensors(self) -> dict[str, Sensor]:
        """Sensors by name."""
        return self.scene.sensors

    @property
    def massive(self) -> np.ndarray:
        """Points that carry all the mass, each once: all but markers."""
        return np.concatenate([piece.points for piece in self.pieces.values()])

    def limit_at(self, values: Values) -> StepLimit:
        """Step limit of given values (without the head room of the design's bounds)."""
        s, c = self.scene, self.continuum
        found = []
        if c is not None:
            stiffness, cfl = c.loads.stiffness(values, {}), float(s.solver.cfl)
            found.append(
                step_limit(c.matter.bodies, values, {}, stiffness, c.plan.spacing, cfl, c.limit.max_speed, s.dim)
            )
        if self.particle is not None:
            found.append(self.particle.limit_at(values))
        return min(found, key=lambda limit: limit.allowed, default=self.limit)

    def check_start(self, values: Values, parts: dict[str, State]) -> None:
        """Raise :class:`RolloutError` for families whose starts (by name) cannot be together."""
        for e in range(self.envs):
            if self.meeting is not None and self.continuum is not None:
                if message := soft_message(self.continuum, self.meeting, values, parts, e):
                    raise RolloutError(message + (f" (environment {e})" if self.envs > 1 else ""))
        if self.particle is not None and self.rigid is not None:
            ties = None if self.interface is None else self.interface.attachments
            attached = np.zeros(0, int) if ties is None else ties.particles - ties.first
            for e in range(self.envs if self.particle.plan.hosting else 0):
                if message := solids_message(self.particle, self.rigid, attached, values, parts["particles"], e):
                    raise RolloutError(message + (f" (environment {e})" if self.envs > 1 else ""))

    def in_environment(self, values: Values) -> str:
        """Which environment of given values has the smallest step limit, in words; empty where there is only one."""
        if self.envs == 1:
            return ""
        alone = ({k: np.broadcast_to(v[e : e + 1], v.shape) for k, v in values.items()} for e in range(self.envs))
        return f" in environment {int(np.argmin([self.limit_at(each).allowed for each in alone]))}"


def compile_scene(scene: Scene, envs: int = 1, seed: int = 0) -> Model:
    """Compile a scene for ``envs`` environments. Raises ``SceneError`` or ``ValueError`` for mistakes in it."""
    scene = from_dict(scene.to_dict(), scene.source)  # plain dicts become tables
    known = quantities(scene)
    pushed = any(body.acceleration is not None for body in scene.bodies.values())
    scene = scene.resolved()
    frames, frame_dt = scene.frames, float(scene.frame_dt)
    if scene.bodies:
        check_envs(scene, envs)
    bodies, solids, clusters = build_bodies(scene, seed), build_rigid(scene), build_clusters(scene, seed)
    if bodies:
        check_values_memory(bodies, known, envs)
    values = initial_values(bodies, known, envs)
    bounds = admissible(scene, known)

    pieces, slices, at = {}, {}, 0
    for body in bodies:
        where = slices[body.name] = slice(at, at + body.count)
        regions = {name: at + np.asarray(inside) for name, inside in body.regions.items()}
        pieces[body.name] = Piece(body.name, "bodies", np.arange(where.start, where.stop), regions)
        at = where.stop
    particles = at
    for solid in solids:
        markers = {name: np.array([at + 1 + i]) for i, name in enumerate(solid.table.markers)}
        slices[solid.name] = slice(at, at + 1 + len(markers))
        pieces[solid.name] = Piece(solid.name, "rigid", np.array([at]), markers)
        at += 1 + len(markers)
    solid_points = at
    for cluster in clusters:
        where = slices[cluster.name] = slice(at, at + cluster.count)
        regions = {name: at + inside for name, inside in cluster.regions.items()}
        table = cluster.path.partition(".")[0]
        pieces[cluster.name] = Piece(cluster.name, table, np.arange(where.start, where.stop), regions)
        at = where.stop

    acts, group_of, groups = wiring.actuation(scene, pieces, particles, known)
    actuators = Actuators(acts, np.arange(frames) * frame_dt, envs)
    soft, rigid, particle, notes = None, None, None, []
    substeps = substeps_of(scene) if solids else 1
    limit = StepLimit(math.inf, "", 0.0, math.inf)
    if bodies:
        soft, needed, notes = continuum(
            scene, bodies, known, values, bounds, actuators, group_of, groups, envs, pushed,
            fastest(solids, values, bounds),
        )  # fmt: skip
        limit, substeps = soft.limit, max(substeps, needed)
    if solids:
        rigid = rigid_family(scene, solids, known, values, bounds, actuators, particles, envs)
        notes += sinking_notes(rigid, values) + limit_notes(rigid, values)
    on_solids = bool(met(solids, clusters)) or tied(scene, clusters)
    if clusters:
        particle, needed, more = particles_family(
            scene, clusters, known, values, bounds, actuators, pieces, solid_points, envs,
            on_solids or bool(soft_met([body.name for body in bodies], clusters)),
        )  # fmt: skip
        limit, substeps = min((limit, particle.limit), key=lambda one: one.allowed), max(substeps, needed)
        notes += more
    values["dt"] = np.full(envs, frame_dt / substeps)
    joint = interface(soft, rigid, pieces, values) if soft is not None and rigid is not None else None
    if joint is not None and soft is not None and rigid is not None:
        held = joint.attachments.particles if joint.attachments is not None else np.zeros(0, int)
        notes += [*joint.notes, *overlap_notes(soft, rigid, held, values), *rebound_notes(rigid, joint)]
    link = meeting(soft, particle, values) if soft is not None and particle is not None else None
    if particle is not None and rigid is not None and on_solids:
        if joint is not None:
            raise ValueError(
                "rigid: bodies cannot touch, or hold, both continua and springs or grains yet; give the names of one "
                "or the other in no_contact of all rigid bodies"
            )
        joint = points_interface(scene, particle, rigid, pieces, values, bounds)
        notes += rebound_notes(rigid, joint)
    model = Model(
        scene=scene,
        envs=envs,
        pieces=pieces,
        slices=slices,
        substeps=substeps,
        limit=limit,
        values=values,
        quantities=known,
        continuum=soft,
        rigid=rigid,
        particle=particle,
        interface=joint,
        meeting=link,
        actuators=actuators,
        judge=Judge([], frames, frame_dt),
        bounds=bounds,
        notes=notes + wiring.seam_notes(scene) + _policy_notes(scene),
    )
    begin = np.concatenate([family.begin(values)["x"][0] for family in model.families.values()])
    sensors = {name: sensor_quantity(model, name) for name in scene.sensors}
    model.judge.terms = wiring.terms(scene, pieces, known, [a.name for a in acts], values, begin, sensors)
    return model


def _policy_notes(scene: Scene) -> list[str]:
    """What a policy that is not the simulation's does not do here."""
    if scene.solver.contact_gradient != "randomised":
        return []
    return [
        "solver.contact_gradient = 'randomised': the gradients of a simulation are exact; optimize takes their "
        f"mean over {scene.solver.gradient_samples} starts near the design"
    ]
