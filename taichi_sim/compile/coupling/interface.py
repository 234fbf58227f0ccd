"""Where rigid bodies and continua of a scene meet: the coupling of their solvers, compiled."""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.continuum.doubts import DEEP, LOOKED_AT, MANY
from taichi_sim.compile.continuum.family import Continuum
from taichi_sim.compile.continuum.limits import step_limit
from taichi_sim.compile.coupling.attachments import Attachments
from taichi_sim.compile.coupling.plates import part, thinned
from taichi_sim.compile.coupling.skins import Contact, Skins, pieces_of
from taichi_sim.compile.family import Piece, State
from taichi_sim.compile.rigid.family import RigidFamily
from taichi_sim.scene.rigid import RigidGeometry
from taichi_sim.solvers.coupling.arrays import CouplingPlan, footprint
from taichi_sim.solvers.coupling.beside import Beside
from taichi_sim.solvers.coupling.colliders import Colliders, default_skin
from taichi_sim.solvers.coupling.stepper import Coupling
from taichi_sim.solvers.mpm.solver import MpmSolver
from taichi_sim.solvers.particles.solver import ParticlesSolver
from taichi_sim.solvers.rigid.attitude import matrices
from taichi_sim.solvers.rigid.solver import RigidSolver
from taichi_sim.solvers.shapes.samples import BEYOND
from taichi_sim.timeline.schedule import Costs

#: What the design allows, (lower, upper) by path.
Bounds = dict[str, tuple[np.ndarray, np.ndarray]]


@dataclass
class Interface:
    """Colliders of the rigid bodies that continua, or points, touch. ``pool`` is the room for contacts, a substep and
    environment, that is there at the start; it grows where it does not suffice."""

    plan: CouplingPlan
    colliders: Colliders
    skins: Skins
    base: dict[str, float]
    pool: int
    attachments: Attachments | None = None
    notes: Sequence[str] = ()
    thick: Mapping[str, float] = field(default_factory=dict)

    def doubts(self, values: Values) -> list[str]:
        """What is no longer as it was when the scene was built."""
        return thinned(self.thick, values)

    def costs(self) -> Costs:
        """Bytes of its arrays."""
        fixed = footprint(self.plan, 0, 0)
        return Costs(fixed, footprint(self.plan, 1, self.pool) - fixed, 0)

    def make(
        self, host: MpmSolver | ParticlesSolver, rigid: RigidSolver, lead: Coupling | None, segment: int, plain: bool
    ) -> Coupling:
        """The coupling of two solvers with memory for ``segment`` substeps; beside ``lead``, where continua touch the
        bodies that points touch too."""
        pool = self.pool * (segment + 1)
        if lead is None:
            coupling = Coupling(self.plan, host, rigid, pool, plain)
        else:
            assert isinstance(host, ParticlesSolver)
            coupling = Beside(self.plan, host, lead, pool, plain)
        self.colliders.fill(coupling, self.base)
        return coupling

    def apply(self, values: Values, start: State, coupling: Coupling) -> None:
        """Put the values into the coupling's arrays; ``start`` is the state at time 0 (all points)."""
        self.skins.apply(values, coupling)
        if self.attachments is not None:
            self.attachments.apply(start, coupling)

    def pullback(self, values: Values, coupling: Coupling) -> Values:
        """Gradient by path of what the backward sweep left in the coupling, but for what came from the start."""
        return self.skins.pullback(values, coupling)

    def start_bars(self, start: State, coupling: Coupling) -> State:
        """Adjoint of the start."""
        return {} if self.attachments is None else self.attachments.pullback(start, coupling)


def avoids(body: RigidGeometry, other: str) -> bool:
    """Whether a rigid body passes through the continuum called ``other``."""
    return any(fnmatch.fnmatchcase(other, pattern) for pattern in body.table.no_contact)


