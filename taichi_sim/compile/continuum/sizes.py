"""What a scene may ask for: substeps of a frame, sorts, grid nodes, memory."""

import numpy as np

from taichi_sim.compile.limits import StepLimit
from taichi_sim.core.memory import refuse_beyond_memory
from taichi_sim.scene.bodies import BodyParticles
from taichi_sim.scene.paths import Quantity
from taichi_sim.scene.schema import Scene
from taichi_sim.solvers.mpm.arrays import MOST_DRIFT, MpmPlan, footprint
from taichi_sim.solvers.mpm.spline import NODE_MASK

#: More substeps than this, which take a day where each takes 0.1 ms, are a mistake in a unit.
MOST_SUBSTEPS = 1e9


def substeps_per_frame(scene: Scene, limit: StepLimit) -> int:
    """Substeps of a frame, from the limit or from ``solver.dt``. Raises ``ValueError`` where that is too large, or so
    small that the rollout would not end."""
    frame_dt = float(scene.frame_dt)
    step = limit.allowed if scene.solver.dt is None else float(scene.solver.dt)
    if not scene.frames * frame_dt / step <= MOST_SUBSTEPS:
        raise ValueError(
            f"a rollout would take {scene.frames * frame_dt / step:.2g} substeps of {step:.3g} s, more than "
            f"{MOST_SUBSTEPS:.0e}: "
            + (
                f"{limit.culprit} has {limit.why} and particles of up to {limit.max_speed:.3g} m/s; check the units of "
                "stiffness, viscosity, density, gravity and velocities, or make the duration shorter"
                if scene.solver.dt is None
                else f"solver.dt is too small; leave it out (then {limit.text} s is taken)"
            )
        )
    if scene.solver.dt is None:
        return max(1, int(np.ceil(frame_dt / limit.allowed * (1 - 1e-9))))
    dt = float(scene.solver.dt)
    if dt > limit.allowed * (1 + 1e-6):
        raise ValueError(
            f"solver.dt = {dt:g} s is too large: allowed is {limit.text} s ({limit.culprit}: {limit.why}, particles of "
            f"up to {limit.max_speed:.3g} m/s"
            + (f", spacing {float(scene.domain.spacing or 0):g} m)" if limit.table == "bodies" else ")")
        )
    return max(1, int(np.ceil(frame_dt / dt * (1 - 1e-9))))


def sort_every(wanted: int, cells_per_step: float) -> int:
    """Substeps between sorts: a particle at twice the expected speed stays within the active blocks."""
    return int(max(1, min(wanted, MOST_DRIFT / max(2.0 * cells_per_step, 1e-12))))


def check_size(plan: MpmPlan) -> None:
    """Raise ``ValueError`` for a grid that 32-bit node indices cannot address."""
    if max(plan.sizes) > 4 * 1023 or plan.nodes * plan.layers * plan.workers > NODE_MASK:
        raise ValueError(
            f"domain.spacing = {plan.spacing:g} m makes a grid of {' x '.join(map(str, plan.sizes))} nodes: too large; "
            "use a larger spacing or a smaller domain" + (", or fewer envs" if plan.envs > 1 else "")
        )


def check_envs(scene: Scene, envs: int) -> None:
    """Raise ``ValueError`` for more environments than 32-bit node indices can address, before they have values."""
    cells = scene.domain.counts(scene.dim)
    if envs > 1 and int(np.prod(cells, dtype=np.int64)) * envs > NODE_MASK:
        raise ValueError(
            f"{envs} environments of {' x '.join(map(str, cells))} cells have more than the {NODE_MASK:,} grid nodes "
            "that can be addressed; use fewer envs"
        )


def check_values_memory(bodies: list[BodyParticles], known: dict[str, Quantity], envs: int) -> None:
    """Raise ``ValueError`` where the values and initial states of ``envs`` environments are more than memory holds:
    three copies of each value (the scene's, those set, their gradients), two of each state."""
    dim = len(bodies[0].center)
    state = sum(b.count for b in bodies) * 2 * (dim + dim**2)
    values = sum(np.size(q.value) for q in known.values() if q.value is not None)
    what = f"{envs} environments of {sum(b.count for b in bodies)} particles" if envs > 1 else "the bodies"
    fix = "use fewer envs" if envs > 1 else "use a larger domain.spacing or fewer particles_per_cell"
    refuse_beyond_memory(what, 8.0 * envs * (3 * values + 2 * state), fix)


def check_grid_memory(plan: MpmPlan, frames: int) -> None:
    """Raise ``ValueError`` where the least a rollout can do with (a segment of one sort interval, f32) and the lists of
    node positions and contacts on the host are more than memory holds."""
    host = plan.nodes * (4 * plan.dim + 2) * 8 + plan.envs * plan.nodes * 12
    host += plan.fields * plan.nodes * plan.dim * 16
    need = footprint(plan, "f32", frames, plan.sort_every + 1, 0) + host
    grid = " x ".join(map(str, plan.sizes))
    copies = f"{plan.envs} times " if plan.envs > 1 else ""
    refuse_beyond_memory(
        f"a rollout with {copies}a grid of {grid} nodes and {plan.particles} particles over {frames} frames",
        need,
        "use a larger domain.spacing, a smaller domain" + (" or fewer envs" if plan.envs > 1 else ""),
    )
