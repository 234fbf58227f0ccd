"""Sentences for rollouts of continua that cannot go on."""

from typing import TYPE_CHECKING

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.continuum.resolution import REFUSED, spacing_in_cells
from taichi_sim.compile.limits import three_digits_down
from taichi_sim.core.errors import RolloutError
from taichi_sim.solvers.mpm.arrays import MpmPlan
from taichi_sim.solvers.mpm.order import BLOCK, images
from taichi_sim.solvers.mpm.solver import OUTSIDE, MpmSolver, Trouble

if TYPE_CHECKING:
    from taichi_sim.compile.continuum.family import Continuum

_NAMES = {"x": "position", "v": "velocity", "C": "affine velocity", "F": "deformation gradient"}


def active_nodes(plan: MpmPlan, x: np.ndarray) -> int:
    """Active grid nodes of the start, over all environments; ``x`` is (envs, particles, dim)."""
    total = 0
    counts = np.asarray(plan.sizes) // BLOCK
    for points in x:
        occupied = np.zeros(counts + 2, bool)
        for image in images(plan.periodic):
            at = plan.wrapped(points) + np.multiply(image, np.where(plan.periodic, plan.periods, 0.0))
            cell = np.floor((at - plan.origin) / plan.spacing + 0.5).astype(int) // BLOCK
            near = ((cell >= -1) & (cell <= counts)).all(axis=1)
            occupied[tuple(cell[near].T + 1)] = True
        grown = occupied.copy()
        for axis in range(plan.dim):
            grown = grown | np.roll(grown, 1, axis) | np.roll(grown, -1, axis)
        total += int(grown[(slice(1, -1),) * plan.dim].sum()) * BLOCK**plan.dim
    return max(total, BLOCK**plan.dim)


def _body_of(continuum: "Continuum", particle: int) -> tuple[str, int]:
    for name, where in continuum.slices.items():
        if where.start <= particle < where.stop:
            return name, particle - where.start
    return "?", particle


def _point(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{v:.4g}" for v in values) + ")"


def explain(continuum: "Continuum", solver: MpmSolver, trouble: Trouble, values: Values) -> RolloutError:
    """What a flag raised in a kernel means, with names."""
    plan = continuum.plan
    dt = float(values["dt"].max())
    when = f"substep {trouble.substep} (t = {trouble.substep * dt:.4g} s)"
    env = f", environment {trouble.env}" if plan.envs > 1 else ""
    if trouble.kind != OUTSIDE:
        wanted = max(1.2 * trouble.speed, continuum.limit.max_speed)
        allowed = float(continuum.scene.solver.cfl) * plan.spacing / (continuum.limit.wave_speed + wanted)
        if not np.isfinite(trouble.speed):
            return RolloutError(f"{when}: velocities are not finite; use a smaller solver.dt than {dt:.3g} s")
        return RolloutError(
            f"{when}: particles move at {trouble.speed:.4g} m/s, faster than the {continuum.limit.max_speed:.4g} m/s "
            f"this step was chosen for; set solver.max_speed = {wanted:.3g} (then dt <= {three_digits_down(allowed)} s)"
        )
    place = int(np.flatnonzero(solver.store.view("id")[solver.epoch] == trouble.particle)[trouble.env])
    for name in ("F", "C", "v", "x"):
        for k in range(trouble.slot + 1):
            if not np.isfinite(solver.store.view(name)[k]).all():
                bad = solver.store.view(name)[k].reshape(plan.envs * plan.particles, -1)
                row = int(np.argmin(np.isfinite(bad).all(axis=1)))
                body, local = _body_of(continuum, int(solver.store.view("id")[solver.epoch][row]))
                return RolloutError(
                    f"substep {solver.start + k} (t = {(solver.start + k) * dt:.4g} s){env}: {_NAMES[name]} of "
                    f"particle {local} of body {body!r} is not finite; the step dt = {dt:.3g} s may be too large for "
                    "this motion, set solver.dt or solver.max_speed"
                )
    body, local = _body_of(continuum, trouble.particle)
    position = solver.store.view("x")[trouble.slot, place]
    return RolloutError(
        f"{when}{env}: particle {local} of body {body!r} left the domain at {_point(position)} m (domain "
        f"{_point(np.asarray(plan.lower))} to {_point(np.asarray(plan.upper))}); give the domain more room, or a "
        f"smaller solver.dt than {dt:.3g} s if the motion blew up"
    )


def check_start(continuum: "Continuum", start: dict[str, np.ndarray]) -> None:
    """Raise :class:`RolloutError` for a particle that starts outside the domain (half a cell is forgiven, contact
    holds it there; periodic axes have no outside) or turned inside out; ``start`` holds x, F (envs, particles, …)."""
    lower, upper = np.asarray(continuum.plan.lower), np.asarray(continuum.plan.upper)
    edge = 0.5 * continuum.plan.spacing
    x = start["x"]
    for bad, what in (
        (
            (((x < lower - edge) | (x > upper + edge)) & ~np.asarray(continuum.plan.periodic)).any(axis=2),
            "starts outside the domain",
        ),
        (np.linalg.det(start["F"]) <= 0, "starts with a deformation whose determinant is not positive"),
    ):
        if bad.any():
            env, particle = (int(i) for i in np.argwhere(bad)[0])
            body, local = _body_of(continuum, particle)
            where = f", environment {env}" if continuum.plan.envs > 1 else ""
            raise RolloutError(
                f"particle {local} of body {body!r}{where} {what}, at {_point(x[env, particle])} m (domain "
                f"{_point(lower)} to {_point(upper)})"
            )


def check_final(continuum: "Continuum", final: dict[str, np.ndarray], substep: int) -> None:
    """Raise :class:`RolloutError` if the final state is not finite, or went so far along a periodic axis that its
    positions are coarse."""
    for name, array in final.items():
        finite = np.isfinite(array).reshape(*array.shape[:2], -1).all(axis=2)
        if not finite.all():
            env, particle = (int(i) for i in np.argwhere(~finite)[0])
            body, local = _body_of(continuum, particle)
            raise RolloutError(
                f"substep {substep}, environment {env}: {_NAMES[name]} of particle {local} of body {body!r} is not "
                "finite; set a smaller solver.dt"
            )
    x, precision = final["x"], "f32" if final["x"].dtype == np.float32 else "f64"
    env, particle, axis = (int(i) for i in np.unravel_index(int(np.argmax(np.abs(x))), x.shape))
    coarse = spacing_in_cells(float(x[env, particle, axis]), continuum.plan, precision)
    if coarse > REFUSED:
        body, _ = _body_of(continuum, particle)
        raise RolloutError(
            f"body {body!r} drifted to {'xyz'[axis]} = {x[env, particle, axis]:.6g} m along a periodic axis: there "
            f"{precision} positions are {coarse:.2g} grid spacings apart (at most {REFUSED:g}); "
            + ("use precision f64" if precision == "f32" else "make the duration shorter")
        )
