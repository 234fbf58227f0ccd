"""What must hold between the entries of a scene: time, grid, references, signals, objectives, designs."""

import fnmatch
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from taichi_sim.core.errors import SceneError, unknown
from taichi_sim.scene import paths
from taichi_sim.scene.context import Context
from taichi_sim.scene.declare import entries
from taichi_sim.scene.kinds import kinds
from taichi_sim.scene.networks.network import make_network
from taichi_sim.scene.paths import joint_entries
from taichi_sim.scene.presets import resolve_material
from taichi_sim.scene.schema import (
    Actuator,
    Attachment,
    Body,
    Domain,
    Grains,
    Joint,
    Objective,
    Override,
    Profile,
    Region,
    Rigid,
    Scene,
    Signal,
    Springs,
    vector,
    wall_names,
)
from taichi_sim.scene.sensors import check_sensor
from taichi_sim.scene.shapes.shape import check_shape

#: Largest number of grid nodes: cell numbers are packed into 27 bits.
MOST_CELLS = 2**27
MOST_FRAMES = 10_000_000
#: Tables that hold matter, in the order of a scene's points; names are unique over all of them.
MATTER = ("bodies", "rigid", "springs", "grains")
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
                _friction(context, f"domain.walls.{name}", wall)
    if not any(getattr(scene, table) for table in MATTER) and context.ok(*MATTER, "robots"):
        listed = " or ".join(f"[{table}.NAME]" for table in MATTER)
        context.add("bodies", f"the scene is empty; add at least one {listed}")
    _names(scene, context)
    for name, body in scene.bodies.items():
        _body(scene, context, f"bodies.{name}", body)
    for name, rigid in scene.rigid.items():
        _rigid(scene, context, f"rigid.{name}", rigid)
    for name, joint in scene.joints.items():
        _joint(scene, context, f"joints.{name}", joint)
    _trees(scene, context)
    for name, attachment in scene.attachments.items():
        _attachment(scene, context, f"attachments.{name}", attachment)
    for name, springs in scene.springs.items():
        _springs(scene, context, f"springs.{name}", springs)
        _apart(context, f"springs.{name}", springs.no_contact, [*scene.bodies, *scene.rigid])
    for name, grains in scene.grains.items():
        _grains(scene, context, f"grains.{name}", grains)
        _apart(context, f"grains.{name}", grains.no_contact, [*scene.bodies, *scene.rigid])
    for name, obstacle in scene.obstacles.items():
        _shape(context, f"obstacles.{name}.shape", obstacle.shape, bounded=False)
        _friction(context, f"obstacles.{name}", obstacle)
    _policy(scene, context)
    _driven(scene, context)
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


def _friction(context: Context, path: str, contact: Any) -> None:
    if contact.kind != "separate" and contact.friction != 0.0 and context.ok(path):
        context.add(f"{path}.friction", f"belongs to kind 'separate', not {contact.kind!r}", contact.friction)


def _shape(context: Context, path: str, table: Any, bounded: bool) -> None:
    """What is wrong between the entries of a shape; mesh files are read when the scene is built, not here."""
    if context.dim is not None and table is not None and context.ok(path):
        context.problems += check_shape(table, context.dim, path, context.folder, bounded)


def _body(scene: Scene, context: Context, path: str, body: Body) -> None:
    _shape(context, f"{path}.shape", body.shape, bounded=True)
    _regions(context, path, body.regions)
    material = body.material
    name = material.base if isinstance(material, Override) else material
    where = f"{path}.material.base" if isinstance(material, Override) else f"{path}.material"
    if name is not None and name not in scene.materials and context.ok(where, f"materials.{name}"):
        context.add(where, unknown("material", name, scene.materials), name)
    for key in ("velocity", "deformation"):
        profile = getattr(body, key)
        if isinstance(profile, Profile) and context.ok(f"{path}.{key}"):
            _profile(context, f"{path}.{key}", profile)
    given = {key: _array(getattr(body, key)) for key in ("velocity", "deformation", "acceleration")}
    counts = {key: len(array) for key, array in given.items() if array.ndim == (3 if key == "deformation" else 2)}
    if given["acceleration"].ndim == 3:
        frames, counts["acceleration"] = given["acceleration"].shape[:2]
        if context.ok("duration", "frame_dt") and frames != scene.frames:
            context.add(f"{path}.acceleration", f"must have one row a frame: {scene.frames}, got {frames}")
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{key} for {n}" for key, n in counts.items())
        context.add(path, f"is given for different numbers of particles: {listed}")


