"""Mesh files: read, checked and measured, or refused with the sentence that helps."""

import subprocess
import sys
import time

import numpy as np
import pytest
from solids import MESHES, ball, cube, inside_out, needs_meshes, together, write_obj, write_stl

from taichi_sim.scene.mesh import likely_scale, load_mesh, read_mesh, solid
from taichi_sim.scene.shapes import resolve_shape


def _mass_cube(mesh):
    assert mesh.volume == pytest.approx(1, rel=1e-12)
    assert mesh.centre == pytest.approx(np.full(3, 0.5), abs=1e-12)
    assert mesh.contains(np.array([[0.5, 0.5, 0.5], [0.01, 0.99, 0.5], [1.01, 0.5, 0.5]])).tolist() == [
        True,
        True,
        False,
    ]


def test_a_closed_cube_is_exact_without_a_note():
    mesh = solid(*cube())
    _mass_cube(mesh)
    assert mesh.notes == () and len(mesh.fan) == 0
    points = np.random.default_rng(0).random((500, 3)) * 2 - 0.5
    box = resolve_shape({"kind": "box", "lower": [0, 0, 0], "upper": [1, 1, 1]}, 3)
    assert mesh.signed_distance(points) == pytest.approx(box.signed_distance(points), abs=1e-12)


def test_one_missing_triangle_is_named_and_repaired():
    vertices, faces = cube()
    with pytest.raises(ValueError, match=r"3 open edges, the first at \(.*repair = true"):
        solid(vertices, faces[1:])
    for gone in (0, 5, 10):
        mesh = solid(vertices, np.delete(faces, gone, axis=0), repair=True)
        _mass_cube(mesh)
        assert "3 open edges filled" in mesh.notes[0]


def test_a_ball_with_holes_is_filled_by_winding_number():
    vertices, faces = ball(4)
    kept = vertices[faces].mean(axis=1)
    mesh = solid(vertices, faces[(kept[:, 2] < 0.95) & (kept[:, 0] > -0.95)], repair=True)
    assert mesh.volume == pytest.approx(4 / 3 * np.pi, rel=0.02)
    assert np.linalg.norm(mesh.centre) < 0.02
    points = np.random.default_rng(0).uniform(-1.1, 1.1, (20_000, 3))
    assert mesh.contains(points).mean() * 2.2**3 == pytest.approx(mesh.volume, rel=0.02)


def test_too_open_to_fill_is_refused():
    vertices, faces = cube()
    with pytest.raises(ValueError, match="too open to fill"):
        solid(vertices, faces[[0, 6]], repair=True)  # one square
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="too open to fill"):
        solid(rng.random((300, 3)), np.arange(300).reshape(-1, 3), repair=True)  # loose triangles
    with pytest.raises(ValueError, match=r"not closed.*in 100 loose parts"):
        solid(rng.random((300, 3)), np.arange(300).reshape(-1, 3))


def test_winding_is_put_right():
    inverted = solid(*inside_out(cube()))
    _mass_cube(inverted)
    assert "inside out" in inverted.notes[0]
    vertices, faces = cube()
    faces[[2, 7]] = faces[[2, 7], ::-1]
    mixed = solid(vertices, faces)
    _mass_cube(mixed)
    assert "winding of 2 faces" in mixed.notes[0]
    two = solid(*together(cube(0, 1), inside_out(cube(3, 1))))
    assert two.volume == pytest.approx(2) and "1 part of 2 inside out" in two.notes[0]


def test_overlaps_and_nested_shells_count_once_and_cavities_stay_empty():
    overlapping = solid(*together(cube(0, 1), cube(0.5, 1)))
    assert overlapping.volume == pytest.approx(2 - 0.125, rel=2e-3)
    assert overlapping.centre == pytest.approx(np.full(3, 0.75), abs=1e-3)
    assert "counted once" in overlapping.notes[0]
    nested = solid(*together(cube(0, 1), cube(0.25, 0.5)))
    assert nested.volume == pytest.approx(1, rel=1e-3)
    assert nested.contains(np.full((1, 3), 0.5)).all()
    for hollow in (
        together(cube(0, 1), inside_out(cube(0.25, 0.5))),
        inside_out(together(cube(0, 1), inside_out(cube(0.25, 0.5)))),
    ):
        mesh = solid(*hollow)
        assert mesh.volume == pytest.approx(1 - 0.125, rel=1e-12)
        assert not mesh.contains(np.full((1, 3), 0.5)).any()
    bubbles = [inside_out(cube([0.2 * i + 0.05, 0.2 * j + 0.05, 0.4], 0.1)) for i in range(5) for j in range(5)]
    begin = time.perf_counter()
    cheese = solid(*together(cube(0, 1), *bubbles))
    assert cheese.volume == pytest.approx(1 - 0.025) and cheese.notes == ()
    assert solid(*together(cube(3, 1), *bubbles)).volume == pytest.approx(1.025)
    assert time.perf_counter() - begin < 10
    far = solid(*together(cube(0, 1), cube([5, 0, 0], 0.1)))
    assert far.volume == pytest.approx(1.001, rel=1e-12)
    assert int(far.part.max()) + 1 == 2
    equal = solid(*together(cube(), cube()))
    _mass_cube(equal)
    assert "doubled" in equal.notes[0]


