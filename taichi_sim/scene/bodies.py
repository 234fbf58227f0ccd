"""Bodies of a scene as particles: seeded, posed, moving, with their regions."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.core.errors import Problem, SceneError
from taichi_sim.scene.mesh import likely_scale
from taichi_sim.scene.pose import rotation_matrix, spin
from taichi_sim.scene.profiles import interpolate, is_profile
from taichi_sim.scene.seeding import seed as seed_shape
from taichi_sim.scene.shapes.shape import Shape, Surface, numbers, resolve_shape
from taichi_sim.scene.surface import plural, point_text


@dataclass
class BodyParticles:
    """The particles of one body at time 0, in body order; lengths in m, velocities in m/s.

    ``points_rest`` (n, dim) are the places in the shape before the pose, ``position`` and ``velocity`` (n, dim) those
    in the scene, ``deformation`` (n, dim, dim) the gradient of the map from rest: the pose's rotation times what the
    scene gives (so directions in the body, of muscles for example, are those of the shape before the pose).
    ``particle_volume`` is the shape's volume / n: the space a particle takes at time 0. ``regions`` holds indices
    into the body. ``center`` (dim,) is the pivot, the centre of volume before the pose; ``shape`` the geometry
    itself; ``notes`` what the user should know.
    """

    name: str
    material: str
    points_rest: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    deformation: np.ndarray
    particle_volume: float
    spacing: float
    regions: dict[str, np.ndarray]
    center: np.ndarray
    shape: Shape
    rotation: np.ndarray
    angular_velocity: np.ndarray
    translation: np.ndarray
    color: tuple[float, ...] | None = None
    notes: list[str] = field(default_factory=list)
    #: The scene's own velocity and deformation: an array or a profile.
    given_velocity: Any = None
    given_deformation: Any = None

    @property
    def count(self) -> int:
        """Number of particles."""
        return len(self.position)

    @property
    def rest_volume(self) -> np.ndarray:
        """Volume (n,) of the particles without deformation, m³: what density multiplies if the shape is understood
        as deformed already."""
        return self.particle_volume / np.linalg.det(self.deformation)

    def surface(self) -> Surface:
        """Outline of the body at time 0, for drawing."""
        drawn = self.shape.surface()
        turn = rotation_matrix(self.rotation, len(self.center))

        def move(points: np.ndarray) -> np.ndarray:
            return (points - self.center) @ turn.T + self.center + self.translation

        return Surface(move(drawn.vertices), drawn.faces, tuple(move(loop) for loop in drawn.loops))


def entry(table: Any, name: str, default: Any = None) -> Any:
    """An entry of a scene table, whether a struct or a plain dict; ``default`` where absent or ``None``."""
    value = table.get(name) if isinstance(table, Mapping) else getattr(table, name, None)
    return default if value is None else value


def _periodic(domain: Any, dim: int) -> np.ndarray:
    """(dim,) whether each axis of a domain (a struct or a plain dict) is periodic."""
    walls = entry(domain, "walls", {})
    given = [walls.get(f"{axis}_lower", walls.get("default", "")) for axis in "xyz"[:dim]]
    return np.array([(wall if isinstance(wall, str) else entry(wall, "kind")) == "periodic" for wall in given])


def build_bodies(scene: Any, seed: int = 0, folder: Path | None = None) -> list[BodyParticles]:
    """Particles of every body of ``scene`` (a ``Scene`` or the same as nested dicts), in the order declared.

    Every body draws from its own random numbers, made of ``seed`` and its name. ``folder`` is where relative file
    names start (default: where the scene was loaded from, else the working folder).

    Raises ``SceneError`` listing every mistake: shapes that cannot be filled, particles outside the domain, regions
    without particles, arrays that do not fit.
    """
    dim = int(entry(scene, "dim"))
    source = entry(scene, "source")
    folder = folder or (Path(source).parent if source else None)
    problems: list[Problem] = []
    built = []
    for name, body in entry(scene, "bodies", {}).items():
        try:
            built.append(_build(scene, name, body, dim, seed, folder))
        except SceneError as error:
            problems.extend(error.problems)
        except ValueError as error:
            problems.append(Problem(f"bodies.{name}", str(error)))
    if problems:
        raise SceneError(problems, str(source) if source else None)
    lower, upper, _ = _domain(scene, dim)
    _note_overlaps(built, np.where(_periodic(entry(scene, "domain"), dim), upper - lower, np.inf))
    return built


def _domain(scene: Any, dim: int) -> tuple[np.ndarray, np.ndarray, float]:
    domain = entry(scene, "domain")
    lower = np.broadcast_to(np.asarray(entry(domain, "lower", 0.0), dtype=float), (dim,))
    upper = np.broadcast_to(np.asarray(entry(domain, "upper"), dtype=float), (dim,))
    spacing = entry(domain, "spacing")
    spacing = float(spacing) if spacing is not None else float((upper - lower)[0] / entry(domain, "cells", 1))
    return lower, upper, spacing


def _build(scene: Any, name: str, body: Any, dim: int, seed: int, folder: Path | None) -> BodyParticles:
    path = f"bodies.{name}"
    lower, upper, dx = _domain(scene, dim)
    shape = resolve_shape(entry(body, "shape"), dim, f"{path}.shape", folder)
    if not shape.bounded:
        raise SceneError([Problem(f"{path}.shape", f"a {shape.kind} has no volume; a body needs one")])
    extent = np.subtract(*reversed(shape.bounds()))
    if np.any(extent > (upper - lower) * (1 + 1e-9)):
        raise SceneError([Problem(f"{path}.shape", _too_large(shape, extent, upper - lower))])
    per_cell = float(entry(body, "particles_per_cell", 4.0 if dim == 2 else 8.0))
    spacing = dx / per_cell ** (1 / dim)
    rng = np.random.default_rng([int(seed), zlib.crc32(name.encode())])
    try:
        seeded = seed_shape(shape, dim, spacing, entry(body, "seeding"), rng)
    except ValueError as error:
        tiny = shape.kind == "mesh" and extent.max() < 3 * spacing
        hint = f"; is scale = {getattr(shape, 'scale', 1.0):g} right?" if tiny else ""
        raise SceneError([Problem(f"{path}.shape", f"{error}{hint}")]) from error
    rest, count = seeded.points, len(seeded.points)

    def given(key: str, shapes: tuple[tuple[int, ...], ...], default: Any) -> np.ndarray:
        value = entry(body, key, default)
        if np.ndim(value) == 0 and not isinstance(value, (str, bool)) and shapes[0] in ((dim,), (3,)) and value == 0:
            return np.zeros(shapes[0])
        message = ""
        for wanted in shapes:
            array, message = numbers(value, wanted)
            if array is not None:
                return array
        if len(shapes) > 1:
            message = f"must have shape {' or '.join(map(str, shapes))} (this body has {count} particles)"
        raise SceneError([Problem(f"{path}.{key}", message, value, True)])

    turn_shape = () if dim == 2 else (3,)
    rotation, rate = given("rotation", (turn_shape,), 0.0), given("angular_velocity", (turn_shape,), 0.0)
    translation = given("position", ((dim,),), 0.0)
    given_velocity = entry(body, "velocity", 0.0)
    if callable(given_velocity):
        given_velocity = np.asarray(given_velocity(rest), dtype=float)
        body_velocity = numbers(given_velocity, (count, dim))[0]
        if body_velocity is None:
            raise SceneError([Problem(f"{path}.velocity", f"the function must return shape ({count}, {dim})")])
        given_velocity = body_velocity
    elif not is_profile(given_velocity):
        given_velocity = given("velocity", ((dim,), (count, dim)), 0.0)
    given_deformation = entry(body, "deformation", np.eye(dim))
    if np.ndim(given_deformation) == 0 and not is_profile(given_deformation) and given_deformation == 0:
        given_deformation = np.eye(dim)
    if not is_profile(given_deformation):
        given_deformation = given("deformation", ((dim, dim), (count, dim, dim)), np.eye(dim))
    stretch = _deformation(given_deformation, rest)
    if np.any(np.linalg.det(stretch) <= 0):
        raise SceneError([Problem(f"{path}.deformation", "must have a positive determinant everywhere")])
    position, velocity, deformation = apply_pose(
        rest, seeded.centre, translation, rotation, given_velocity, rate, given_deformation
    )
    outside = np.any(((position < lower) | (position > upper)) & ~_periodic(entry(scene, "domain"), dim), axis=1)
    if outside.any():
        raise SceneError(
            [
                Problem(
                    path,
                    f"{plural(int(outside.sum()), 'particle')} of {count} outside the domain: the body reaches from "
                    f"{point_text(position.min(axis=0))} to {point_text(position.max(axis=0))}, the domain from "
                    f"{point_text(lower)} to {point_text(upper)}; move it with position or enlarge the domain",
                )
            ]
        )
    material, color = entry(body, "material", ""), entry(body, "color")
    return BodyParticles(
        name=name,
        material=material if isinstance(material, str) else str(entry(material, "base", "")),
        points_rest=rest,
        position=position,
        velocity=velocity,
        deformation=deformation,
        particle_volume=seeded.particle_volume,
        spacing=spacing,
        regions=_regions(body, path, rest, dim, folder),
        center=seeded.centre,
        shape=shape,
        rotation=rotation,
        angular_velocity=rate,
        translation=translation,
        color=None if color is None else tuple(float(c) for c in color),
        notes=[f"bodies.{name}: {note}" for note in seeded.notes],
        given_velocity=given_velocity,
        given_deformation=given_deformation,
    )


def _too_large(shape: Shape, extent: np.ndarray, room: np.ndarray) -> str:
    size = " x ".join(f"{e:.4g}" for e in extent)
    space = " x ".join(f"{r:.4g}" for r in room)
    message = f"the shape ({size} m) is larger than the domain ({space} m)"
    if shape.kind != "mesh":
        return f"{message}; make it smaller or enlarge the domain"
    scale, file, unit = (getattr(shape, key) for key in ("scale", "file", "unit"))
    advice = likely_scale(extent / scale, room, unit)
    return f"{file}: {message} at scale = {scale:g}; a mesh file in another unit? {advice}"


def _regions(body: Any, path: str, rest: np.ndarray, dim: int, folder: Path | None) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    problems: list[Problem] = []
    for name, region in entry(body, "regions", {}).items():
        where = f"{path}.regions.{name}"
        try:
            shape = resolve_shape(entry(region, "shape", region), dim, f"{where}.shape", folder)
        except SceneError as error:
            problems += error.problems
            continue
        found[name] = np.flatnonzero(shape.contains(rest))
        if len(found[name]) == 0:
            low, high = point_text(rest.min(axis=0)), point_text(rest.max(axis=0))
            problems.append(
                Problem(where, f"holds no particle; the body's particles lie from {low} to {high} before its pose")
            )
    if problems:
        raise SceneError(problems)
    return found


def _velocity(given: Any, rest: np.ndarray) -> np.ndarray:
    values = interpolate(given, rest) if is_profile(given) else np.asarray(given, dtype=float)
    return np.broadcast_to(values, rest.shape)


def _deformation(given: Any, rest: np.ndarray) -> np.ndarray:
    dim = rest.shape[1]
    if is_profile(given):
        return interpolate(given, rest)[:, :, None] * np.eye(dim)
    return np.broadcast_to(np.asarray(given, dtype=float), (len(rest), dim, dim))


def apply_pose(
    rest: np.ndarray,
    center: np.ndarray,
    position: np.ndarray,
    rotation: Any,
    velocity: Any,
    angular_velocity: Any,
    deformation: Any,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions (n, dim), velocities (n, dim) and deformation gradients (n, dim, dim) of the particles ``rest``.

    x = c + p + R (X − c), v = v₀(X) + ω × (x − c − p), F = R F₀(X), with c the centre, p ``position``, R the matrix
    of ``rotation`` (angle, or rotation vector). ``velocity`` is (dim,), (n, dim) or a profile, ``deformation``
    (dim, dim), (n, dim, dim) or a profile of stretches.
    """
    turn = rotation_matrix(rotation, rest.shape[1])
    arm = (rest - center) @ turn.T
    x = center + position + arm
    v = _velocity(velocity, rest) + spin(angular_velocity, arm)
    return x, v, np.ascontiguousarray(turn @ _deformation(deformation, rest))


