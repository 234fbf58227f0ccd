"""Soft bodies, springs and grains."""

import numpy as np

from taichi_sim.core.errors import SceneError, unknown
from taichi_sim.scene.checks.common import check_apart, check_regions, check_shape_table, numbers_of
from taichi_sim.scene.context import Context
from taichi_sim.scene.kinds import kinds
from taichi_sim.scene.networks.network import make_network
from taichi_sim.scene.schema import Body, Grains, Override, Profile, Scene, Springs


def check_body(scene: Scene, context: Context, path: str, body: Body) -> None:
    """Its shape, regions, material, and one number of particles wherever an entry has one a particle."""
    check_shape_table(context, f"{path}.shape", body.shape, bounded=True)
    check_regions(context, path, body.regions)
    material = body.material
    name = material.base if isinstance(material, Override) else material
    where = f"{path}.material.base" if isinstance(material, Override) else f"{path}.material"
    if name is not None and name not in scene.materials and context.ok(where, f"materials.{name}"):
        context.add(where, unknown("material", name, scene.materials), name)
    for key in ("velocity", "deformation"):
        profile = getattr(body, key)
        if isinstance(profile, Profile) and context.ok(f"{path}.{key}"):
            _profile(context, f"{path}.{key}", profile)
    given = {key: numbers_of(getattr(body, key)) for key in ("velocity", "deformation", "acceleration")}
    counts = {key: len(array) for key, array in given.items() if array.ndim == (3 if key == "deformation" else 2)}
    if given["acceleration"].ndim == 3:
        frames, counts["acceleration"] = given["acceleration"].shape[:2]
        if context.ok("duration", "frame_dt") and frames != scene.frames:
            context.add(f"{path}.acceleration", f"must have one row a frame: {scene.frames}, got {frames}")
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{key} for {n}" for key, n in counts.items())
        context.add(path, f"is given for different numbers of particles: {listed}")


def _profile(context: Context, path: str, profile: Profile) -> None:
    points, values = np.asarray(profile.points), np.asarray(profile.values)
    if len(points) != len(values):
        context.add(f"{path}.values", f"must have one entry a point: {len(points)}, got {len(values)}")
    if not (np.diff(points) > 0).all():
        context.add(f"{path}.points", "must increase", profile.points)
    if path.endswith("deformation") and not (values > 0).all():
        context.add(f"{path}.values", "stretches must be > 0", profile.values)


def check_springs(scene: Scene, context: Context, path: str, springs: Springs) -> None:
    """Its network, what is held, and all or nothing of what points touch with."""
    if springs.kind in kinds("network").names() and context.dim is not None and context.ok(path):
        if not kinds("network").get(springs.kind).reads:
            try:
                make_network(springs.kind, springs.parameters, context.dim, path, context.folder)
            except SceneError as error:
                context.problems += error.problems
    if springs.held is not None:
        check_shape_table(context, f"{path}.held", springs.held, bounded=False)
    if (springs.radius is None) != (springs.contact_stiffness is None) and context.ok(path):
        context.add(path, "give both radius (m) and contact_stiffness, or neither: points touch with both")
    if springs.radius is None and scene.grains and context.ok(path, "grains"):
        context.add(path, "needs radius (m) and contact_stiffness beside grains: they touch everything")
    check_regions(context, path, springs.regions)
    check_apart(context, path, springs.no_contact, [*scene.bodies, *scene.rigid])


def check_grains(scene: Scene, context: Context, path: str, grains: Grains) -> None:
    """Their shape and regions, and one law of contact for all grains of a scene."""
    check_shape_table(context, f"{path}.shape", grains.shape, bounded=True)
    first = next(iter(scene.grains.values()))
    if grains.law != first.law and context.ok(path):
        context.add(
            f"{path}.law", f"all grains of a scene touch by one law, and the first by {first.law!r}", grains.law
        )
    check_regions(context, path, grains.regions)
    check_apart(context, path, grains.no_contact, [*scene.bodies, *scene.rigid])