def _rigid(scene: Scene, context: Context, path: str, rigid: Rigid) -> None:
    _shape(context, f"{path}.shape", rigid.shape, bounded=True)
    if (rigid.density is None) == (rigid.mass is None) and context.ok(path):
        context.add(path, "give exactly one of density (kg/m³) and mass (kg)")
    if rigid.inertia is not None and context.dim is not None and context.ok(f"{path}.inertia"):
        if message := wrong_inertia(np.ravel(np.asarray(rigid.inertia, float))):
            context.add(f"{path}.inertia", message, rigid.inertia)
    for key, whole in (("force", 1), ("torque", 1 if context.dim == 3 else 0)):
        value = _array(getattr(rigid, key))
        if value.ndim > whole and context.ok(f"{path}.{key}", "duration", "frame_dt") and len(value) != scene.frames:
            context.add(f"{path}.{key}", f"must have one row a frame: {scene.frames}, got {len(value)}")
    if rigid.fixed and context.ok(path):
        for key in ("velocity", "angular_velocity"):
            if np.any(getattr(rigid, key)):
                context.add(f"{path}.{key}", "a fixed body has none", getattr(rigid, key))
        if scene.joints:
            context.add(f"{path}.fixed", "is for scenes without joints; tie the body to the world by a fixed joint")
    _apart(context, path, rigid.no_contact, [*scene.rigid, *scene.bodies, *scene.springs, *scene.grains])


def _apart(context: Context, path: str, patterns: list[str], names: list[str]) -> None:
    """Every pattern of ``no_contact`` means something."""
    for i, other in enumerate(patterns or []):
        if isinstance(other, str) and not fnmatch.filter(names, other) and context.ok(f"{path}.no_contact"):
            context.add(f"{path}.no_contact[{i}]", unknown("body", other, names), other)


def _names(scene: Scene, context: Context) -> None:
    """No two things that objectives and actuators may name are called alike."""
    seen: dict[str, str] = {}
    for table in MATTER:
        for name in getattr(scene, table):
            if name in seen:
                context.add(f"{table}.{name}", f"is the name of {seen[name]}.{name} too; give one of them another name")
            seen.setdefault(name, table)


def _springs(scene: Scene, context: Context, path: str, springs: Springs) -> None:
    if springs.kind in kinds("network").names() and context.dim is not None and context.ok(path):
        if not kinds("network").get(springs.kind).reads:
            try:
                make_network(springs.kind, springs.parameters, context.dim, path, context.folder)
            except SceneError as error:
                context.problems += error.problems
    if springs.held is not None:
        _shape(context, f"{path}.held", springs.held, bounded=False)
    if (springs.radius is None) != (springs.contact_stiffness is None) and context.ok(path):
        context.add(path, "give both radius (m) and contact_stiffness, or neither: points touch with both")
    if springs.radius is None and scene.grains and context.ok(path, "grains"):
        context.add(path, "needs radius (m) and contact_stiffness beside grains: they touch everything")
    _regions(context, path, springs.regions)


def _grains(scene: Scene, context: Context, path: str, grains: Grains) -> None:
    _shape(context, f"{path}.shape", grains.shape, bounded=True)
    first = next(iter(scene.grains.values()))
    if grains.law != first.law and context.ok(path):
        context.add(
            f"{path}.law", f"all grains of a scene touch by one law, and the first by {first.law!r}", grains.law
        )
    _regions(context, path, grains.regions)


