"""Paths: the names of everything in a scene that has a gradient, and of what an optimiser may change."""

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taichi_sim.core.errors import nearest
from taichi_sim.core.registry import Parameter
from taichi_sim.scene.complete import complete, full
from taichi_sim.scene.context import Context
from taichi_sim.scene.declare import entries, shape_of
from taichi_sim.scene.kinds import kinds
from taichi_sim.scene.presets import resolve_material
from taichi_sim.scene.reader import read_scene
from taichi_sim.scene.robots import plain
from taichi_sim.scene.schema import (
    Body,
    Design,
    Field,
    Grains,
    Joint,
    Material,
    Obstacle,
    Override,
    Profile,
    Rigid,
    Scene,
    Signal,
    SolverSettings,
    Springs,
    Wall,
    wall_names,
)

#: Least distance from an open bound: still a normal number in single precision.
SMALLEST = 1e-30
#: Stands in ``Quantity.shape`` for the number of particles of the body, known once it is seeded.
PARTICLES = "particles"


@dataclass(frozen=True)
class Quantity:
    """A real-valued quantity of a scene with a gradient.

    ``value`` is a float64 array of ``shape``, or None where only the build knows it (``dt``, profiles); the declared
    range and unit are those of ``parameter``.
    """

    path: str
    parameter: Parameter
    shape: tuple[Any, ...]
    value: np.ndarray | None

    @property
    def unit(self) -> str:
        """SI unit."""
        return self.parameter.unit

    @property
    def doc(self) -> str:
        """What it is."""
        return self.parameter.doc

    @property
    def lower(self) -> float | None:
        """Lowest allowed value (open where the declaration says so)."""
        return self.parameter.low

    @property
    def upper(self) -> float | None:
        """Highest allowed value."""
        return self.parameter.high

    @property
    def scale(self) -> str:
        """``linear`` or ``log``: the scale it is naturally varied on."""
        return self.parameter.scale


@dataclass(frozen=True)
class DesignVariable:
    """One quantity an optimiser may change: ``lower``/``upper`` are arrays of its shape, infinite where unbounded."""

    quantity: Quantity
    lower: np.ndarray
    upper: np.ndarray
    scale: str
    spread: float
    step: float | None

    @property
    def path(self) -> str:
        """Its path, without wildcards."""
        return self.quantity.path


def quantities(scene: Scene) -> dict[str, Quantity]:
    """Every differentiable quantity of ``scene`` by path, in the order of the scene.

    Entries that are not valid (an unknown law, say) are left out rather than refused: :meth:`Scene.check` does that.
    """
    return known_quantities(read_scene(raw := scene.to_dict(), Context(raw, scene.folder)))


def known_quantities(scene: Scene) -> dict[str, Quantity]:
    """:func:`quantities` of a scene as it comes from the reader, all structs and plain values."""
    found: dict[str, Quantity] = {}
    for path, parameter, value in _walk(scene):
        if value is None:
            shape = tuple(PARTICLES if n == "any" else n for n in shape_of(parameter.shape, scene.dim))
            found[path] = Quantity(path, parameter, shape, None)
            continue
        try:
            array = full(value, parameter.shape, scene.dim)
        except (TypeError, ValueError):
            continue
        if array.size and np.isfinite(array).all():
            found[path] = Quantity(path, parameter, array.shape, array)
    return found


_Found = tuple[str, Parameter, Any]


def _walk(scene: Scene) -> Iterator[_Found]:
    top = entries(Scene)
    default = np.zeros(scene.dim or 2)
    default[-1] = -9.81
    yield "gravity", top["gravity"].parameter, default if scene.gravity is None else scene.gravity
    yield "damping", top["damping"].parameter, scene.damping
    largest = entries(SolverSettings)["dt"].parameter
    yield "dt", replace(largest, doc="length of every substep; their number is the build's"), None
    for name in wall_names(scene.dim or 2):
        wall = scene.domain.wall(name) if scene.domain is not None else Wall()
        if wall.kind == "separate":
            yield f"domain.walls.{name}.friction", entries(Wall)["friction"].parameter, wall.friction
    for name in scene.materials:
        yield from _material(scene, f"materials.{name}", name, None)
    for name, body in scene.bodies.items():
        yield from _body(scene, f"bodies.{name}", body)
    for name, rigid in scene.rigid.items():
        yield from _declared(f"rigid.{name}", rigid)
    for name, joint in scene.joints.items():
        yield from _joint(f"joints.{name}", joint, scene.dim)
    for name, springs in scene.springs.items():
        yield from _springs(f"springs.{name}", springs)
    for name, grains in scene.grains.items():
        yield from _declared(f"grains.{name}", grains)
    for name, obstacle in scene.obstacles.items():
        if obstacle.kind == "separate":
            yield f"obstacles.{name}.friction", entries(Obstacle)["friction"].parameter, obstacle.friction
        yield f"obstacles.{name}.position", entries(Obstacle)["position"].parameter, obstacle.position
    for name, field in scene.fields.items():
        yield from _signal(f"fields.{name}.signal", signal_of(field))
    for name, actuator in scene.actuators.items():
        yield from _kind(f"actuators.{name}", "actuator", actuator.kind, actuator.parameters, scene.dim)
        yield from _signal(f"actuators.{name}.signal", actuator.signal)
    for name, objective in scene.objectives.items():
        yield from _kind(f"objectives.{name}", "objective", objective.kind, objective.parameters, scene.dim)


