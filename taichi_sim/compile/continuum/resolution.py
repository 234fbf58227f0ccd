"""Whether floating point can tell positions apart finely enough where a scene lies.

Positions are plain coordinates: far from the origin they are spaced by ``eps |x|``, and a particle that moves less
than half of that in a substep does not move at all.
"""

import numpy as np

from taichi_sim.solvers.mpm.arrays import MpmPlan

#: Spacing of positions, in cells, that is mentioned, and that is refused.
NOTED, REFUSED = 1e-3, 1e-2


def spacing_in_cells(coordinate: float, plan: MpmPlan, precision: str) -> float:
    """Spacing of numbers about ``coordinate`` (m), in cells; ``precision`` is f32 or f64."""
    eps = np.finfo({"f32": np.float32, "f64": np.float64}[precision]).eps
    return float(eps) * abs(coordinate) / plan.spacing


def resolution_notes(plan: MpmPlan, precision: str, max_speed: float, duration: float) -> list[str]:
    """What should be known about the precision of positions in the domain, and of bodies that may go on for
    ``duration`` (s) at ``max_speed`` (m/s) along a periodic axis. Raises ``ValueError`` where positions are too coarse.
    """
    ends = {f"domain.{side}[{d}]": getattr(plan, side)[d] for side in ("lower", "upper") for d in range(plan.dim)}
    path, furthest = max(ends.items(), key=lambda item: abs(item[1]))
    fix = "move the scene near the origin" + (" or use precision f64" if precision == "f32" else "")
    share = spacing_in_cells(furthest, plan, precision)
    text = f"{path} = {furthest:.10g} m: there {precision} positions are {share:.2g} grid spacings apart"
    if share > REFUSED:
        raise ValueError(f"{text} (at most {REFUSED:g}); {fix}")
    if share > NOTED:
        return [f"{text}; {fix}"]
    if any(plan.periodic):
        reach = abs(furthest) + max_speed * duration
        share = spacing_in_cells(reach, plan, precision)
        if share > NOTED:
            return [
                f"a body that goes {max_speed * duration:.3g} m along a periodic axis (solver.max_speed for the whole "
                f"duration) ends where {precision} positions are {share:.2g} grid spacings apart"
                + ("; use precision f64 if that is to be expected" if precision == "f32" else "")
            ]
    return []