def _regions(context: Context, path: str, regions: Mapping[str, Region]) -> None:
    for name, region in regions.items():
        _shape(context, f"{path}.regions.{name}.shape", region.shape, bounded=False)


def _joint(scene: Scene, context: Context, path: str, joint: Joint) -> None:
    for key in ("parent", "child"):
        body = getattr(joint, key)
        if body is not None and body not in scene.rigid and context.ok(f"{path}.{key}", f"rigid.{body}"):
            context.add(f"{path}.{key}", unknown("rigid body", body, scene.rigid), body)
    if joint.parent is not None and joint.parent == joint.child:
        context.add(path, f"holds {joint.child!r} to itself; parent and child must differ")
    if context.dim is None or not context.ok(path):
        return
    turns = joint.kind == "prismatic" or (joint.kind == "hinge" and context.dim == 3)
    if turns and (joint.axis is None or not np.any(np.asarray(joint.axis))):
        context.add(f"{path}.axis", f"a {joint.kind} joint needs a direction that is not zero", joint.axis)
    if joint.loop and joint.kind not in ("ball", "hinge", "fixed"):
        context.add(f"{path}.kind", "a loop is closed by a ball, a hinge or a fixed joint", joint.kind)
    known, given = joint_entries(joint, context.dim), entries(Joint)
    for key, entry in given.items():
        default = next(f.default for f in msgspec.structs.fields(Joint) if f.name == key)
        value = getattr(joint, key)
        if entry.parameter.kind == "real" and key not in known and np.any(np.asarray(value != default)):
            what = f"a {joint.kind} joint{' that closes a loop' if joint.loop else ''} in {context.dim}-D"
            context.add(f"{path}.{key}", f"{what} has none; it has {', '.join(known) or 'no numbers'}", value)
    numbers = 3 if joint.kind == "ball" and context.dim == 3 else 1
    for key in ("position", "velocity"):
        if np.size(getattr(joint, key)) not in (1, numbers):
            context.add(f"{path}.{key}", f"must be {'3 numbers' if numbers == 3 else 'a number'}", getattr(joint, key))
    if joint.lower is not None and joint.upper is not None and not float(joint.lower) < float(joint.upper):
        context.add(f"{path}.lower", f"must be below upper = {float(joint.upper):g}", joint.lower)
    if not joint.loop and joint.kind != "free" and joint.child in scene.rigid:
        child = scene.rigid[joint.child]
        for key in ("velocity", "angular_velocity"):
            if context.ok(f"rigid.{joint.child}.{key}") and np.any(getattr(child, key)):
                message = f"does not count: the body begins as {path} moves; give {path}.velocity"
                context.add(f"rigid.{joint.child}.{key}", message, getattr(child, key))


def _attachment(scene: Scene, context: Context, path: str, attachment: Attachment) -> None:
    to = attachment.to
    if to is not None and to not in scene.rigid and context.ok(f"{path}.to", f"rigid.{to}"):
        context.add(f"{path}.to", unknown("rigid body", to, scene.rigid), to)
    nothing = not (scene.bodies or scene.springs or scene.grains)
    if attachment.body is not None and nothing and context.ok(f"{path}.body", "bodies", "springs", "grains"):
        context.add(
            f"{path}.body", "there is no [bodies.NAME], [springs.NAME] or [grains.NAME] to hold", attachment.body
        )
    _reference(scene, context, path, attachment.body, attachment.region, ("bodies", "springs", "grains"))


