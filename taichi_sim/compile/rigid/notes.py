"""What should be known of the rigid bodies of a scene as it stands."""

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.rigid.family import RigidFamily

#: Depth of rest that is worth a note, of the size of the body.
SINKS = 0.01


def sinking_notes(rigid: RigidFamily, values: Values) -> list[str]:
    """A sentence for every free body that is too heavy for its contact stiffness: it rests by its weight over the
    stiffness of the corners it stands on (two in 2-D, four in 3-D)."""
    dim, corners = rigid.plan.dim, 2 ** (rigid.plan.dim - 1)
    weight = rigid.matter.masses(values) * np.linalg.norm(values["gravity"], axis=-1)[:, None]
    jointed = {link.child for link in rigid.joints.tree}
    notes = []
    for b, body in enumerate(rigid.bodies):
        path = f"rigid.{body.name}"
        size = float(np.max(values[f"{path}.scale"])) * body.volume ** (1 / dim)
        load, stiffness = float(weight[:, b].max()), float(np.min(values[f"{path}.contact_stiffness"]))
        depth = load / (corners * stiffness)
        if depth > SINKS * size and b not in jointed and not body.table.fixed:
            enough = load / (corners * 1e-3 * size)
            notes.append(
                f"{path} weighs {load:.3g} N: on contacts of {stiffness:.3g} N/m it sinks about {depth:.2g} m into "
                f"what it stands on; a contact_stiffness of {enough:.2g} N/m holds it to a thousandth of its size"
            )
    return notes


def limit_notes(rigid: RigidFamily, values: Values) -> list[str]:
    """A sentence for every joint that starts outside its limits: they push it back, as hard as they are."""
    notes = []
    for link in rigid.joints.tree:
        lower, upper = values.get(f"{link.path}.lower"), values.get(f"{link.path}.upper")
        at = values.get(f"{link.path}.position")
        if at is None or (lower is None and upper is None):
            continue
        least = -np.inf if lower is None else lower
        most = np.inf if upper is None else upper
        beyond = np.maximum(least - at.reshape(len(at), -1)[:, 0], at.reshape(len(at), -1)[:, 0] - most)
        e = int(np.argmax(beyond))
        if beyond[e] > 0:
            low, high = (float(np.broadcast_to(side, len(at))[e]) for side in (least, most))
            notes.append(
                f"{link.path} starts at {float(at[e].reshape(-1)[0]):.4g}, outside its limits {low:.4g} … {high:.4g}: "
                f"they push it back; give a position between them"
            )
    return notes
