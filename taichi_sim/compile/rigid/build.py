"""The rigid bodies of a scene, compiled."""

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.drives import Actuators
from taichi_sim.compile.rigid.collider import collider
from taichi_sim.compile.rigid.family import RigidFamily
from taichi_sim.compile.rigid.joints import Joints, links, numbered
from taichi_sim.compile.rigid.matter import RigidMatter
from taichi_sim.compile.rigid.motors import Motors
from taichi_sim.compile.rigid.rays import Ray, Rays
from taichi_sim.compile.rigid.shapes import Shapes, Wall, touchables
from taichi_sim.compile.rigid.start import RigidLoads, RigidStart
from taichi_sim.compile.rigid.surfaces import Surfaces
from taichi_sim.scene.paths import Quantity
from taichi_sim.scene.pieces import moved, pieces
from taichi_sim.scene.pose import rotation_matrix
from taichi_sim.scene.rigid import RigidGeometry
from taichi_sim.scene.schema import Scene, wall_names
from taichi_sim.scene.shapes.plane import Plane
from taichi_sim.scene.shapes.shape import resolve_shape
from taichi_sim.solvers.rigid import colliders
from taichi_sim.solvers.rigid.arrays import EventPlan, RigidPlan
from taichi_sim.solvers.rigid.topology import topology

#: Step of a scene without continua, s, unless ``solver.dt`` says otherwise: contact is implicit, so that accuracy and
#: not stability chooses it.
STEP = 1e-3


def rigid_family(
    scene: Scene,
    bodies: list[RigidGeometry],
    known: dict[str, Quantity],
    values: Values,
    bounds: dict[str, tuple[np.ndarray, np.ndarray]],
    actuators: Actuators,
    first: int,
    envs: int,
) -> RigidFamily:
    """The family of a resolved scene's rigid bodies; its points begin at ``first``.

    Raises ``SceneError`` or ``ValueError`` for mistakes in the scene.
    """
    dim = scene.dim
    walls = _walls(scene, known)
    names = [body.name for body in bodies]
    tree, loops = links(scene.joints, names, dim)
    joined = {frozenset((link.parent, link.child)) for link in (*tree, *loops)}
    found = touchables(bodies, walls, joined)
    joints = tuple((link.kind, link.parent, link.child) for link in tree)
    hung = topology(dim, len(bodies), joints, [link.path for link in tree])
    tree = numbered(tree, hung)
    plan = RigidPlan(
        dim,
        envs,
        len(bodies),
        found.layout.point_body,
        found.layout.plane_body,
        found.layout.lines,
        found.layout.rows,
        found.layout.grids,
        found.layout.samples,
        found.layout.pairing,
        tuple(int(body.table.fixed) for body in bodies),
        max(1, len(found.pairs)),
        found.layout.capacity,
        _events(names, bool(tree or loops), values, bounds),
        joints,
        tuple((link.kind, link.child, link.parent) for link in loops),
        contact_gradient=scene.solver.contact_gradient,
    )
    if plan.contact_gradient == "event" and plan.events is None:
        raise ValueError(
            "solver.contact_gradient = 'event': no body rebounds (restitution is 0 everywhere), so contact has no "
            "instant of impact; use 'exact'"
        )
    owner, arm = [], []
    for b, body in enumerate(bodies):
        owner += [b] * (1 + len(body.table.markers))
        arm += [np.zeros(dim), *(np.asarray(m.point, float) - body.pivot for m in body.table.markers.values())]
    shapes = Shapes(bodies, walls, found, envs)
    start, matter = RigidStart(bodies, shapes, envs), RigidMatter(bodies, envs)
    hinges = Joints(tree, loops, start, hung, envs)
    motors = Motors(actuators, tree, hung.joint_freedoms)
    bindings = [
        RigidLoads(names, scene.frames, envs), matter, shapes, start, Surfaces(names, found.pairs, walls, envs),
        hinges, motors,
    ]  # fmt: skip
    lower, upper = np.asarray(scene.domain.lower, float), np.asarray(scene.domain.upper, float)
    free = [scene.domain.wall(f"{a}_lower").kind == "periodic" for a in "xyz"[:dim]]
    first_points = np.flatnonzero(np.diff(owner, prepend=-1))
    return RigidFamily(
        points=slice(first, first + len(owner)),
        bodies=bodies,
        plan=plan,
        bindings=bindings,
        start=start,
        matter=matter,
        shapes=shapes,
        joints=hinges,
        rays=Rays(_rays(scene, bodies, first_points), shapes, first_points),
        owner=np.array(owner),
        arm=np.stack(arm),
        lower=np.where(free, -np.inf, lower),
        upper=np.where(free, np.inf, upper),
    )