def _trees(scene: Scene, context: Context) -> None:
    """Every body hangs on at most one joint, and none on itself."""
    if not context.ok("joints", "rigid"):
        return
    above: dict[str, str] = {}
    for name, joint in scene.joints.items():
        if joint.loop or joint.kind == "free":
            continue
        if joint.child in above:
            context.add(
                f"joints.{name}.child",
                f"hangs on joints.{above[joint.child]} already; one of the two closes a loop: give it loop = true",
                joint.child,
            )
            return
        above[joint.child] = name
    for start in scene.rigid:
        seen, body = set(), start
        while body in above:
            if body in seen:
                where = above[body]
                context.add(f"joints.{where}", f"{body!r} hangs on itself in a loop; give one joint of it loop = true")
                return
            seen.add(body)
            body = scene.joints[above[body]].parent or ""


def wrong_inertia(moments: np.ndarray) -> str:
    """Why ``moments`` (1,) or (6,) (xx yy zz xy xz yz) are those of no body; empty where they are."""
    if len(moments) == 1:
        return "" if moments[0] > 0 else "must be > 0 kg m²"
    xx, yy, zz, xy, xz, yz = moments
    principal = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if principal[0] <= 0:
        return f"must be positive definite, its principal moments are {np.round(principal, 9).tolist()}"
    if principal[0] + principal[1] < principal[2] * (1 - 1e-6):
        return (
            f"no body has principal moments {np.round(principal, 9).tolist()}: the largest may be at most the sum of "
            "the other two"
        )
    return ""


def _array(value: Any) -> np.ndarray:
    return np.zeros(()) if value is None or isinstance(value, Profile) else np.asarray(value)


def _profile(context: Context, path: str, profile: Profile) -> None:
    points, values = np.asarray(profile.points), np.asarray(profile.values)
    if len(points) != len(values):
        context.add(f"{path}.values", f"must have one entry a point: {len(points)}, got {len(values)}")
    if not (np.diff(points) > 0).all():
        context.add(f"{path}.points", "must increase", profile.points)
    if path.endswith("deformation") and not (values > 0).all():
        context.add(f"{path}.values", "stretches must be > 0", profile.values)


def _driven(scene: Scene, context: Context) -> None:
    """References and signals of fields, actuators, sensors and objectives."""
    for name, field in scene.fields.items():
        if field.signal is not None:
            check_signal(scene, context, f"fields.{name}.signal", field.signal)
    for name, actuator in scene.actuators.items():
        path = f"actuators.{name}"
        _driven_thing(scene, context, path, actuator)
        if actuator.signal is not None:
            check_signal(scene, context, f"{path}.signal", actuator.signal)
        if context.ok(path, "dim"):
            try:
                load = kinds("actuator").get(actuator.kind).command(actuator.parameters, np.ones(1))
            except ValueError as error:
                context.add(path, str(error))
            else:
                if kinds("actuator").get(actuator.kind).drives == "body" and np.any(load.stress):
                    _fibres(scene, context, path, actuator)
    for name, sensor in scene.sensors.items():
        check_sensor(scene, context, f"sensors.{name}", sensor)
    for name, objective in scene.objectives.items():
        path = f"objectives.{name}"
        _reference(scene, context, path, objective.body, objective.region)
        if context.ok(path):
            _objective(scene, context, path, objective)


def _driven_thing(scene: Scene, context: Context, path: str, actuator: Actuator) -> None:
    """An actuator drives a body or a joint, as its kind says."""
    if actuator.kind not in kinds("actuator").names():
        return
    kind = kinds("actuator").get(actuator.kind)
    drives = "joint" if kind.drives == "joint" else "body"
    given = {"body": actuator.body, "joint": actuator.joint}
    if given[drives] is None:
        if context.ok(f"{path}.{drives}"):
            context.add(f"{path}.{drives}", f"is missing: the {drives} a {actuator.kind} drives")
        return
    for other, value in given.items():
        if other != drives and value is not None:
            context.add(f"{path}.{other}", f"a {actuator.kind} drives a {drives}, not a {other}", value)
    if drives == "body":
        _reference(scene, context, path, actuator.body, actuator.region, kind.tables)
    elif actuator.joint not in scene.joints:
        if context.ok(f"{path}.joint", f"joints.{actuator.joint}"):
            context.add(f"{path}.joint", unknown("joint", str(actuator.joint), scene.joints), actuator.joint)
    else:
        joint = scene.joints[str(actuator.joint)]
        if joint.loop or joint.kind not in ("prismatic", "hinge"):
            context.add(f"{path}.joint", f"is a {joint.kind} joint: motors drive hinges and slides", actuator.joint)
        if actuator.region is not None:
            context.add(f"{path}.region", "belongs to a body, not to a joint", actuator.region)


