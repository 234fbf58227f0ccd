"""Bodies of a scene: placed, moving, measured, refused where they cannot be; gradients of the pose."""

import time
from typing import Any

import numpy as np
import pytest
from solids import MESHES, cube, needs_meshes, write_obj

from taichi_sim.core.errors import SceneError
from taichi_sim.scene.bodies import build_bodies
from taichi_sim.scene.schema import Body, Domain, Profile, Region, Scene


def _scene(dim: int = 2, spacing: float = 0.05, **bodies: dict[str, Any]) -> dict[str, Any]:
    domain = {"lower": [0.0] * dim, "upper": [1.0] * dim, "spacing": spacing}
    return {"dim": dim, "domain": domain, "bodies": bodies}


def _box(*lower: float, size: float = 0.2, **entries: Any) -> dict[str, Any]:
    upper = [x + size for x in lower]
    return {"shape": {"kind": "box", "lower": list(lower), "upper": upper}, "material": "jelly", **entries}


def _refused(scene: dict[str, Any]) -> str:
    with pytest.raises(SceneError) as error:
        build_bodies(scene)
    return str(error.value)


def test_a_box_at_rest():
    (body,) = build_bodies(_scene(block=_box(0.3, 0.4)))
    assert body.name == "block" and body.material == "jelly" and body.count == 64
    assert np.array_equal(body.position, body.points_rest)
    assert body.particle_volume * body.count == pytest.approx(0.04)
    assert body.center == pytest.approx([0.4, 0.5])
    assert np.all(body.velocity == 0) and np.all(body.deformation == np.eye(2))
    assert body.rest_volume == pytest.approx(np.full(64, 0.04 / 64))
    assert body.notes == []


def test_the_schema_and_plain_tables_give_the_same_particles():
    rest = dict(duration=1.0, domain=Domain(upper=[1.0, 1.0], lower=[0.0, 0.0], cells=20))
    disc = {"kind": "sphere", "center": [0.5, 0.5], "radius": 0.2}
    half = {"kind": "box", "lower": [0.0, 0.0], "upper": [0.5, 1.0]}
    struct = Scene(
        dim=2, bodies={"a": Body(shape=disc, material="m", rotation=0.3, regions={"left": Region(shape=half)})}, **rest
    )
    plain = _scene(a={"shape": disc, "material": "m", "rotation": 0.3, "regions": {"left": {"shape": half}}})
    one, other = build_bodies(struct, seed=5)[0], build_bodies(plain, seed=5)[0]
    assert np.array_equal(one.position, other.position)
    assert np.array_equal(one.regions["left"], other.regions["left"])
    assert one.material == "m"
    assert not np.array_equal(build_bodies(plain, seed=6)[0].position[:20], one.position[:20])


def test_adding_a_body_moves_no_particle_of_another():
    disc = {"shape": {"kind": "sphere", "center": [0.7, 0.7], "radius": 0.1}, "material": "m"}
    alone = build_bodies(_scene(disc=disc))[0]
    together = build_bodies(_scene(block=_box(0.1, 0.1), disc=disc))[1]
    assert np.array_equal(alone.position, together.position)


@pytest.mark.parametrize("dim", [2, 3])
def test_pose_and_motion(dim):
    turn: Any = np.pi / 2 if dim == 2 else [0, 0, np.pi / 2]
    rate: Any = 2.0 if dim == 2 else [0.0, 0.0, 2.0]
    box = {"kind": "box", "lower": [0.2] * dim, "upper": [0.6, 0.4, 0.4][:dim]}
    table = {
        "shape": box,
        "position": [0.1, 0.2, 0.0][:dim],
        "rotation": turn,
        "velocity": [1.0, 0.0, 0.5][:dim],
        "angular_velocity": rate,
    }
    (body,) = build_bodies(_scene(dim, arm=table))
    middle = np.array([0.5, 0.5, 0.3])[:dim]
    assert body.position.mean(axis=0) == pytest.approx(middle)
    assert np.ptp(body.position, axis=0)[:2] == pytest.approx(np.ptp(body.points_rest, axis=0)[1::-1])
    assert body.velocity.mean(axis=0) == pytest.approx([1.0, 0.0, 0.5][:dim])
    arm = body.position - middle
    assert body.velocity[:, 0] == pytest.approx(1 - 2 * arm[:, 1])
    assert body.velocity[:, 1] == pytest.approx(2 * arm[:, 0])
    first_x, first_y = body.deformation[0, :2, 0], body.deformation[0, :2, 1]
    assert first_x == pytest.approx([0, 1], abs=1e-15) and first_y == pytest.approx([-1, 0], abs=1e-15)
    drawn = body.surface()
    assert drawn.vertices.min(axis=0) == pytest.approx(middle - np.array([0.1, 0.2, 0.1])[:dim])


