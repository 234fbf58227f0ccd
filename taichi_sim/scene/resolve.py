"""A scene with nothing left out: what the layers above build from."""

import numpy as np

from taichi_sim.scene.complete import complete, complete_shape, full
from taichi_sim.scene.declare import entries
from taichi_sim.scene.kinds import kinds
from taichi_sim.scene.load import from_dict
from taichi_sim.scene.paths import signal_of
from taichi_sim.scene.presets import resolve_material
from taichi_sim.scene.schema import (
    Body,
    Grains,
    Joint,
    Material,
    Obstacle,
    Override,
    Profile,
    Rigid,
    Scene,
    Signal,
    Springs,
    Table,
    Wall,
    wall_names,
)


def resolve(scene: Scene) -> Scene:
    """A checked copy of ``scene``: defaults filled in, numbers as float64 arrays of their full shape.

    Walls are all named, materials have their law and every parameter, files are read. Profiles stay profiles, with
    arrays. Raises ``SceneError`` listing every mistake.
    """
    full_scene = from_dict(scene.to_dict(), scene.source)
    dim = full_scene.dim
    full_scene.name = scene.title
    if full_scene.gravity is None:
        full_scene.gravity = np.zeros(dim)
        full_scene.gravity[-1] = -9.81
    _arrays(full_scene, dim, "gravity")
    domain = full_scene.domain
    _arrays(domain, dim, "lower", "upper")
    if domain.spacing is not None or domain.cells is not None:
        domain.spacing, domain.cells = domain.step(), None
    domain.walls = {name: Wall(kind=(w := domain.wall(name)).kind, friction=w.friction) for name in wall_names(dim)}
    full_scene.materials = {name: _material(full_scene, name) for name in full_scene.materials}
    for body in full_scene.bodies.values():
        _body(body, dim)
    for rigid in full_scene.rigid.values():
        rigid.shape = complete_shape(rigid.shape, dim)
        _arrays(rigid, dim, *(key for key, entry in entries(Rigid).items() if entry.parameter.kind == "real"))
        for marker in rigid.markers.values():
            _arrays(marker, dim, "point")
    for joint in full_scene.joints.values():
        _arrays(joint, dim, *(key for key, entry in entries(Joint).items() if entry.parameter.kind == "real"))
        if joint.kind == "ball" and dim == 3:
            joint.position, joint.velocity = (np.zeros(3) + value for value in (joint.position, joint.velocity))
    for springs in full_scene.springs.values():
        springs.parameters = complete(kinds("network").get(springs.kind).parameters, springs.parameters, dim)
        springs.held = None if springs.held is None else complete_shape(springs.held, dim)
    for grains in full_scene.grains.values():
        grains.shape = complete_shape(grains.shape, dim)
    for table in (*full_scene.springs.values(), *full_scene.grains.values()):
        _cluster(table, dim)
    for obstacle in full_scene.obstacles.values():
        obstacle.shape = complete_shape(obstacle.shape, dim)
        _arrays(obstacle, dim, *(k for k in entries(Obstacle) if k in ("position", "rotation")))
    for field in full_scene.fields.values():
        field.parameters = complete(kinds("field").get(field.kind).parameters, field.parameters, dim)
        field.signal = _signal(signal_of(field))
    for actuator in full_scene.actuators.values():
        actuator.parameters = complete(kinds("actuator").get(actuator.kind).parameters, actuator.parameters, dim)
        actuator.signal = _signal(actuator.signal)
    for sensor in full_scene.sensors.values():
        _arrays(sensor, dim, "direction", "point")
    for objective in full_scene.objectives.values():
        kind = kinds("objective").get(objective.kind)
        objective.parameters = kind.prepare(objective.parameters, scene.folder or ".")
        objective.when = objective.when or kind.default_when
    return full_scene


def _arrays(table: Table, dim: int, *names: str) -> None:
    declared = entries(type(table))
    for name in names:
        value = getattr(table, name)
        if value is not None and not isinstance(value, Profile):
            setattr(table, name, full(value, declared[name].parameter.shape, dim))


def _material(scene: Scene, name: str) -> Material:
    found = resolve_material(scene, name)
    return Material(law=found.law, density=float(found.density), parameters=found.parameters)


def _body(body: Body, dim: int) -> None:
    body.shape = complete_shape(body.shape, dim)
    if body.deformation is None:
        body.deformation = np.eye(dim)
    if body.acceleration is None:
        body.acceleration = np.zeros(dim)
    _arrays(body, dim, "position", "rotation", "velocity", "angular_velocity", "deformation", "acceleration", "color")
    for profile in (body.velocity, body.deformation):
        if isinstance(profile, Profile):
            profile.points, profile.values = np.asarray(profile.points, float), np.asarray(profile.values, float)
    body.seeding = body.seeding or ("lattice" if body.shape["kind"] == "box" else "jittered")
    body.particles_per_cell = body.particles_per_cell or (4.0 if dim == 2 else 8.0)
    if isinstance(body.material, Override):
        own = body.material.parameters
        body.material.parameters = {key: np.asarray(v, float) if np.ndim(v) else v for key, v in own.items()}
    for region in body.regions.values():
        region.shape = complete_shape(region.shape, dim)


def _cluster(table: Springs | Grains, dim: int) -> None:
    numbers = (key for key, entry in entries(type(table)).items() if entry.parameter.kind == "real")
    _arrays(table, dim, *(key for key in numbers if key != "radius_spread"))
    for region in table.regions.values():
        region.shape = complete_shape(region.shape, dim)


def _signal(signal: Signal) -> Signal:
    return Signal(kind=signal.kind, parameters=kinds("signal").get(signal.kind).prepare(signal.parameters))
