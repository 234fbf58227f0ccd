"""What must hold between the entries of a scene: time, grid, names, designs; ``checks`` has the rest, by tables."""

import numpy as np

from taichi_sim.scene import paths
from taichi_sim.scene.checks.common import MATTER, check_friction, check_shape_table
from taichi_sim.scene.checks.matter import check_body, check_grains, check_springs
from taichi_sim.scene.checks.purpose import check_driven
from taichi_sim.scene.checks.rigid import check_attachment, check_joint, check_rigid, check_trees
from taichi_sim.scene.context import Context
from taichi_sim.scene.schema import Domain, Scene, vector, wall_names

#: Largest number of grid nodes: cell numbers are packed into 27 bits.
MOST_CELLS = 2**27
MOST_FRAMES = 10_000_000
_WHOLE = 1e-6


def check(scene: Scene, context: Context) -> None:
    """Add a problem to ``context`` for everything in ``scene`` that does not fit together.

    Entries that were already refused while reading are not judged again.
    """
    _time(scene, context)
    if context.dim is not None and scene.domain is not None:
        if context.ok("domain.lower", "domain.upper", "domain.spacing", "domain.cells"):
            _grid(scene.domain, scene.dim, context, needed=bool(scene.bodies))
        if context.ok("domain.walls"):
            _periodic(scene.domain, scene.dim, context)
            for name, wall in scene.domain.walls.items():
                check_friction(context, f"domain.walls.{name}", wall)
    if not any(getattr(scene, table) for table in MATTER) and context.ok(*MATTER, "robots"):
        listed = " or ".join(f"[{table}.NAME]" for table in MATTER)
        context.add("bodies", f"the scene is empty; add at least one {listed}")
    _names(scene, context)
    for name, body in scene.bodies.items():
        check_body(scene, context, f"bodies.{name}", body)
    for name, rigid in scene.rigid.items():
        check_rigid(scene, context, f"rigid.{name}", rigid)
    for name, joint in scene.joints.items():
        check_joint(scene, context, f"joints.{name}", joint)
    check_trees(scene, context)
    for name, attachment in scene.attachments.items():
        check_attachment(scene, context, f"attachments.{name}", attachment)
    for name, springs in scene.springs.items():
        check_springs(scene, context, f"springs.{name}", springs)
    for name, grains in scene.grains.items():
        check_grains(scene, context, f"grains.{name}", grains)
    for name, obstacle in scene.obstacles.items():
        check_shape_table(context, f"obstacles.{name}.shape", obstacle.shape, bounded=False)
        check_friction(context, f"obstacles.{name}", obstacle)
    _policy(scene, context)
    check_driven(scene, context)
    for i, entry in enumerate(scene.design):
        if entry is not None and entry.path is not None:
            paths.check_design(scene, context, entry, f"design[{i}]")
    _repeated_designs(scene, context)


def _time(scene: Scene, context: Context) -> None:
    if not context.ok("duration", "frame_dt"):
        return
    ratio = scene.duration / scene.frame_dt
    frames = max(1, round(ratio)) if ratio < 2 * MOST_FRAMES else MOST_FRAMES + 1
    if frames > MOST_FRAMES:
        context.add("frame_dt", f"makes more than {MOST_FRAMES} frames; take it larger", scene.frame_dt)
    elif abs(ratio - frames) > _WHOLE * max(1.0, frames):
        context.add(
            "duration",
            f"must be a whole number of frame_dt = {scene.frame_dt:g} s; "
            f"nearest allowed: {frames * scene.frame_dt:.10g}",
            scene.duration,
        )


def _policy(scene: Scene, context: Context) -> None:
    """A law of rigid contact needs rigid bodies; nearby starts need none."""
    policy = scene.solver.contact_gradient
    if policy in ("exact", "randomised") or scene.rigid or not context.ok("solver.contact_gradient", "rigid", "robots"):
        return
    context.add(
        "solver.contact_gradient",
        "is a law between rigid bodies, and there are none ([rigid.NAME], [robots.NAME]); 'exact' and 'randomised' are "
        "for all matter",
        policy,
    )


def _grid(domain: Domain, dim: int, context: Context, needed: bool) -> None:
    given = (domain.spacing is not None) + (domain.cells is not None)
    if given == 2 or (needed and not given):
        context.add("domain", "give exactly one of spacing (m) and cells (along x)")
        return
    lower, upper = vector(domain.lower, dim), vector(domain.upper, dim)
    if not (upper > lower).all():
        axis = int(np.flatnonzero(~(upper > lower))[0])
        context.add(f"domain.upper[{axis}]", f"must be above domain.lower[{axis}] = {lower[axis]:g} m", upper[axis])
        return
    if not given:  # nothing lives on a grid
        return
    step = domain.step()
    with np.errstate(over="ignore"):
        exact = np.minimum((upper - lower) / step, 1e15)
    cells = np.maximum(np.rint(exact), 1)
    wrong = np.abs(exact - cells) > _WHOLE * np.maximum(1.0, cells)
    if wrong.any():
        allowed = ", ".join(f"{x:.10g}" for x in lower + cells * step)
        context.add(
            "domain.upper",
            f"each extent must be a whole number of grid spacings ({step:.10g} m); nearest allowed: [{allowed}]",
            domain.upper,
        )
    elif np.prod(cells) > MOST_CELLS:
        context.add("domain", f"has {np.prod(cells):.3g} cells, more than {MOST_CELLS}; take a larger spacing")


def _periodic(domain: Domain, dim: int, context: Context) -> None:
    for name in wall_names(dim):
        axis, side = name.split("_")
        other = f"{axis}_{'upper' if side == 'lower' else 'lower'}"
        if domain.wall(name).kind == "periodic" != domain.wall(other).kind:
            context.add(f"domain.walls.{other}", f"must be periodic too, as {name} is", domain.wall(other).kind)


def _names(scene: Scene, context: Context) -> None:
    """No two things that objectives and actuators may name are called alike."""
    seen: dict[str, str] = {}
    for table in MATTER:
        for name in getattr(scene, table):
            if name in seen:
                context.add(f"{table}.{name}", f"is the name of {seen[name]}.{name} too; give one of them another name")
            seen.setdefault(name, table)


def _repeated_designs(scene: Scene, context: Context) -> None:
    if context.problems:
        return
    seen: dict[str, int] = {}
    for i, entry in enumerate(scene.design):
        for path in paths.matching(scene, entry.path):
            if path in seen:
                context.add(f"design[{i}].path", f"names {path}, which design[{seen[path]}] names too", entry.path)
                break
            seen[path] = i