def test_seams_doubles_and_crowded_edges():
    vertices, faces = cube()
    loose = vertices[faces].reshape(-1, 3) + np.random.default_rng(0).uniform(-2e-7, 2e-7, (36, 3))
    sewn = solid(loose, np.arange(36).reshape(-1, 3))
    assert sewn.volume == pytest.approx(1, rel=1e-5) and "merged" in sewn.notes[0]
    touching = solid(*together(cube(0, 1), cube([1, 1, 0], 1)))  # two cubes that share an edge
    assert touching.volume == pytest.approx(2)
    assert any("1 edge shared by more than two faces" in note for note in touching.notes)
    inner_wall = solid(*together(cube(0, 1), cube([1, 0, 0], 1)))  # back to back: the wall between them cancels
    assert inner_wall.volume == pytest.approx(2) and len(inner_wall.faces) == 20


def test_flat_and_one_sided_surfaces_enclose_nothing():
    vertices, faces = cube(0, [1, 1, 0])
    with pytest.raises(ValueError, match="encloses nothing"):
        solid(vertices, faces)
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    out = np.column_stack([np.cos(angle), np.sin(angle), 0 * angle])
    side = np.cos(angle / 2)[:, None] * out + np.sin(angle / 2)[:, None] * [0, 0, 1]
    band = np.concatenate([out + 0.2 * side, out - 0.2 * side])
    i = np.arange(39)
    strip = np.concatenate([np.column_stack([i, i + 1, i + 41]), np.column_stack([i, i + 41, i + 40])])
    strip = np.concatenate([strip, [[39, 40, 0], [39, 0, 79]]])
    with pytest.raises(ValueError, match="not closed"):
        solid(band, strip)
    with pytest.raises(ValueError, match="too open"):
        solid(band, strip, repair=True)


@pytest.mark.parametrize("ending", ["stl", "obj", "ply", "off", "glb"])
def test_every_usual_format(tmp_path, ending):
    import trimesh

    vertices, faces = cube([0.25, 0.5, 0.75])
    path = tmp_path / f"cube.{ending}"
    trimesh.Trimesh(vertices, faces, process=False).export(path)
    mesh, _ = load_mesh(path)
    assert mesh.volume == pytest.approx(1, rel=1e-6)
    assert mesh.centre == pytest.approx([0.75, 1.0, 1.25], rel=1e-6)


def test_a_scene_of_parts_is_merged_with_its_transforms(tmp_path):
    import trimesh

    part = trimesh.Trimesh(*cube(), process=False)
    scene = trimesh.Scene()
    scene.add_geometry(part, node_name="a")
    moved = np.diag([2.0, 1, 1, 1])
    moved[:3, 3] = [3, 0, 0]
    scene.add_geometry(part, node_name="b", transform=moved)
    mirrored = np.diag([-1.0, 1, 1, 1])
    mirrored[:3, 3] = [-1, 0, 0]
    scene.add_geometry(part, node_name="c", transform=mirrored)
    scene.export(tmp_path / "parts.glb")
    mesh, _ = load_mesh(tmp_path / "parts.glb")
    assert mesh.volume == pytest.approx(4, rel=1e-6)
    assert mesh.notes == ()
    assert mesh.bounds[0][0] == pytest.approx(-2) and mesh.bounds[1][0] == pytest.approx(5)


def test_unusable_files_are_refused_by_name(tmp_path):
    vertices, faces = cube()
    with pytest.raises(ValueError, match=r"gone\.stl: no such file"):
        read_mesh(tmp_path / "gone.stl")
    with pytest.raises(ValueError, match="is a folder"):
        read_mesh(tmp_path)
    with pytest.raises(ValueError, match=r"empty\.stl.*no triangles"):
        load_mesh(write_stl(tmp_path / "empty.stl", vertices, faces[:0]))
    (tmp_path / "zero.stl").write_bytes(b"")
    with pytest.raises(ValueError, match=r"zero\.stl"):
        load_mesh(tmp_path / "zero.stl")
    (tmp_path / "points.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\n")
    with pytest.raises(ValueError, match="no triangles"):
        load_mesh(tmp_path / "points.obj")
    (tmp_path / "broken.ply").write_text("ply\nformat ascii 1.0\nelement vertex 8\nnonsense")
    with pytest.raises(ValueError, match=r"broken\.ply.*could not be read|broken\.ply.*no triangles"):
        load_mesh(tmp_path / "broken.ply")
    (tmp_path / "cube.txt").write_text("cube")
    with pytest.raises(ValueError, match="cannot read 'txt'"):
        load_mesh(tmp_path / "cube.txt")
    vertices[3, 1] = np.nan
    for write, name in ((write_obj, "nan.obj"), (write_stl, "nan.stl")):
        with pytest.raises(ValueError, match=r"vertex \d+ = \[.*nan.*is not finite"):
            load_mesh(write(tmp_path / name, vertices, faces))