def _fibres(scene: Scene, context: Context, path: str, actuator: Actuator) -> None:
    """Active stress along fibres needs a body that knows where its fibres point: a fluid forgets all but its volume."""
    if actuator.body not in scene.bodies or not context.ok(f"bodies.{actuator.body}", "materials"):
        return
    try:
        law = kinds("law").get(resolve_material(scene, scene.bodies[actuator.body]).law)
    except ValueError:
        return  # said elsewhere
    if law.kind == "fluid":
        context.add(
            f"{path}.body", f"is of {law.name}: {actuator.kind} needs a solid, a fluid has no fibres", actuator.body
        )


def _reference(
    scene: Scene,
    context: Context,
    path: str,
    body: str | None,
    region: str | None,
    tables: tuple[str, ...] = MATTER,
) -> None:
    if body is None:
        if region is not None and context.ok(path):
            context.add(f"{path}.region", "needs a body", region)
        return
    table = next((table for table in MATTER if body in getattr(scene, table)), None)
    if table not in tables:
        known = [name for each in tables for name in getattr(scene, each)]
        if table is not None:
            context.add(f"{path}.body", f"is of [{table}]; this is for {' and '.join(f'[{t}]' for t in tables)}", body)
        elif known and context.ok(f"{path}.body", *(f"{each}.{body}" for each in MATTER)):
            context.add(f"{path}.body", unknown("body", body, known), body)
        return
    part = "marker" if table == "rigid" else "region"
    parts = getattr(getattr(scene, str(table))[body], f"{part}s")
    if region is not None and not fnmatch.filter(parts, region):
        if context.ok(f"{path}.region", f"{table}.{body}.{part}s"):
            what = {"bodies": "body", "rigid": "rigid body"}.get(str(table), str(table))
            context.add(f"{path}.region", unknown(f"{part} of {what} {body!r},", region, parts), region)


def check_signal(scene: Scene, context: Context, path: str, signal: Signal) -> None:
    """Evaluate a signal at every frame; its own ``ValueError`` becomes a problem."""
    if not context.ok(path, "duration", "frame_dt"):
        return
    try:
        kinds("signal").get(signal.kind).value(signal.parameters, scene.times)
    except ValueError as error:
        context.add(path, str(error))


def _objective(scene: Scene, context: Context, path: str, objective: Objective) -> None:
    kind = kinds("objective").get(objective.kind)
    if objective.when is not None and objective.when not in kind.allowed:
        context.add(f"{path}.when", f"{kind.name} allows {' or '.join(map(repr, kind.allowed))}", objective.when)
    try:
        kind.prepare(objective.parameters, context.folder or ".")
    except ValueError as error:
        context.cause = error.__cause__ or context.cause
        context.add(path, str(error))
    sensor = objective.parameters.get("sensor")
    if isinstance(sensor, str) and sensor not in scene.sensors and context.ok(f"sensors.{sensor}"):
        context.add(f"{path}.sensor", unknown("sensor", sensor, scene.sensors), sensor)
    driven = objective.parameters.get("actuators")
    if isinstance(driven, str) and not fnmatch.filter(scene.actuators, driven) and context.ok("actuators"):
        context.add(f"{path}.actuators", unknown("actuator", driven, scene.actuators), driven)


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