def interface(soft: Continuum, rigid: RigidFamily, pieces: Mapping[str, Piece], values: Values) -> Interface | None:
    """The coupling of a scene's continua and rigid bodies; ``None`` where all of them pass through each other and none
    is attached. Where bodies are thin, the continua's plan gets a second layer of the grid.

    Contact is hard, and particles touch half of their spacing from a surface. Penetration is taken back at the
    pace of the material's waves in the scene as built. Raises ``ValueError`` for shapes that continua do not know.
    """
    matter = soft.matter.bodies
    touched = [b for b, solid in enumerate(rigid.bodies) if not all(avoids(solid, one.name) for one in matter)]
    held = Attachments(
        soft.scene, pieces, [body.name for body in rigid.bodies], rigid.points.start + rigid.centres, soft.points
    )  # fmt: skip
    if not touched and not held.held:
        return None
    plan, envs = soft.plan, soft.plan.envs
    reach = 0.5 * plan.spacing + max(float(one.volume.min()) for one in matter) ** (1 / plan.dim)
    colliders, owner = pieces_of(rigid.bodies, touched, reach)
    held.join(colliders)
    shape = (len(owner), plan.rows)
    contact = Contact(np.full(shape, -BEYOND), np.ones(shape), np.ones(shape))
    dt, finest, fast = float(np.min(values["dt"])), np.inf, 0.0
    for one in matter:
        wave = step_limit([one], values, {}, {}, plan.spacing, 1.0, 0.0, plan.dim).wave_speed
        each = float(one.volume.min()) ** (1 / plan.dim)
        finest, fast = min(finest, each), max(fast, wave)
        skin = default_skin(plan.spacing, wave, each, dt)
        for c, b in enumerate(owner):
            contact.rate[c, one.rows], contact.cap[c, one.rows] = skin["rate"], skin["cap"]
            if not avoids(rigid.bodies[b], one.name):
                contact.offset[c, one.rows] = skin["offset"]
    mixed = [b for b in touched if any(avoids(rigid.bodies[b], one.name) for one in matter)]
    notes, thick = part(soft, rigid, colliders, owner, mixed, finest, values)
    return Interface(
        colliders.plan(soft.plan, rigid.plan),
        colliders,
        Skins([rigid.bodies[b].name for b in owner], colliders, contact, envs),
        default_skin(plan.spacing, fast, finest, dt),
        _likely([rigid.bodies[b] for b in touched], finest, plan.particles),
        attachments=held,
        notes=notes,
        thick=thick,
    )


def rebound_notes(rigid: RigidFamily, joints: Iterable[Interface]) -> list[str]:
    """What becomes of restitution where particles touch."""
    joints = list(joints)
    if rigid.plan.events is None or not joints:
        return []
    when = "never here, where something is attached to one"
    if not any(joint.attachments is not None and joint.attachments.held for joint in joints):
        when = "only in steps in which no particle is near any of them"
    return [
        f"rigid: bodies with restitution rebound {when}; else they touch each other and walls by contact_stiffness and "
        "contact_damping"
    ]


def _likely(bodies: list[RigidGeometry], spacing: float, particles: int) -> int:
    """Contacts of a substep: a layer of particles around all bodies."""
    if not bodies:
        return 1
    area = 0.0
    for piece in (piece for body in bodies for piece in body.pieces):
        lower, upper = piece.bounds()
        area += 2.0 * float(np.prod(upper - lower) * (1.0 / (upper - lower)).sum())
    return int(np.clip(area / spacing ** (len(bodies[0].pivot) - 1), 16, max(16, particles)))


def fastest(bodies: list[RigidGeometry], values: Values, bounds: Bounds) -> float:
    """Speed of the fastest place of a rigid body at the start, m/s, or that the design's bounds allow."""
    found = 0.0
    for body in bodies:
        sizes = {}
        for entry in ("velocity", "angular_velocity"):
            path = f"rigid.{body.name}.{entry}"
            sizes[entry] = float(np.max(np.linalg.norm(values[path].reshape(len(values[path]), -1), axis=1)))
            ends = np.concatenate([np.ravel(end) for end in bounds[path]]) if path in bounds else np.zeros(1)
            if np.isfinite(ends).all():
                sizes[entry] = max(sizes[entry], float(np.abs(ends).max()) * np.sqrt(values[path][0].size))
        lower, upper = body.shape.bounds()
        reach = float(np.max(values[f"rigid.{body.name}.scale"])) * float(np.linalg.norm(upper - lower)) / 2
        found = max(found, sizes["velocity"] + reach * sizes["angular_velocity"])
    return found


def overlap_notes(soft: Continuum, rigid: RigidFamily, held: np.ndarray, values: Values) -> list[str]:
    """Continua that start inside rigid bodies, in the first environment; but for particles that are ``held``."""
    x, motion = soft.begin(values)["x"][0], rigid.joints.forward(values, rigid.start.motion(values))
    turned, centres = matrices(motion["rotation"][0], soft.plan.dim), rigid.shapes.centres(values)[0]
    dx = soft.plan.spacing
    notes = []
    for b, body in enumerate(rigid.bodies):
        scale = float(values[f"rigid.{body.name}.scale"][0])
        for name, where in soft.slices.items():
            if avoids(body, name):
                continue
            every = -(-(where.stop - where.start) // LOOKED_AT)
            chosen = np.arange(where.start, where.stop)[::every]
            points = x[chosen[~np.isin(chosen, held)]] - motion["position"][0, b]
            local = (points @ turned[b] + centres[b]) / scale + body.pivot
            depth = -scale * body.shape.signed_distance(local)
            inside = int(np.count_nonzero(depth > DEEP * dx)) * every
            if inside > MANY * (where.stop - where.start):
                notes.append(
                    f"bodies.{name}: {'about ' if every > 1 else ''}{inside} of {where.stop - where.start} particles "
                    f"start inside rigid.{body.name}, up to {depth.max():.3g} m deep ({depth.max() / dx:.2g} cells): "
                    "they are pushed out slowly, through the nearest side; move one of both"
                )
    return notes
