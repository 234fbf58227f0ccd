"""Bodies of every kind, and scenes of them that share one kernel."""

import numpy as np
from assembly import Assembly

from taichi_sim.compile.rigid.mesh_collider import solid_mesh
from taichi_sim.scene.mesh import solid
from taichi_sim.solvers.rigid.shapes import BALL, CAPSULE, CYLINDER, HULL, MESH, WALL, pair_bit

G = 9.81

#: All pairs of kinds: what scenes of space and of the plane are compiled for.
KINDS = (BALL, CAPSULE, HULL, CYLINDER, MESH, WALL)
SPACE = sum({pair_bit(a, b) for a in KINDS for b in KINDS if a != WALL})
PLANE = sum({pair_bit(a, b) for a in KINDS for b in KINDS if not {a, b} & {CYLINDER, MESH} and a != WALL})


def _angular():
    """An L of two boxes that overlap, .2 wide, and a ball of triangles of radius .1."""
    import trimesh

    upright = trimesh.creation.box((0.08, 0.12, 0.2))
    foot = trimesh.creation.box((0.2, 0.12, 0.08))
    foot.apply_translation((0.06, 0.0, -0.06))
    both = trimesh.util.concatenate([upright, foot])
    round_ = trimesh.creation.icosphere(1, 0.1)
    return [solid_mesh(solid(np.array(m.vertices), np.array(m.faces)), 0.0125, 0.08) for m in (both, round_)]


_MESHES: list = []


def meshes():
    """The L and the ball, made once."""
    if not _MESHES:
        _MESHES.extend(_angular())
    return _MESHES


def add(a: Assembly, kind: str, mass: float, place, **state) -> int:
    """One body: s sphere, b box, c capsule, y cylinder, p polygon, l an L of triangles, m a ball of triangles."""
    if kind == "s":
        return a.sphere(mass, 0.1, place, **state)
    if kind == "b":
        return a.box(mass, [0.1, 0.12, 0.11][: a.dim], place, **state)
    if kind == "c":
        return a.capsule(mass, 0.06, 0.1, place, **state)
    if kind == "y":
        return a.cylinder(mass, 0.1, 0.08, place, **state)
    if kind == "p":
        angle = 2 * np.pi * np.arange(5) / 5
        return a.polygon(mass, 0.12 * np.column_stack([np.cos(angle), np.sin(angle)]), place, **state)
    m = meshes()["lm".index(kind)]
    b = a.body(mass, mass * m.moments, place, **state)
    a.add(b, m.collider)
    return b


def fixed(a: Assembly, kind: str, place) -> int:
    """A box, say, that is held."""
    return add(a, kind, 1.0, place, fixed=True)