def test_velocity_and_deformation_as_array_profile_and_function():
    profile = {"axis": "x", "points": [0.3, 0.5], "values": [[0.0, 0.0], [0.0, 1.0]]}
    (body,) = build_bodies(_scene(a=_box(0.3, 0.3, velocity=profile)))
    assert body.velocity[:, 1] == pytest.approx((body.points_rest[:, 0] - 0.3) / 0.2)
    struct = Profile(axis="x", points=[0.3, 0.5], values=[[0.0, 0.0], [0.0, 1.0]])
    assert np.array_equal(build_bodies(_scene(a=_box(0.3, 0.3, velocity=struct)))[0].velocity, body.velocity)
    given = np.random.default_rng(0).normal(size=(body.count, 2))
    assert np.array_equal(build_bodies(_scene(a=_box(0.3, 0.3, velocity=given)))[0].velocity, given)
    (swirl,) = build_bodies(_scene(a=_box(0.3, 0.3, velocity=lambda x: x * [0, 2])))
    assert swirl.velocity == pytest.approx(swirl.points_rest * [0, 2])
    squeezed = {"axis": "y", "points": [0.3, 0.5], "values": [[1.0, 0.9], [1.0, 1.0]]}
    (column,) = build_bodies(_scene(a=_box(0.3, 0.3, deformation=squeezed)))
    depth = 0.9 + 0.1 * (column.points_rest[:, 1] - 0.3) / 0.2
    assert column.deformation[:, 1, 1] == pytest.approx(depth)
    assert column.rest_volume == pytest.approx(column.particle_volume / depth)
    (one,) = build_bodies(_scene(a=_box(0.3, 0.3, deformation=[[2.0, 0.1], [0.0, 0.5]])))
    assert np.all(one.deformation == [[2.0, 0.1], [0.0, 0.5]])
    many = np.tile(np.eye(2), (body.count, 1, 1)) * np.linspace(0.9, 1.1, body.count)[:, None, None]
    assert np.array_equal(build_bodies(_scene(a=_box(0.3, 0.3, deformation=many)))[0].deformation, many)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"velocity": np.zeros((3, 2))}, r"bodies.a.velocity = .*shape (2,) or (64, 2) (this body has 64 particles)"),
        ({"velocity": lambda x: x[:3]}, "must return shape (64, 2)"),
        ({"velocity": "fast"}, "bodies.a.velocity = 'fast'"),
        ({"deformation": [[1.0, 0.0], [0.0, -1.0]]}, "bodies.a.deformation: must have a positive determinant"),
        ({"deformation": np.eye(3)}, "must have shape (2, 2) or (64, 2, 2)"),
        ({"rotation": [0.0, 0.0, 1.0]}, "bodies.a.rotation = [0.0, 0.0, 1.0]: must be a number"),
        ({"position": [np.nan, 0.0]}, "bodies.a.position = [nan, 0.0]: must be finite"),
        ({"velocity": {"axis": "x", "points": [1.0, 0.0], "values": [[0, 0], [0, 0]]}}, "bodies.a: the points of"),
        ({"seeding": "poisson"}, "bodies.a.shape: seeding must be lattice or jittered, got 'poisson'"),
        ({"particles_per_cell": 1e9}, "particles at a spacing of"),
        ({"shape": {"kind": "plane", "point": [0, 0], "normal": [0, 1]}}, "a plane has no volume"),
        ({"shape": {"kind": "bix"}}, "did you mean 'box'?"),
        ({"shape": {"kind": "box", "lower": [0, 0], "upper": [1.5, 0.2]}}, "(1.5 x 0.2 m) is larger than the domain"),
    ],
)
def test_mistakes_are_named(entries, said):
    import re

    text = _refused(_scene(a=_box(0.3, 0.3, **entries)))
    assert re.search(said, text) if ".*" in said and "(2,)" not in said else _flat(said) in _flat(text), text


