"""The largest step springs and grains allow, with the name of what sets it."""

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.continuum.limits import default_max_speed
from taichi_sim.compile.limits import StepLimit, extreme
from taichi_sim.compile.particles.matter import ParticlesMatter
from taichi_sim.compile.particles.springs import SpringsBinding
from taichi_sim.compile.particles.surfaces import Surfaces
from taichi_sim.scene.particles import Cluster
from taichi_sim.scene.schema import Scene
from taichi_sim.solvers.particles.arrays import ParticlesPlan
from taichi_sim.solvers.particles.limits import step_limit

#: Side of its range on which an entry makes the step smallest.
STIFFEST = {
    "mass": -1, "density": -1, "radius": -1, "stiffness": 1, "damping": 1, "bend_stiffness": 1,
    "contact_stiffness": 1, "contact_damping": 1,
}  # fmt: skip


def expected_speed(scene: Scene, v: np.ndarray) -> float:
    """``solver.max_speed``, or the fastest of the start's ``v`` (envs, points, dim) and what gravity adds, m/s."""
    if scene.solver.max_speed is not None:
        return float(scene.solver.max_speed)
    present = float(np.max(np.linalg.norm(v, axis=-1), initial=0.0))
    extent = np.asarray(scene.domain.upper, float) - np.asarray(scene.domain.lower, float)
    return default_max_speed(present, np.asarray(scene.gravity), float(scene.duration), extent)


def particles_limit(
    plan: ParticlesPlan,
    tags: np.ndarray,
    clusters: list[Cluster],
    slices: list[slice],
    bindings: tuple[ParticlesMatter, SpringsBinding, Surfaces],
    values: Values,
    bounds: dict[str, tuple[np.ndarray, np.ndarray]],
    x: np.ndarray,
    max_speed: float,
) -> StepLimit:
    """Limit for the stiffest design within ``bounds`` (lower, upper by path); ``x`` (envs, points, dim) m."""
    stiffest = {
        path: np.broadcast_to(extreme(values, bounds, path, side), value.shape)
        for path, value in values.items()
        if path.startswith(("springs.", "grains.")) and (side := STIFFEST.get(path.split(".")[-1]))
    }
    matter, springs, surfaces = bindings
    at = {**values, **stiffest}
    arrays = {
        "mass": matter.masses(at),
        "radius": matter.radii(at),
        "surface": surfaces.rows(at),
        "spring": springs.springs(at),
        "bend_stiffness": springs.stiff_bends(at),
        "tag": tags,
        "x": x,
    }
    found = step_limit(plan, arrays, max_speed)
    if found.particle < 0:
        return StepLimit(found.allowed, "", 0.0, max_speed, "springs", "nothing stiff")
    c = next(i for i, where in enumerate(slices) if where.start <= found.particle < where.stop)
    table, _, name = clusters[c].path.partition(".")
    causes = {
        "springs": "stiffness and damping of its springs over the mass of a point",
        "bends": "bend_stiffness over the mass of a point",
        "grains": "contact_stiffness and contact_damping over the mass of what touches",
    }
    return StepLimit(found.allowed, name, 0.0, max_speed, table, causes[found.culprit])