def _note_overlaps(bodies: list[BodyParticles], period: np.ndarray) -> None:
    """Note on pairs of bodies whose particles start inside each other, deeper than half a particle spacing; ``period``
    (dim,) m, infinite along axes that are not periodic."""
    for number, first in enumerate(bodies):
        for second in bodies[:number]:
            count = max(_inside(first, second, period), _inside(second, first, period))
            if count:
                first.notes.append(
                    f"bodies.{second.name} and bodies.{first.name} overlap at time 0 "
                    f"({plural(count, 'particle')} of one inside the other)"
                )


def _inside(body: BodyParticles, other: BodyParticles, period: np.ndarray) -> int:
    """How many particles of ``body``, or their nearest periodic images, lie inside ``other``'s shape."""
    low, high = other.position.min(axis=0) - other.spacing, other.position.max(axis=0) + other.spacing
    whole = np.rint((body.position - 0.5 * (low + high)) / period)  # 0 where the period is infinite
    near = body.position - whole * np.where(np.isfinite(period), period, 0.0)
    near = near[np.all((near >= low) & (near <= high), axis=1)]
    if len(near) == 0:
        return 0
    turn = rotation_matrix(other.rotation, near.shape[1])
    back = (near - other.center - other.translation) @ turn + other.center
    back = back[other.shape.contains(back)]
    if len(back) == 0:
        return 0
    return int(np.count_nonzero(other.shape.signed_distance(back) < -0.5 * min(body.spacing, other.spacing)))