def _material(
    scene: Scene, path: str, material: "str | Override | None", only: frozenset[str] | None
) -> Iterator[_Found]:
    if material is None or (isinstance(material, Override) and material.base is None):
        return
    try:
        found = resolve_material(scene, material)
        law = kinds("law").get(found.law)
    except (ValueError, TypeError):
        return
    if found.density is not None and (only is None or "density" in only):
        yield f"{path}.density", entries(Material)["density"].parameter, found.density
    for p in law.parameters:
        if p.differentiable and p.kind == "real" and p.name in found.parameters and (only is None or p.name in only):
            yield f"{path}.{p.name}", p, found.parameters[p.name]


def _body(scene: Scene, path: str, body: Body) -> Iterator[_Found]:
    declared = entries(Body)
    if isinstance(body.material, Override):
        own = frozenset(body.material.parameters)
        own |= {"density"} if body.material.density is not None else frozenset()
        yield from _material(scene, f"{path}.material", body.material, own)
    for key in ("position", "rotation", "velocity", "angular_velocity", "deformation", "acceleration"):
        value, parameter = getattr(body, key), declared[key].parameter
        if isinstance(value, Profile):
            per_particle = Parameter(key, parameter.unit, None, parameter.doc, shape=("any", *parameter.shape))
            yield f"{path}.{key}", per_particle, None
        elif value is None and key == "deformation":
            yield f"{path}.{key}", parameter, np.eye(scene.dim or 2)
        else:
            yield f"{path}.{key}", parameter, 0.0 if value is None else value


#: Numbers of springs that only count where points touch.
_TOUCHING = ("radius", "friction", "contact_stiffness", "contact_damping")


def _springs(path: str, springs: Springs) -> Iterator[_Found]:
    touch = springs.radius is not None
    return (found for found in _declared(path, springs) if touch or found[1].name not in _TOUCHING)


def _declared(path: str, table: Rigid | Springs | Grains) -> Iterator[_Found]:
    """Every number of a table that has a gradient and was given, or has a default."""
    for key, entry in entries(type(table)).items():
        value = getattr(table, key)
        if entry.parameter.kind == "real" and entry.parameter.differentiable and value is not None:
            yield f"{path}.{key}", entry.parameter, value


def _joint(path: str, joint: Joint, dim: int) -> Iterator[_Found]:
    for key in joint_entries(joint, dim):
        value = getattr(joint, key)
        if value is not None:
            parameter = entries(Joint)[key].parameter
            if joint.kind == "ball" and key in ("position", "velocity") and dim == 3:
                parameter = replace(parameter, shape=(3,))
            yield f"{path}.{key}", parameter, value


def joint_entries(joint: Joint, dim: int) -> tuple[str, ...]:
    """Numbers that count for a joint of this kind."""
    if joint.loop:
        return ("anchor", "axis", "loop_stiffness", "loop_turning")
    along = ("position", "velocity", "armature", "damping", "friction", "stiction_speed")
    spring = ("lower", "upper", "limit_stiffness", "limit_damping", "stiffness", "rest")
    if joint.kind == "ball" and dim == 3:
        return ("anchor", *along)
    turning = ("axis",) if joint.kind == "prismatic" or (joint.kind == "hinge" and dim == 3) else ()
    return {"fixed": ("anchor",), "free": ()}.get(joint.kind, ("anchor", *turning, *along, *spring))


def _kind(path: str, what: str, name: str | None, given: dict[str, Any], dim: int) -> Iterator[_Found]:
    try:
        parameters = kinds(what).get(str(name)).parameters
        values = complete(parameters, given, dim)
    except (ValueError, TypeError):
        return
    for p in parameters:
        if p.kind == "real" and p.differentiable and p.name in values:
            yield f"{path}.{p.name}", p, values[p.name]


def _signal(path: str, signal: Signal | None) -> Iterator[_Found]:
    try:
        kind = kinds("signal").get(str(signal.kind if signal is not None else None))
        values = kind.prepare(signal.parameters if signal is not None else {})
    except (ValueError, TypeError):
        return
    for p in kind.parameters:
        if p.kind == "real" and p.differentiable and p.name in values:
            yield f"{path}.{p.name}", p, values[p.name]