def test_scale_rotation_and_position_in_the_table(tmp_path):
    path = write_obj(tmp_path / "cube.obj", *cube())
    table = {"kind": "mesh", "file": "cube.obj", "scale": 0.1, "rotation": [0, 0, np.pi / 2], "position": [1, 0, 0]}
    shape = resolve_shape(table, 3, folder=tmp_path)
    assert shape.volume == pytest.approx(1e-3, rel=1e-12)
    assert shape.centre == pytest.approx([0.95, 0.05, 0.05], abs=1e-12)
    assert shape.contains(np.array([[0.91, 0.01, 0.01], [1.01, 0.01, 0.01]])).tolist() == [True, False]
    write_obj(path, *cube(0, 2))  # a new version of the file is read again
    assert resolve_shape(table, 3, folder=tmp_path).volume == pytest.approx(8e-3)


def test_likely_scale():
    room = np.ones(3)
    assert "scale = 0.001" in likely_scale(np.full(3, 180.0), room)
    assert "scale = 0.0254" not in likely_scale(np.full(3, 180.0), room)
    assert "0.0254" in likely_scale(np.full(3, 10.0), room)
    assert "set scale = 0.0254" in likely_scale(np.full(3, 180.0), room, "inches")
    assert "at most" in likely_scale(np.full(3, 1e7), room)


def test_only_what_trimesh_itself_needs_is_used(tmp_path):
    """Runs in a process where trimesh's undeclared companions cannot be imported."""
    import trimesh

    vertices, faces = cube()
    for ending in ("stl", "obj", "ply", "off", "glb"):
        trimesh.Trimesh(vertices, faces, process=False).export(tmp_path / f"cube.{ending}")
    write_stl(tmp_path / "open.stl", vertices, faces[1:])
    code = """
import sys
for name in ("rtree", "networkx", "shapely", "embreex", "manifold3d", "mapbox_earcut", "lxml", "PIL", "chardet",
             "httpx", "requests", "jsonschema", "svg", "xxhash", "pyglet", "skimage", "sympy", "psutil", "pycollada"):
    sys.modules[name] = None
from pathlib import Path
from taichi_sim.scene.distance import distance_grid
from taichi_sim.scene.seeding import seed
from taichi_sim.scene.shapes import resolve_shape
for file in sorted(Path(sys.argv[1]).iterdir()):
    shape = resolve_shape({"kind": "mesh", "file": str(file), "repair": file.stem == "open"}, 3)
    print(file.name, round(shape.volume, 6), len(seed(shape, 3, 0.25, "lattice").points))
    distance_grid(shape, 0.25)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [line.split()[1:] for line in done.stdout.splitlines()] == [["1.0", "64"]] * 6


#: Volumes by the divergence theorem as the data's README gives them, in file units.
KNOWN = {
    "bunny_lowpoly.obj": 0.8324,
    "kinova_arm.stl": 1.022e-3,
    "kinova_hand_3finger.stl": 5.511e-4,
    "dog_skin.stl": 0.02408,
    "armadillo_low.obj": 2.293e-4,
    "ant.ply": 482.1,
    "kinova_forearm.stl": 5.332e-4,
    "torus.obj": 46.18,
    "spot_voxel_nonmanifold.obj": 0.14074,
    "franka_link0_soup.obj": 2.996e-3,
}


@needs_meshes
@pytest.mark.parametrize("name", sorted(KNOWN))
def test_recorded_meshes_have_their_volume(name):
    begin = time.perf_counter()
    mesh, _ = load_mesh(MESHES / name)
    assert mesh.volume == pytest.approx(KNOWN[name], rel=5e-3)
    lower, upper = mesh.bounds
    points = lower + (upper - lower) * np.random.default_rng(0).random((20_000, 3))
    inside = mesh.contains(points)
    share = mesh.volume / np.prod(upper - lower)
    assert inside.mean() == pytest.approx(share, abs=5 * np.sqrt(share / len(points)))
    assert points[inside].mean(axis=0) == pytest.approx(mesh.centre, abs=0.03 * np.ptp(mesh.vertices, axis=0).max())
    assert time.perf_counter() - begin < 20
    if name == "spot_voxel_nonmanifold.obj":
        assert "5 edges shared by more than two faces" in mesh.notes[0]
    if name == "ant.ply":
        assert "overlapping parts counted once" in mesh.notes[0] and int(mesh.part.max()) + 1 == 15


@needs_meshes
def test_recorded_mug_is_refused_for_its_open_handle_and_repaired():
    with pytest.raises(ValueError, match=r"mug\.obj: the surface is not closed: 24 open edges in 2 loose parts"):
        load_mesh(MESHES / "mug.obj")
    mesh, _ = load_mesh(MESHES / "mug.obj", repair=True)
    assert mesh.volume == pytest.approx(2.27e-4, rel=0.01)
    cavity = np.array([[0.0, 0.0, 0.06]])
    assert not mesh.contains(cavity)[0]  # hollow stays hollow
