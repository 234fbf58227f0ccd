"""The springs and grains of a scene, compiled."""

from dataclasses import replace

import numpy as np

from taichi_sim.actuation.actuator import actuators as actuator_kinds
from taichi_sim.compile.acting.forces import ActingForces
from taichi_sim.compile.binding import Values
from taichi_sim.compile.continuum.sizes import substeps_per_frame
from taichi_sim.compile.drives import Actuators
from taichi_sim.compile.family import Piece
from taichi_sim.compile.particles.drives import Pushes, RestLengths, Steps
from taichi_sim.compile.particles.family import ParticlesFamily, enter_places
from taichi_sim.compile.particles.limits import expected_speed, particles_limit
from taichi_sim.compile.particles.matter import ParticlesMatter
from taichi_sim.compile.particles.obstacles import Obstacles
from taichi_sim.compile.particles.springs import SpringsBinding
from taichi_sim.compile.particles.start import ParticlesStart
from taichi_sim.compile.particles.surfaces import Surfaces, Walls, walls_of
from taichi_sim.compile.wiring import grouped, selection
from taichi_sim.scene.particles import Cluster
from taichi_sim.scene.paths import Quantity
from taichi_sim.scene.schema import Scene
from taichi_sim.solvers.particles.arrays import CLAN, GROUP, HELD, SURFACE, ParticlesPlan, rooms

#: Below this many points an environment is stepped by one task.
SMALL = 1_000


def particles_family(
    scene: Scene,
    clusters: list[Cluster],
    known: dict[str, Quantity],
    values: Values,
    bounds: dict[str, tuple[np.ndarray, np.ndarray]],
    actuators: Actuators,
    pieces: dict[str, Piece],
    first: int,
    envs: int,
    hosting: bool,
) -> tuple[ParticlesFamily, int, list[str]]:
    """The family of a resolved scene's springs and grains, the steps of a frame it needs, and notes; its points begin
    at ``first``, and it is ``hosting`` where rigid bodies touch them. Raises ``ValueError`` for mistakes in the
    scene."""
    dim, slices, at = scene.dim, [], 0
    for cluster in clusters:
        slices.append(slice(at, at := at + cluster.count))
    start, matter = ParticlesStart(clusters, slices, envs, dim), ParticlesMatter(clusters, slices, envs, dim)
    springs, surfaces = SpringsBinding(clusters, envs), Surfaces(clusters, envs)
    touching = any(cluster.touches for cluster in clusters)
    walls = Walls(walls_of(scene, known), envs, touching)

    ends = np.concatenate([c.edges + where.start for c, where in zip(clusters, slices, strict=True)])
    bends = np.concatenate([c.bends + where.start for c, where in zip(clusters, slices, strict=True)])
    edge_group, groups, driven = grouped(_actuated(scene, pieces, first, ends, at))
    pushed = [_pushed(scene, pieces, name, first) for name in scene.actuators]
    pushes = any(points is not None for points in pushed)
    radii = matter.radii(values)
    obstacles = Obstacles(scene, known, values, radii, envs)
    solid = len(walls.walls) + bool(obstacles.nodes)
    neighbours, contacts = rooms(dim, radii, solid) if touching else (0, 0)
    law = next((table.law for table in scene.grains.values()), "linear")
    plan = ParticlesPlan(
        dim=dim,
        envs=envs,
        particles=at,
        edges=tuple(zip(*ends.T.tolist(), edge_group.tolist(), strict=True)),
        bends=tuple(map(tuple, bends.tolist())),
        actuators=groups,
        surfaces=surfaces.count,
        walls=walls.kinds,
        obstacle=obstacles.nodes,
        grains=touching,
        hertz=law == "hertz",
        rolling=any(table.rolling_friction is not None for table in scene.grains.values()),
        neighbours=neighbours,
        contacts=contacts,
        driven=pushes,
        driven_frames=scene.frames if pushes else 1,
        hosting=hosting,
        segment_mode=not hosting and (envs > 1 or at < SMALL),
    )
    acting = ActingForces(
        scene, {c.name: (c, s) for c, s in zip(clusters, slices, strict=True) if c.network is not None}, actuators, at,
        lambda now: start.state(now)["x"], matter.masses, lambda now, bar: {}, enter_places, values,
    )  # fmt: skip
    if acting:
        plan = replace(plan, coupled=True, segment_mode=False)
    tags = _tags(clusters, slices)
    begin = start.state(values)
    limit = particles_limit(
        plan, tags, clusters, slices, (matter, springs, surfaces), values, bounds, begin["x"],
        expected_speed(scene, begin["v"]),
    )  # fmt: skip
    limit = acting.tightened(limit, values, bounds)
    family = ParticlesFamily(
        points=slice(first, first + at),
        clusters=clusters,
        slices=slices,
        plan=plan,
        limit=limit,
        tags=tags,
        start=start,
        matter=matter,
        springs=springs,
        surfaces=surfaces,
        walls=walls,
        obstacles=obstacles,
        bindings=[
            *([acting] if acting else []), Steps(), matter, start, springs, surfaces, walls, obstacles,
            RestLengths(actuators, groups, driven), Pushes(actuators, pushed, matter),
        ],
        extent=np.asarray(scene.domain.upper, float) - np.asarray(scene.domain.lower, float),
        acting=acting or None,
    )  # fmt: skip
    return family, _substeps(scene, family), _notes(scene)


def _substeps(scene: Scene, family: ParticlesFamily) -> int:
    if np.isfinite(family.limit.allowed) or scene.solver.dt is not None:
        return substeps_per_frame(scene, family.limit)
    return 1


def _tags(clusters: list[Cluster], slices: list[slice]) -> np.ndarray:
    """What the solver wants to know of each point, (points, 4)."""
    tags = np.zeros((slices[-1].stop, 4), np.int32)
    row = 0
    for c, (cluster, where) in enumerate(zip(clusters, slices, strict=True)):
        tags[where, SURFACE] = row if cluster.touches else -1
        row += cluster.touches
        tags[where, GROUP] = 0
        tags[where, HELD] = cluster.held
        tags[where, CLAN] = c + 1 if cluster.network is not None else 0
    return tags


def _actuated(scene: Scene, pieces: dict[str, Piece], first: int, ends: np.ndarray, points: int) -> np.ndarray:
    """(actuators, springs) whether an actuator changes the rest length of a spring: both its ends are in the region.

    Raises ``ValueError`` for one that changes none.
    """
    members = np.zeros((len(scene.actuators), len(ends)), bool)
    for a, (name, actuator) in enumerate(scene.actuators.items()):
        if actuator.kind != "spring":
            continue
        inside = np.zeros(points, bool)
        inside[selection(pieces[str(actuator.body)], actuator.region) - first] = True
        members[a] = inside[ends].all(axis=1)
        if not members[a].any():
            raise ValueError(f"actuators.{name}: no spring of springs.{actuator.body} has both ends in its region")
    return members


def _pushed(scene: Scene, pieces: dict[str, Piece], name: str, first: int) -> np.ndarray | None:
    """Points an actuator pushes, counted from the family's first."""
    actuator = scene.actuators[name]
    if actuator_kinds.get(actuator.kind).drives != "body" or not (
        actuator.body in scene.springs or actuator.body in scene.grains
    ):
        return None
    return selection(pieces[str(actuator.body)], actuator.region) - first


def _notes(scene: Scene) -> list[str]:
    notes = []
    if scene.fields:
        notes.append("force fields act on [bodies] only, not on springs and grains; use actuators of kind body_force")
    return notes