def _flat(text: str) -> str:
    return text.rpartition(".*")[2].replace("\n", " ")


def test_every_wrong_body_is_reported():
    text = _refused(_scene(a=_box(0.9, 0.3), b=_box(0.3, 0.3, velocity=[1.0]), c=_box(0.1, 0.1)))
    assert len(text.splitlines()) == 2 and "bodies.a" in text and "bodies.b.velocity" in text


def test_outside_the_domain():
    text = _refused(_scene(ball=_box(0.3, 0.3, position=[0.6, -0.1])))
    assert "bodies.ball: 32 particles of 64 outside the domain" in text
    assert "from (0.9125, 0.2125) to (1.08" in text and "from (0, 0) to (1, 1)" in text


def test_regions_are_before_the_pose_and_never_empty():
    left = {"shape": {"kind": "box", "lower": [0.3, 0.3], "upper": [0.4, 0.5]}}
    below = {"shape": {"kind": "plane", "point": [0.0, 0.4], "normal": [0.0, 1.0]}}
    (body,) = build_bodies(_scene(a=_box(0.3, 0.3, rotation=np.pi, regions={"left": left, "below": below})))
    assert len(body.regions["left"]) == 32 and len(body.regions["below"]) == 32
    assert body.position[body.regions["left"], 0].min() > 0.4  # turned to the right
    away = {"shape": {"kind": "box", "lower": [0.8, 0.8], "upper": [0.9, 0.9]}}
    wrong = {"shape": {"kind": "box", "lower": [0.8, 0.8]}}
    text = _refused(_scene(a=_box(0.3, 0.3, regions={"left": left, "away": away, "wrong": wrong})))
    assert "bodies.a.regions.away: holds no particle; the body's particles lie from (0.3125, 0.3125)" in text
    assert "bodies.a.regions.wrong.shape: a box needs" in text


def test_bodies_that_overlap_are_noted_and_those_that_touch_are_not():
    touching = build_bodies(_scene(a=_box(0.3, 0.3), b=_box(0.5, 0.3), c=_box(0.3, 0.5)))
    assert all(body.notes == [] for body in touching)
    ball = {"shape": {"kind": "sphere", "center": [0.6, 0.4], "radius": 0.1}, "material": "m", "position": [-0.05, 0]}
    _, second = build_bodies(_scene(a=_box(0.3, 0.3), ball=ball))
    assert len(second.notes) == 1 and "bodies.a and bodies.ball overlap at time 0" in second.notes[0]
    _, second = build_bodies(_scene(a=_box(0.3, 0.3), b=_box(0.49, 0.3, seeding="jittered")))
    assert np.any(second.position[:, 0] < 0.5)
    assert second.notes == []  # no deeper than half a spacing
    turned = _box(0.51, 0.3, rotation=np.pi / 4)  # its corner reaches to 0.4686
    assert len(build_bodies(_scene(a=_box(0.3, 0.3, seeding="jittered"), b=turned))[1].notes) == 1


def test_walker_of_five_boxes_keeps_its_parts_apart():
    dx = 1 / 128
    box = {"kind": "box", "lower": [0.1, 0.13], "upper": [0.4, 0.23]}
    legs = [{"kind": "box", "lower": [0.1 + x, 0.03], "upper": [0.15 + x, 0.13]} for x in (0, 0.05, 0.2, 0.25)]
    regions = {f"leg{i}": {"shape": leg} for i, leg in enumerate(legs)}
    table = {"shape": {"kind": "union", "parts": [box, *legs]}, "regions": regions}
    (body,) = build_bodies(_scene(2, dx, robot=table))
    assert body.particle_volume * body.count == pytest.approx(0.05)
    assert body.count == pytest.approx(0.05 / (dx / 2) ** 2, rel=0.02)
    sizes = [len(body.regions[name]) for name in regions]
    assert len(np.unique(np.concatenate(list(body.regions.values())))) == sum(sizes)
    assert np.array(sizes) * body.particle_volume == pytest.approx(np.full(4, 0.005), rel=0.05)


