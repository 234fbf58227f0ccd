"""Who drives whom and who is judged: actuators, force fields and objectives of a scene, tied to particles and paths."""

import fnmatch
from typing import Any

import numpy as np

from taichi_sim.actuation.actuator import actuators as actuator_kinds
from taichi_sim.actuation.signal import signals as signal_kinds
from taichi_sim.compile.binding import Values
from taichi_sim.compile.drives import Actuation, Driven, Quantified
from taichi_sim.compile.family import Piece
from taichi_sim.compile.judge import Term
from taichi_sim.compile.quantity import Quantity as Observable
from taichi_sim.core.errors import unknown
from taichi_sim.objectives.objective import objectives as objective_kinds
from taichi_sim.scene.fields.field import fields as field_kinds
from taichi_sim.scene.paths import Quantity
from taichi_sim.scene.schema import Scene
from taichi_sim.solvers.mpm.arrays import MpmPlan


def actuation(
    scene: Scene, pieces: dict[str, Piece], particles: int, known: dict[str, Quantity]
) -> tuple[list[Actuation], np.ndarray, int]:
    """Actuators, group of every particle of a continuum (0: none) and number of groups."""
    members = np.zeros((len(scene.actuators), particles), bool)
    for a, actuator in enumerate(scene.actuators.values()):
        if actuator.body in scene.bodies and actuator_kinds.get(actuator.kind).drives == "body":
            members[a, selection(pieces[actuator.body], actuator.region)] = True
    group_of, count, groups = grouped(members)
    acts = []
    for a, (name, actuator) in enumerate(scene.actuators.items()):
        prefix = f"actuators.{name}"
        signal = Driven(
            signal_kinds.get(actuator.signal.kind), _quantified(f"{prefix}.signal", actuator.signal.parameters, known)
        )
        acts.append(
            Actuation(
                name,
                str(actuator.body or actuator.joint),
                actuator_kinds.get(actuator.kind),
                _quantified(prefix, actuator.parameters, known),
                signal,
                groups[a],
            )
        )
    return acts, group_of, count


def grouped(members: np.ndarray) -> tuple[np.ndarray, int, list[tuple[int, ...]]]:
    """Items driven by the same set of actuators, ``members`` (actuators, items), as groups: that of every item
    (0: none drives it), their number, and those each actuator drives."""
    if not members.size:
        return np.zeros(members.shape[1], np.int32), 1, [()] * len(members)
    combinations, group_of = np.unique(members.T, axis=0, return_inverse=True)
    used = [i for i, c in enumerate(combinations) if c.any()]
    renumber = np.zeros(len(combinations), int)
    renumber[used] = np.arange(1, len(used) + 1)
    each = [tuple(int(renumber[i]) for i in used if combinations[i, a]) for a in range(len(members))]
    return renumber[np.asarray(group_of).reshape(-1)].astype(np.int32), len(used) + 1, each


def field_gains(scene: Scene, known: dict[str, Quantity]) -> list[Driven]:
    """Signals of the force fields that have one."""
    return [
        Driven(signal_kinds.get(f.signal.kind), _quantified(f"fields.{name}.signal", f.signal.parameters, known))
        for name, f in scene.fields.items()
        if f.signal is not None
    ]


def field_accelerations(scene: Scene, plan: MpmPlan) -> np.ndarray:
    """(fields · nodes, dim) m/s², of all force fields at the nodes of one environment."""
    points = plan.node_positions()[plan.canonical_nodes()]
    found = [field_kinds.get(f.kind).acceleration(f.parameters, points) for f in scene.fields.values()]
    return np.concatenate(found) if found else np.zeros((1, plan.dim))


def terms(
    scene: Scene,
    pieces: dict[str, Piece],
    known: dict[str, Quantity],
    actuators: list[str],
    values: Values,
    begin: np.ndarray,
    sensors: dict[str, tuple[Observable, np.ndarray]],
) -> list[Term]:
    """The objectives, with the points, the actuators (of those named) and the sensors each looks at.

    ``values`` and ``begin`` (points, dim), positions, are those of the scene as built: choices that stay are made
    from them.
    """
    terms = []
    everything = np.concatenate([piece.points for piece in pieces.values()])
    for name, objective in scene.objectives.items():
        kind = objective_kinds.get(objective.kind)
        if objective.body is None:
            chosen = everything
        else:
            chosen = selection(pieces[objective.body], objective.region)
        wanted = str(objective.parameters.get("actuators", "*"))
        columns = np.array([i for i, a in enumerate(actuators) if fnmatch.fnmatchcase(a, wanted)], int)
        if wanted != "*" and not len(columns):
            raise ValueError(f"objectives.{name}.actuators: {unknown('actuator', wanted, actuators)}")
        if kind.name == "effort" and not len(columns):
            raise ValueError(f"objectives.{name}: measures effort, but the scene has no actuators")
        parameters = _quantified(f"objectives.{name}", objective.parameters, known)
        try:
            kept = kind.choose(kind.prepare(parameters.at(values, 0)), begin[chosen]) if kind.choose else None
        except ValueError as error:
            raise ValueError(f"objectives.{name}: {error}") from None
        running = objective.when == "running"
        wanted = kind.senses(objective.parameters) if kind.senses else ""
        read = {one: found for one, found in sensors.items() if fnmatch.fnmatchcase(one, wanted)}
        if wanted not in ("", "*") and not read:
            raise ValueError(f"objectives.{name}.sensor: {unknown('sensor', wanted, sensors)}")
        terms.append(Term(name, kind, parameters, chosen, columns, float(objective.weight), running, kept, read))
    return terms


def _quantified(prefix: str, parameters: dict[str, Any], known: dict[str, Quantity]) -> Quantified:
    names = tuple(name for name in parameters if f"{prefix}.{name}" in known)
    return Quantified(prefix, names, {k: v for k, v in parameters.items() if k not in names})


def selection(piece: Piece, region: str | None) -> np.ndarray:
    """Indices, over all points, of a body's or region's; ``*`` in its name stands for anything."""
    if region is None:
        return piece.points
    found = [points for name, points in piece.regions.items() if fnmatch.fnmatchcase(name, region)]
    if not found:
        raise ValueError(f"body {piece.name!r}: {unknown('region', region, piece.regions)}")
    return found[0] if len(found) == 1 else np.unique(np.concatenate(found))


def seam_notes(scene: Scene) -> list[str]:
    """On what knows nothing of the next period: only the grid of continua goes on there."""
    periodic = [a for a in "xyz"[: scene.dim] if scene.domain.wall(f"{a}_lower").kind == "periodic"]
    kinds = {"rigid bodies": scene.rigid, "springs": scene.springs, "grains": scene.grains}
    who = [name for name, tables in kinds.items() if tables]
    if not (periodic and who):
        return []
    return [
        f"{' and '.join(who)} touch nothing across the periodic sides along {' and '.join(periodic)}: what has gone on "
        "through one side passes through what stands at the other, obstacles too"
    ]