def _rays(scene: Scene, bodies: list[RigidGeometry], centres: np.ndarray) -> list[Ray]:
    """Sensors that look along a ray; ``centres`` are the points of the bodies, followed by those of their markers."""
    number = {body.name: b for b, body in enumerate(bodies)}
    out = []
    for name, sensor in scene.sensors.items():
        if sensor.kind == "distance" and sensor.direction is not None:
            b = number[str(sensor.body)]
            markers = [None, *bodies[b].table.markers]
            direction = np.asarray(sensor.direction, float)
            point = int(centres[b]) + markers.index(sensor.marker)
            out.append(Ray(name, point, b, direction / np.linalg.norm(direction), float(sensor.range)))
    return out


def _events(
    names: list[str], jointed: bool, values: Values, bounds: dict[str, tuple[np.ndarray, np.ndarray]]
) -> EventPlan | None:
    """How impacts split a step, if any body may rebound. Raises ``ValueError`` where there are joints."""
    for name in names:
        path = f"rigid.{name}.restitution"
        if values[path].any() or (path in bounds and np.any(bounds[path][1])):
            if jointed:
                raise ValueError(
                    f"{path}: rebounds are for scenes without joints; set it to 0 and choose contact_damping instead"
                )
            return EventPlan()
    return None


def _walls(scene: Scene, known: dict[str, Quantity]) -> list[Wall]:
    """Sides of the domain that are not periodic, and obstacles."""
    out = []
    for name in wall_names(scene.dim):
        wall = scene.domain.wall(name)
        if wall.kind == "periodic":
            continue
        axis, sign = "xyz".index(name[0]), 1.0 if name.endswith("lower") else -1.0
        normal = np.zeros(scene.dim)
        normal[axis] = sign
        end = np.asarray(scene.domain.lower if sign > 0 else scene.domain.upper, float)[axis]
        friction = f"domain.walls.{name}.friction"
        shape = colliders.wall(normal, sign * end)
        rough = friction if friction in known else None
        out.append(Wall(name, (shape,), rough, wall.kind == "slip", pieces=(Plane(end * np.abs(normal), normal),)))
    for name, obstacle in scene.obstacles.items():
        path, friction = f"obstacles.{name}.shape", f"obstacles.{name}.friction"
        shape = resolve_shape(obstacle.shape, scene.dim, path, scene.folder)
        turn = rotation_matrix(np.asarray(obstacle.rotation), scene.dim)
        centre = shape.centre if shape.bounded else np.zeros(scene.dim)
        standing = [moved(piece, turn, centre - turn @ centre) for piece in pieces(shape, path)]
        shapes = tuple(collider(piece, np.zeros(scene.dim), path) for piece in standing)
        rough = friction if friction in known else None
        position = f"obstacles.{name}.position"
        out.append(Wall(name, shapes, rough, obstacle.kind == "slip", position, tuple(standing)))
    return out


def substeps_of(scene: Scene) -> int:
    """Steps of a frame of a scene without continua."""
    step = STEP if scene.solver.dt is None else float(scene.solver.dt)
    return max(1, int(np.ceil(float(scene.frame_dt) / step * (1 - 1e-9))))
