"""Rigid bodies, joints, and what is attached to them."""

import msgspec
import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.scene.checks.common import check_apart, check_reference, check_shape_table, numbers_of
from taichi_sim.scene.context import Context
from taichi_sim.scene.declare import entries
from taichi_sim.scene.paths import joint_entries
from taichi_sim.scene.schema import Attachment, Joint, Rigid, Scene


def check_rigid(scene: Scene, context: Context, path: str, rigid: Rigid) -> None:
    """Its shape, mass and inertia, loads a frame, and what a fixed body has not."""
    check_shape_table(context, f"{path}.shape", rigid.shape, bounded=True)
    if (rigid.density is None) == (rigid.mass is None) and context.ok(path):
        context.add(path, "give exactly one of density (kg/m³) and mass (kg)")
    if rigid.inertia is not None and context.dim is not None and context.ok(f"{path}.inertia"):
        if message := _wrong_inertia(np.ravel(np.asarray(rigid.inertia, float))):
            context.add(f"{path}.inertia", message, rigid.inertia)
    for key, whole in (("force", 1), ("torque", 1 if context.dim == 3 else 0)):
        value = numbers_of(getattr(rigid, key))
        if value.ndim > whole and context.ok(f"{path}.{key}", "duration", "frame_dt") and len(value) != scene.frames:
            context.add(f"{path}.{key}", f"must have one row a frame: {scene.frames}, got {len(value)}")
    if rigid.fixed and context.ok(path):
        for key in ("velocity", "angular_velocity"):
            if np.any(getattr(rigid, key)):
                context.add(f"{path}.{key}", "a fixed body has none", getattr(rigid, key))
        if scene.joints:
            context.add(f"{path}.fixed", "is for scenes without joints; tie the body to the world by a fixed joint")
    check_apart(context, path, rigid.no_contact, [*scene.rigid, *scene.bodies, *scene.springs, *scene.grains])


def _wrong_inertia(moments: np.ndarray) -> str:
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


def check_joint(scene: Scene, context: Context, path: str, joint: Joint) -> None:
    """The bodies it joins, and the entries its kind has."""
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


def check_trees(scene: Scene, context: Context) -> None:
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


def check_attachment(scene: Scene, context: Context, path: str, attachment: Attachment) -> None:
    """What is held, and on what."""
    to = attachment.to
    if to is not None and to not in scene.rigid and context.ok(f"{path}.to", f"rigid.{to}"):
        context.add(f"{path}.to", unknown("rigid body", to, scene.rigid), to)
    nothing = not (scene.bodies or scene.springs or scene.grains)
    if attachment.body is not None and nothing and context.ok(f"{path}.body", "bodies", "springs", "grains"):
        context.add(
            f"{path}.body", "there is no [bodies.NAME], [springs.NAME] or [grains.NAME] to hold", attachment.body
        )
    check_reference(scene, context, path, attachment.body, attachment.region, ("bodies", "springs", "grains"))