def test_an_open_mesh_and_its_repair(tmp_path):
    vertices, faces = cube(0.25, 0.5)
    file = str(write_obj(tmp_path / "open.obj", vertices, faces[1:]))
    text = _refused(_scene(3, a={"shape": {"kind": "mesh", "file": file}}))
    assert "bodies.a.shape: open.obj: the surface is not closed: 3 open edges, the first at (" in text
    (body,) = build_bodies(_scene(3, a={"shape": {"kind": "mesh", "file": file, "repair": True}}))
    mass = 1000 * body.particle_volume * body.count
    assert mass == pytest.approx(125, rel=0.02)
    assert body.position.mean(axis=0) == pytest.approx([0.5, 0.5, 0.5], abs=0.01)
    assert any("filled by winding number" in note for note in body.notes)


def test_a_file_in_millimetres_is_refused_with_its_scale(tmp_path):
    file = str(write_obj(tmp_path / "part.obj", *cube(0, 180)))
    begin = time.perf_counter()
    text = _refused(_scene(3, a={"shape": {"kind": "mesh", "file": file}}))
    assert time.perf_counter() - begin < 5
    assert "part.obj: the shape (180 x 180 x 180 m) is larger than the domain (1 x 1 x 1 m)" in text
    assert "scale = 0.001 if the file is in millimetres (then 0.18 m)" in text
    table = {"kind": "mesh", "file": file, "scale": 0.001}
    (body,) = build_bodies(_scene(3, a={"shape": table, "position": [0.1, 0.1, 0.1]}))
    assert body.particle_volume * body.count == pytest.approx(0.18**3, rel=0.02)
    tiny = {"kind": "mesh", "file": file, "scale": 1e-5}
    text = _refused(_scene(3, a={"shape": tiny}))
    assert "thinner (0.0018 m) than the particles are apart" in text and "is scale = 1e-05 right?" in text


@needs_meshes
@pytest.mark.parametrize("name", ["bunny_lowpoly.obj", "kinova_hand_3finger.stl", "dog_skin.stl"])
def test_recorded_meshes_as_bodies(name):
    factor = {"bunny_lowpoly.obj": 0.3, "kinova_hand_3finger.stl": 4.0, "dog_skin.stl": 0.6}[name]
    shape = {
        "kind": "mesh",
        "file": str(MESHES / name),
        "scale": factor,
        "position": [0.5, 0.5, 0.6 if "hand" in name else 0.3],
    }
    begin = time.perf_counter()
    (body,) = build_bodies(_scene(3, 0.02, a={"shape": shape}), seed=1)
    assert time.perf_counter() - begin < 15
    volume = {"bunny_lowpoly.obj": 0.8324, "kinova_hand_3finger.stl": 5.511e-4, "dog_skin.stl": 0.02408}[name]
    assert body.particle_volume * body.count == pytest.approx(volume * factor**3, rel=0.005)
    assert body.position.mean(axis=0) == pytest.approx(body.center + body.translation, abs=0.5 * body.spacing)


def test_periodic_sides_are_no_end_and_bodies_overlap_through_them():
    walls = {"x_lower": "periodic", "x_upper": "periodic"}
    scene = _scene(a=_box(0.0, 0.3), b=_box(0.9, 0.3))
    periodic = {**scene, "domain": {**scene["domain"], "walls": walls}}
    assert "bodies.b: 32 particles of 64 outside the domain" in _refused(scene)
    _, b = build_bodies(periodic)
    assert b.position[:, 0].max() > 1.0 and "bodies.a and bodies.b overlap at time 0 (32 particles" in b.notes[0]
    apart = build_bodies({**periodic, "bodies": {"a": _box(0.0, 0.3), "b": _box(-2.2, 0.3)}})
    assert all(body.notes == [] for body in apart)
    assert "particles of 64 outside" in _refused({**periodic, "bodies": {"a": _box(0.3, 0.9)}})
