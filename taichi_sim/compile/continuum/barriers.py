"""Walls and obstacles of a scene as contacts, and the room their table needs."""

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.compile.continuum.contacts import Contacts, ObstacleContact, WallContact
from taichi_sim.scene.paths import Quantity
from taichi_sim.scene.schema import Scene, wall_names
from taichi_sim.scene.shapes.shape import resolve_shape
from taichi_sim.solvers.mpm.arrays import MpmPlan


def walls(scene: Scene, known: dict[str, Quantity]) -> list[WallContact]:
    """Sides of the domain that are not periodic."""
    out = []
    for name in wall_names(scene.dim):
        wall = scene.domain.wall(name)
        if wall.kind == "periodic":
            continue
        friction = f"domain.walls.{name}.friction"
        out.append(
            WallContact(
                "xyz".index(name[0]),
                -1 if name.endswith("lower") else 1,
                wall.kind,
                friction if friction in known else None,
            )
        )
    return out


def obstacles(scene: Scene, known: dict[str, Quantity]) -> list[ObstacleContact]:
    """The scene's obstacles, mesh files read. Raises ``SceneError`` for a file that cannot be used."""
    folder = scene.folder
    out = []
    for name, o in scene.obstacles.items():
        friction = f"obstacles.{name}.friction"
        shape = resolve_shape(o.shape, scene.dim, f"obstacles.{name}.shape", folder)
        out.append(
            ObstacleContact(
                name,
                shape,
                np.asarray(o.rotation),
                o.kind,
                f"obstacles.{name}.position",
                friction if friction in known else None,
            )
        )
    return out


def contacts_and_room(
    walls: list[WallContact],
    obstacles: list[ObstacleContact],
    plan: MpmPlan,
    values: Values,
    bounds: dict[str, tuple[np.ndarray, np.ndarray]],
) -> tuple[Contacts, int]:
    """The binding, and rows of its table: the walls', and what the obstacles may need wherever they are moved. Raises
    ``ValueError`` for an obstacle that a periodic domain cannot repeat."""
    contacts = Contacts(walls, obstacles, plan, 1)
    room = sum(len(contacts._wall_nodes(w)) for w in walls)
    for o in obstacles:
        contacts.check(o, values[o.position][0])
        room += contacts.most_nodes(o, values[o.position][0], moves=o.position in bounds)
    contacts.room = max(1, room * plan.envs)
    return contacts, contacts.room
