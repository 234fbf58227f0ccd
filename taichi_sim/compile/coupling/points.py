"""Where rigid bodies and springs or grains of a scene meet."""

from collections.abc import Mapping

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.coupling.attachments import Attachments
from taichi_sim.compile.coupling.interface import Interface, fastest
from taichi_sim.compile.coupling.skins import Contact, Skins, pieces_of
from taichi_sim.compile.family import Piece, State, add
from taichi_sim.compile.particles.family import ParticlesFamily
from taichi_sim.compile.particles.overlaps import DEEPEST, ROUNDING, place_text
from taichi_sim.compile.rigid.family import RigidFamily
from taichi_sim.scene.particles import Cluster
from taichi_sim.scene.rigid import RigidGeometry
from taichi_sim.scene.schema import Scene
from taichi_sim.solvers.coupling.colliders import Colliders
from taichi_sim.solvers.coupling.stepper import Coupling
from taichi_sim.solvers.particles.arrays import HELD
from taichi_sim.solvers.rigid.attitude import matrices
from taichi_sim.solvers.shapes.samples import BEYOND

#: Penetration is taken back within so many steps, and by at most this share of a radius (of the length of a spring,
#: where a point has no radius) in one: far below what the steps of springs and grains can follow.
STEPS, SHARE = 50, 2e-3


def passes(solid: RigidGeometry, cluster: Cluster) -> bool:
    """Whether a rigid body and springs or grains pass through each other."""
    return solid.avoids(cluster.name) or cluster.avoids(solid.name)


def met(solids: list[RigidGeometry], clusters: list[Cluster]) -> list[int]:
    """Rigid bodies that some springs or grains do not pass through."""
    return [b for b, solid in enumerate(solids) if not all(passes(solid, one) for one in clusters)]


def tied(scene: Scene, clusters: list[Cluster]) -> bool:
    """Whether some springs or grains are attached to rigid bodies."""
    return any(one.body == cluster.name for one in scene.attachments.values() for cluster in clusters)


def points_interface(
    scene: Scene,
    points: ParticlesFamily,
    rigid: RigidFamily,
    pieces: Mapping[str, Piece],
    values: Values,
    bounds: dict[str, tuple[np.ndarray, np.ndarray]],
) -> Interface:
    """The coupling of a scene's springs and grains with its rigid bodies, some of which touch or are attached.

    Contact is hard, at the radius of a point, without rebound, and with the friction of the rigid body. Raises
    ``ValueError`` for shapes that points do not know, and for attached points that are held.
    """
    touched = met(rigid.bodies, points.clusters)
    plan, envs = points.plan, points.plan.envs
    dt, radii = float(np.min(values["dt"])), points.matter.radii(values)
    lengths = [_length(c, float(radii[:, s].max())) for c, s in zip(points.clusters, points.slices, strict=True)]
    speed = points.limit.max_speed + fastest(rigid.bodies, values, bounds)
    band = max(2.0 * dt * speed, 0.05 * max(lengths))
    colliders, owner = pieces_of(rigid.bodies, touched, band + float(radii.max()))
    held = Attachments(
        scene, pieces, [body.name for body in rigid.bodies], rigid.points.start + rigid.centres, points.points
    )
    _refuse_held(points, held)
    held.join(colliders)
    shape = (len(owner), plan.particles)
    contact = Contact(np.full(shape, -BEYOND), np.full(shape, 1.0 / (STEPS * dt)), np.ones(shape))
    for cluster, where, length in zip(points.clusters, points.slices, lengths, strict=True):
        contact.cap[:, where] = SHARE * length / dt
        for c, b in enumerate(owner):
            if not passes(rigid.bodies[b], cluster):
                contact.offset[c, where] = 0.0
    base = {"friction": 0.5, "stiction": 1e-3, "offset": 0.0, "compliance": 0.0}
    base |= {"rate": 1.0 / (STEPS * dt), "cap": SHARE * max(lengths) / dt}
    base |= {"weld_rate": 0.2 / dt, "weld_cap": max(lengths) / dt}
    return Interface(
        colliders.plan_points(plan, rigid.plan, band),
        colliders,
        PointSkins([rigid.bodies[b].name for b in owner], colliders, contact, envs, points),
        base,
        max(16, plan.particles // 4),
        attachments=held,
    )


def _refuse_held(points: ParticlesFamily, attachments: Attachments) -> None:
    for p in attachments.particles - attachments.first:
        if points.tags[p, HELD]:
            raise ValueError(
                f"{points.name_of(int(p))}: a point is held where it is and attached to a rigid body; do one of both"
            )


def _length(cluster: Cluster, radius: float) -> float:
    """Of what penetration is measured by, m."""
    if cluster.touches or cluster.network is None or not len(cluster.edges):
        return radius
    return float(np.median(cluster.network.rest_lengths))


class PointSkins(Skins):
    """The same for points, each of which touches at its radius."""

    def __init__(
        self, names: list[str], colliders: Colliders, contact: Contact, envs: int, points: ParticlesFamily
    ) -> None:
        super().__init__(names, colliders, contact, envs)
        self.points = points

    def apply(self, values: Values, solver: Coupling) -> None:
        super().apply(values, solver)
        offset = self.contact.offset + self.points.matter.radii(values)[:, None, :]
        solver.store.write("skin_offset", offset.reshape(-1))

    def pullback(self, values: Values, solver: Coupling) -> Values:
        out = super().pullback(values, solver)
        bar = solver.store.reduced_adjoint("skin_offset").reshape(self.envs, *self.contact.offset.shape).sum(axis=1)
        add(out, self.points.matter.vjp(values, np.zeros_like(bar), bar))
        return out


def solids_message(
    points: ParticlesFamily, rigid: RigidFamily, attached: np.ndarray, values: Values, start: State, env: int
) -> str:
    """On the deepest point that starts inside a rigid body it touches, of those that move and are not ``attached``
    (indices of the family); empty where none does."""
    stays = points.tags[:, HELD] > 0
    stays[attached] = True
    motion, x = rigid.joints.forward(values, rigid.start.motion(values)), start["x"][env]
    radii = points.matter.radii(values)[env]
    turned, centres = matrices(motion["rotation"][env], points.plan.dim), rigid.shapes.centres(values)[env]
    for b in met(rigid.bodies, points.clusters):
        body, scale = rigid.bodies[b], float(values[f"rigid.{rigid.bodies[b].name}.scale"][env])
        for cluster, where in zip(points.clusters, points.slices, strict=True):
            if passes(body, cluster):
                continue
            local = ((x[where] - motion["position"][env, b]) @ turned[b] + centres[b]) / scale + body.pivot
            depth = radii[where] - scale * body.shape.signed_distance(local)
            room = np.where(radii[where] > 0, DEEPEST * radii[where], ROUNDING * float(points.extent.max()))
            held = stays[where]
            i = int(np.argmax(np.where(held, -np.inf, depth - room)))
            if depth[i] > room[i] and not held[i]:
                return (
                    f"{cluster.path}: point {i} at {place_text(x[where][i])} m starts {depth[i]:.3g} m deep in "
                    f"rigid.{body.name}; move one of both, or let them pass through each other by no_contact"
                )
    return ""
