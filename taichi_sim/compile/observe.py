"""Observables: what can be read from a state by path, with the derivative where there is one.

What of rigid bodies is felt in a step (accelerations, contact forces, torques) is that of the last one.

Paths: ``bodies.B.<quantity>``, ``bodies.B.regions.R.<quantity>``, likewise of ``springs`` and ``grains``;
``rigid.B.<quantity>``, ``rigid.B.markers.M.<quantity>``; ``joints.J.<quantity>``; ``sensors.S.value``; or
``<quantity>`` of everything together.
"""

import numpy as np

from taichi_sim.compile.model import Model
from taichi_sim.compile.quantity import JOINT, MARKER, POINTS, QUANTITIES, RIGID, WHOLE, Quantity
from taichi_sim.compile.sensors import refuse_contact_force, sensor_quantity
from taichi_sim.core.errors import unknown
from taichi_sim.scene.robots import plain

#: What can be observed of an entry of each table, and of its parts.
TABLES = {"bodies": QUANTITIES, "rigid": RIGID, "joints": JOINT, "springs": POINTS, "grains": POINTS}
REGIONS: dict[str, dict[str, Quantity]] = {
    "bodies": QUANTITIES, "rigid": MARKER, "joints": {}, "springs": POINTS, "grains": POINTS,
}  # fmt: skip
#: What the parts of an entry are called.
PARTS = {
    "bodies": "regions", "rigid": "markers", "joints": "parts", "springs": "regions", "grains": "regions",
}  # fmt: skip


def select(model: Model, path: str) -> tuple[Quantity, np.ndarray]:
    """The quantity and the points (in the order of the scene) a path names. Raises ``ValueError`` with the nearest
    name."""
    path = plain(path)
    parts = path.split(".")
    if len(parts) == 1:
        if path == "elastic_energy" and _springs(model):
            raise ValueError("'elastic_energy' is known of [bodies] only, not of springs and grains: name a body's")
        if path not in WHOLE:
            tables = tuple(f"{name}." for name in (*TABLES, "actuators", "sensors"))
            whole = [n for n in names(model) if not n.startswith(tables)]
            raise ValueError(f"{path!r} cannot be observed; {unknown('observable', path, whole)}")
        return WHOLE[path], model.massive
    table, parted = parts[0], PARTS.get(parts[0], "")
    if table == "sensors" and len(parts) == 3 and parts[2] == "value":
        if parts[1] not in model.sensors:
            raise ValueError(f"{path!r}: {unknown('sensor', parts[1], model.sensors)}")
        return sensor_quantity(model, parts[1])
    if not parted or len(parts) not in (3, 5) or (len(parts) == 5 and parts[2] != parted):
        raise ValueError(f"{path!r} cannot be observed; {unknown('observable', path, names(model))}")
    named = {piece.name: piece for piece in (*model.pieces.values(), *model.joints.values()) if piece.table == table}
    if parts[1] not in named:
        raise ValueError(f"{path!r}: {unknown('joint' if table == 'joints' else 'body', parts[1], named)}")
    piece = named[parts[1]]
    if len(parts) == 3:
        if table == "joints" and parts[2] == "force":
            if model.rigid is not None and model.rigid.plan.closures:
                raise ValueError(f"{path!r}: what joints pass on is not known beside closed loops")
            return JOINT["force"], np.array([list(model.joints).index(parts[1])])
        if table == "joints" and len(piece.points) != 1 and (parts[2] == "position" or not len(piece.points)):
            raise ValueError(f"{path!r}: only hinges and slides have one; observe the rotation of the body instead")
        if parts[2] == "contact_force":
            refuse_contact_force(model, parts[1], path)
        return _quantity(path, parts[2], TABLES[table]), piece.points
    if parts[3] not in piece.regions:
        raise ValueError(f"{path!r}: {unknown(parted[:-1], parts[3], piece.regions)}")
    return _quantity(path, parts[4], REGIONS[table]), piece.regions[parts[3]]


def _springs(model: Model) -> bool:
    """Whether there are springs or grains, whose stored energy is not known."""
    return any(piece.table in ("springs", "grains") for piece in model.pieces.values())


def _quantity(path: str, name: str, of: dict[str, Quantity]) -> Quantity:
    if name not in of:
        raise ValueError(f"{path!r} cannot be observed; {unknown('observable', name, of)}")
    return of[name]


def scalars(model: Model, path: str) -> list[str]:
    """What has a gradient near ``path``: the loss, the objectives, and numbers of the same body or region."""
    terms = ["loss", *(f"objectives.{term.name}" for term in model.judge.terms)] if model.judge.terms else []
    terms += [f"sensors.{n}.value" for n in model.sensors if sensor_quantity(model, n)[0].scalar]
    where, table = path.rpartition(".")[0], path.split(".")[0]
    near = where + "." if table in PARTS else ""
    of = WHOLE if not near else REGIONS[table] if len(path.split(".")) == 5 else TABLES[table]
    return terms + [near + name for name, q in of.items() if q.scalar and q.vjp]


def names(model: Model) -> list[str]:
    """All observable paths of a model: of its state, and those of the loss and the actuators."""
    found = [name for name in WHOLE if name != "elastic_energy" or not _springs(model)]
    if model.judge.terms:
        found += ["loss", *(f"objectives.{term.name}" for term in model.judge.terms)]
    found += [f"actuators.{a.name}.activation" for a in model.actuators.actuators]
    found += [f"sensors.{name}.value" for name in model.sensors]
    for piece in (*model.pieces.values(), *(j for j in model.joints.values() if len(j.points) == 1)):
        where = f"{piece.table}.{piece.name}"
        found += [f"{where}.{q}" for q in TABLES[piece.table]]
        found += [f"{where}.{PARTS[piece.table]}.{r}.{q}" for r in piece.regions for q in REGIONS[piece.table]]
    return found
