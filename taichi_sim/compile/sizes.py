"""What a scene may ask for: substeps of a frame, sorts, grid nodes."""

import numpy as np

from taichi_sim.compile.limits import StepLimit
from taichi_sim.scene.schema import Scene
from taichi_sim.solvers.mpm.arrays import MOST_DRIFT, MpmPlan
from taichi_sim.solvers.mpm.spline import NODE_MASK


def substeps_per_frame(scene: Scene, limit: StepLimit) -> int:
    """Substeps of a frame, from the limit or from ``solver.dt``. Raises ``ValueError`` where that is too large."""
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


def sort_every(wanted: int, cells_per_step: float) -> int:
    """Substeps between sorts: a particle at twice the expected speed stays within the active blocks."""
    return int(max(1, min(wanted, MOST_DRIFT / max(2.0 * cells_per_step, 1e-12))))


def check_size(plan: MpmPlan) -> None:
    """Raise ``ValueError`` for a grid that 32-bit node indices cannot address."""
    if max(plan.sizes) > 4 * 1023 or plan.nodes * plan.workers > NODE_MASK:
        raise ValueError(
            f"domain.spacing = {plan.spacing:g} m makes a grid of {' x '.join(map(str, plan.sizes))} nodes: too large; "
            "use a larger spacing or a smaller domain"
        )