def signal_of(field: Field) -> Signal:
    """The signal of a field: its own, or constant 1."""
    return field.signal if field.signal is not None else Signal(kind="constant", value=1.0)


def match(names: "list[str] | dict[str, Any]", pattern: str) -> list[str]:
    """Names that ``pattern`` stands for; ``*`` stands for any part of a name between two dots.

    Raises ``ValueError`` with the nearest name if there is none.
    """
    parts = plain(pattern).split(".")
    found = [
        name
        for name in names
        if len(own := name.split(".")) == len(parts) and all(map(fnmatch.fnmatchcase, own, parts))
    ]
    if found:
        return found
    close = nearest(pattern, names)
    hint = f"did you mean {close!r}?" if close else f"allowed: {', '.join(names)}"
    raise ValueError(f"there is no differentiable quantity {pattern!r}; {hint}")


def matching(scene: Scene, pattern: str) -> list[str]:
    """Paths of ``scene`` that ``pattern`` stands for. Raises ``ValueError`` with the nearest path if none."""
    return match(list(quantities(scene)), pattern)


def design_variables(scene: Scene) -> list[DesignVariable]:
    """The ``[[design]]`` entries of a checked scene, wildcards written out, bounds and scale filled in.

    Bounds that are not given are those of the declaration (an open end moves to the next number inside).
    """
    known = quantities(scene)
    found = []
    for entry in scene.design:
        for path in match(known, entry.path):
            quantity = known[path]
            low, high = _bounds(entry, quantity)
            shape = quantity.shape if PARTICLES not in quantity.shape else ()
            lower, upper = np.broadcast_to(low, shape).copy(), np.broadcast_to(high, shape).copy()
            found.append(DesignVariable(quantity, lower, upper, _scale(entry, quantity), entry.spread, entry.step))
    return found


def _bounds(entry: Design, quantity: Quantity) -> tuple[np.ndarray, np.ndarray]:
    p = quantity.parameter
    low = -np.inf if p.low is None else max(np.nextafter(p.low, np.inf), p.low + SMALLEST) if p.low_open else p.low
    high = np.inf if p.high is None else np.nextafter(p.high, -np.inf) if p.high_open else p.high
    return np.asarray(low if entry.lower is None else entry.lower), np.asarray(
        high if entry.upper is None else entry.upper
    )


def _scale(entry: Design, quantity: Quantity) -> str:
    if entry.scale is not None:
        return entry.scale
    positive = quantity.value is not None and bool((quantity.value > 0).all())
    return quantity.scale if positive and (entry.lower is None or np.min(entry.lower) > 0) else "linear"


def check_design(scene: Scene, context: Context, entry: Design, where: str) -> None:
    """Report what is wrong with one ``[[design]]`` entry: its path, bounds, scale and start."""
    head = entry.path.split(".")[0]
    known = known_quantities(scene)
    try:
        paths = match(known, entry.path)
    except ValueError as error:
        # an entry that was refused cannot be named either, so only a sound scene is asked about its paths
        if context.ok(*([head, "materials", "dim"] if "*" not in head else ["dim"])):
            context.add(f"{where}.path", str(error), entry.path)
        return
    if not context.ok(where):
        return
    if "dt" in paths:
        context.add(
            f"{where}.path",
            "dt cannot be a design variable: it decides how long the rollout lasts and how exactly, not what is "
            "simulated; choose it with solver.dt",
            entry.path,
        )
        return
    bounds = {"lower": entry.lower, "upper": entry.upper}
    for path in paths:
        if not context.ok(path.rpartition(".")[0] or path):
            continue
        quantity = known[path]
        sizes = [np.shape(b) for b in bounds.values() if b is not None]
        if any(size != () and size != quantity.shape for size in sizes):
            context.add(f"{where}", f"bounds of {path} must be one number or an array of shape {quantity.shape}")
            return
        low, high = _bounds(entry, quantity)
        if not (low < high).all():
            context.add(f"{where}.lower", f"must be below upper = {np.max(high):g}", entry.lower)
            return
        for side, bound in bounds.items():
            if bound is None:
                continue
            for number in np.ravel(bound):
                if message := quantity.parameter.check(float(number)):
                    context.add(f"{where}.{side}", f"{path} {message}", bound)
                    return
        value = quantity.value
        if value is not None and not ((value >= low) & (value <= high)).all():
            context.add(
                where, f"{path} = {value.tolist()} must lie between lower = {low.tolist()} and upper = {high.tolist()}"
            )
            return
        if entry.scale == "log":
            if entry.lower is not None and not (low > 0).all():
                context.add(f"{where}.lower", "must be > 0 on a log scale", entry.lower)
                return
            if value is not None and not (value > 0).all():
                context.add(where, f"{path} = {value.tolist()} must be > 0 on a log scale")
                return
