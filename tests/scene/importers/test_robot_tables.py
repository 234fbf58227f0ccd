"""Robots as tables of a scene: placed, welded, filtered, driven; and written as TOML."""

from pathlib import Path

import numpy as np
import pytest
from mechanics import displacements, frames, mass_matrix, placed, tensor

from taichi_sim.data import data_root
from taichi_sim.scene.importers import forward, read_robot, robot_scene, robot_tables
from taichi_sim.scene.importers.robot import Geometry, Pose
from taichi_sim.scene.importers.shapes import find_file, posed, solid_of
from taichi_sim.scene.inertia import mass_properties, together
from taichi_sim.scene.mesh import load_mesh
from taichi_sim.scene.pose import rotation_matrix, rotation_vector
from taichi_sim.scene.shapes import check_shape, resolve_shape
from taichi_sim.scene.toml import dumps, parse

HERE = Path(__file__).parent
QUADRUPED = data_root() / "scenes" / "robots" / "quadruped.urdf"
LEGS = ("front_left", "front_right", "rear_left", "rear_right")
STAND = {f"{leg}_{part}": angle for leg in LEGS for part, angle in (("thigh", 0.7), ("knee", -1.4))}
BALL = '<geom size="0.1"/>'
HEAVY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


@pytest.fixture
def model(tmp_path):
    def reads(inside: str):
        file = tmp_path / "m.xml"
        file.write_text(f"<mujoco>{inside}</mujoco>")
        return read_robot(file)

    return reads


@pytest.fixture
def urdf(tmp_path):
    def reads(inside: str):
        file = tmp_path / "r.urdf"
        file.write_text(f'<robot name="r">{inside}</robot>')
        return read_robot(file)

    return reads


def test_our_quadruped_is_what_it_says():
    robot = read_robot(QUADRUPED)
    assert robot.mass == pytest.approx(13.04) and robot.report() == ""
    assert sum(joint.kind == "hinge" for joint in robot.joints) == 12
    for link in robot.links:
        (geometry,) = link.collision
        own = mass_properties(solid_of(geometry), mass=link.body.mass)
        assert link.body.center == pytest.approx(own.center)
        assert link.body.inertia == pytest.approx(own.inertia, rel=1e-6)
    assert forward(robot)["rear_left_foot"].position[2] == pytest.approx(-0.4)
    poses = forward(robot, STAND)
    for leg, x, y in zip(LEGS, (1, 1, -1, -1), (1, -1, 1, -1), strict=True):
        assert poses[f"{leg}_foot"].position == pytest.approx([0.18 * x, 0.12 * y, -0.4 * np.cos(0.7)])


def test_a_standing_quadruped_as_tables():
    scene = robot_scene(
        read_robot(QUADRUPED), "dog", [1, 2, 0.33], [0, 0, np.pi / 2], joints=STAND,
        drive={"kind": "position_motor", "stiffness": 40.0, "damping": 1.0},
    )  # fmt: skip
    assert scene.report() == ""
    rigid, joints, actuators = (scene.tables[key] for key in ("rigid", "joints", "actuators"))
    assert (len(rigid), len(joints), len(actuators)) == (13, 12, 12)
    assert sum(body["mass"] for body in rigid.values()) == pytest.approx(13.04)
    knee = joints["dog/front_left_knee"]
    assert (knee["parent"], knee["child"], knee["position"]) == ("dog/front_left_thigh", "dog/front_left_shin", -1.4)
    assert (knee["lower"], knee["upper"], knee["damping"]) == (-2.6, 0.0, 0.05)
    # where all coordinates are 0 the legs hang straight; the robot looks along y
    assert knee["axis"] == pytest.approx([-1, 0, 0]) and knee["anchor"] == pytest.approx([1 - 0.12, 2 + 0.18, 0.13])
    drive = actuators["dog/front_left_knee"]
    assert (drive["kind"], drive["joint"], drive["limit"]) == ("position_motor", "dog/front_left_knee", 30.0)
    assert drive["signal"] == {"kind": "constant", "value": -1.4}
    shin = rigid["dog/front_left_shin"]  # with the foot fixed to it
    box, foot = shin["shape"]["parts"]
    assert (box["kind"], box["center"]) == ("box", [0.0, 0.0, -0.1])
    assert (foot["kind"], foot["center"]) == ("sphere", [0.0, 0.0, -0.2])
    assert shin["markers"]["front_left_foot"]["point"] == [0.0, 0.0, -0.2]
    assert frames(scene.tables)["dog/front_left_shin"].at(np.array(foot["center"])) == pytest.approx(
        [1 - 0.12, 2 + 0.18, 0.33 - 0.4 * np.cos(0.7)]
    )
    whole = together(mass_properties(resolve_shape(part, 3), mass=m) for part, m in ((box, 0.2), (foot, 0.06)))
    assert shin["center"] == pytest.approx(whole.center)
    assert tensor(shin["inertia"]) == pytest.approx(whole.inertia, rel=1e-6, abs=1e-10)


def test_tables_are_the_same_written_as_toml(tmp_path):
    robot = read_robot(HERE / "models/orientations.xml")
    tables = robot_tables(robot, "bot", joints=robot.keyframes["stand"], world=True, folder=tmp_path)
    assert parse(dumps(tables).encode(), "x.toml") == tables
    for body in (*tables["rigid"].values(), *tables["obstacles"].values()):
        assert check_shape(body["shape"], 3, folder=tmp_path) == []
        if body["shape"]["kind"] != "plane":
            resolve_shape(body["shape"], 3, folder=tmp_path)
    assert set(tables["obstacles"]) == {"bot/floor", "bot/post"}
    assert load_mesh(tmp_path / "bot_trunk_wedge.obj")[0].volume == pytest.approx(0.3 * 0.2 * 0.4 / 6)


def test_bodies_are_where_the_file_puts_them(tmp_path):
    """Every link's frame, and every geom's centre and inertia: through the tables, and through the description."""
    robot = read_robot(HERE / "models/orientations.xml")
    at = robot.keyframes["stand"]
    tables = robot_tables(robot, "bot", position=[1, 2, 3], rotation=[0.3, 0.2, 0.1], joints=at, folder=tmp_path)
    base = Pose.of([1, 2, 3], [0.3, 0.2, 0.1])
    poses, found, moved = forward(robot, at, base), frames(tables, tmp_path), displacements(tables)
    for name in ("trunk", "thigh", "shin", "arm", "cart"):
        assert found[f"bot/{name}"].position == pytest.approx(poses[name].position, abs=1e-12)
        assert found[f"bot/{name}"].turn == pytest.approx(poses[name].turn, abs=1e-12)
        table, link = tables["rigid"][f"bot/{name}"], robot.link(name)
        own = moved[f"bot/{name}"] @ placed(table, tmp_path)
        shape = table["shape"]
        parts = shape["parts"] if shape["kind"] == "union" else [shape]
        for part, geometry in zip(parts, link.collision, strict=True):
            there = mass_properties(resolve_shape(part, 3, folder=tmp_path), density=1.0).moved(own.turn, own.position)
            here = mass_properties(solid_of(geometry), density=1.0).moved(poses[name].turn, poses[name].position)
            assert there.center == pytest.approx(here.center, abs=1e-12)
            assert there.inertia == pytest.approx(here.inertia, abs=1e-12)


def test_the_mass_matrix_of_a_double_pendulum(model):
    """Point masses on rods: m l² (2 1; 1 1) for a straight pendulum, in absolute angles (3 2; 2 1)… by hand: the
    first joint carries both, the second one."""
    inertial = '<inertial pos="0 0 -1" mass="1" diaginertia="1e-9 1e-9 1e-9"/>'
    inner = f'<body name="b" pos="0 0 -1">{inertial}<joint name="j" axis="0 1 0"/></body>'
    robot = model(f'<worldbody><body name="a">{inertial}<joint name="i" axis="0 1 0"/>{inner}</body></worldbody>')
    matrix, rows = mass_matrix(robot_tables(robot, "p"))
    assert [row[0] for row in rows] == ["p/i", "p/j"]
    assert matrix == pytest.approx(np.array([[1 + 4, 2], [2, 1]]), abs=1e-6)
    folded, _ = mass_matrix(robot_tables(robot, "p", joints={"j": np.pi / 2}))
    assert folded == pytest.approx(np.array([[1 + 2, 1], [1, 1]]), abs=1e-6)


def test_a_chain_of_joints_has_light_bodies_between(model):
    joints = (
        '<joint name="i" axis="0 0 1" pos="1 0 0" ref="20"/><joint name="j" axis="1 0 0"/><joint name="k" type="ball"/>'
    )
    inside = '<geom type="box" size="0.1 0.2 0.3" pos="0 0 0.5"/>'
    robot = model(f'<worldbody><body name="a" pos="0 1 0" euler="10 20 30">{inside}{joints}</body></worldbody>')
    at = {"i": 0.4, "j": -0.8, "k": [0.1, 0.2, 0.3]}
    tables = robot_tables(robot, "r", joints=at)
    assert list(tables["rigid"]) == ["r/a_i", "r/a_j", "r/a"]
    ends = [(joint.get("parent"), joint["child"]) for joint in tables["joints"].values()]
    assert ends == [(None, "r/a_i"), ("r/a_i", "r/a_j"), ("r/a_j", "r/a")]
    assert sum(body["mass"] for body in tables["rigid"].values()) == pytest.approx(robot.mass, rel=1e-14)
    assert tables["rigid"]["r/a_i"]["mass"] == pytest.approx(1e-6 * robot.mass)
    assert frames(tables)["r/a"].position == pytest.approx(forward(robot, at)["a"].position, abs=1e-12)
    assert frames(tables)["r/a"].turn == pytest.approx(forward(robot, at)["a"].turn, abs=1e-12)


def test_a_base_is_fixed_or_floats(urdf):
    arm = f'<link name="a">{HEAVY}<collision><geometry><sphere radius="1"/></geometry></collision></link>'
    arm += f'<link name="b">{HEAVY}</link><joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    robot = urdf(arm)
    floating = robot_tables(robot)
    assert list(floating["joints"]) == ["robot/j"] and floating["joints"]["robot/j"]["parent"] == "robot/a"
    held = robot_tables(robot, fixed_base=True)["joints"]
    assert held["robot/a_base"] == {"kind": "fixed", "child": "robot/a"} and len(held) == 2


def test_a_dummy_root_is_the_world_or_a_mistake(urdf):
    joint = '<joint name="j" type="continuous"><parent link="base"/><child link="b"/></joint>'
    robot = urdf(f'<link name="base"/><link name="b">{HEAVY}</link>{joint}')
    scene = robot_scene(robot)
    assert set(scene.tables["rigid"]) == {"robot/b"} and "parent" not in scene.tables["joints"]["robot/j"]
    assert "link 'base', the root, has no mass (r.urdf line 1): fixed to the world" in scene.report()
    with pytest.raises(ValueError, match=r"r\.urdf: .*link 'base' floats and the mass must be > 0.*fixed_base = true"):
        robot_tables(robot, fixed_base=False)
    # with a mass fixed to it, it floats: the usual base_link of mobile robots
    robot = urdf(f'<link name="base"/><link name="b">{HEAVY}</link>{joint.replace("continuous", "fixed")}')
    assert robot_tables(robot)["rigid"]["robot/base"]["mass"] == 1
    screw = joint.replace("continuous", "fixed")
    world = urdf(f'<link name="world"/><link name="b">{HEAVY}</link>{screw.replace("base", "world")}')
    assert robot_tables(world)["joints"] == {"robot/world_base": {"kind": "fixed", "child": "robot/world"}}


def test_a_free_joint_can_be_fixed_and_a_welded_body_freed(model):
    robot = model(f'<worldbody><body name="a">{BALL}<freejoint name="j"/></body></worldbody>')
    held = {"robot/a_base": {"kind": "fixed", "child": "robot/a"}}
    assert "joints" not in robot_tables(robot)
    assert robot_tables(robot, fixed_base=True)["joints"] == held
    robot = model(f'<worldbody><body name="a">{BALL}</body></worldbody>')
    assert robot_tables(robot)["joints"] == held
    assert "joints" not in robot_tables(robot, fixed_base=False)


def test_who_touches_whom(model):
    bodies = (
        f'<body name="a">{BALL}<freejoint/><body name="b">{BALL}<joint/>'
        f'<body name="c">{BALL}<joint/></body></body></body>'
        f'<body name="d"><geom size="0.1" contype="2" conaffinity="2"/><freejoint/></body>'
        f'<body name="e">{BALL}<freejoint/></body>'
    )
    robot = model(f'<worldbody>{bodies}</worldbody><contact><exclude body1="e" body2="c"/></contact>')
    rigid = robot_tables(robot, "r")["rigid"]
    assert {name: body.get("no_contact") for name, body in rigid.items()} == {
        "r/a": ["r/b", "r/d"], "r/b": ["r/c", "r/d"], "r/c": ["r/d", "r/e"], "r/d": ["r/e"], "r/e": None,
    }  # fmt: skip
    alone = robot_tables(robot, "r", self_contact=False)["rigid"]
    assert [len(body.get("no_contact", ())) for body in alone.values()] == [4, 3, 2, 1, 0]


def test_a_link_without_collision_shapes_touches_nothing(urdf):
    red = '<material name="m"><color rgba="1 0 0 1"/></material>'
    drawn = f'<visual><geometry><box size="1 1 1"/></geometry>{red}</visual>'
    inertial = HEAVY.replace("<mass", '<origin xyz="0 0 3"/><mass')
    scene = robot_scene(urdf(f'<link name="a">{inertial}{drawn}</link>'))
    body = scene.tables["rigid"]["robot/a"]
    assert body["shape"] == {"kind": "sphere", "center": [0.0, 0.0, 3.0], "radius": 1e-3}
    assert body["color"] == [1.0, 0.0, 0.0] and "it touches nothing" in scene.report()


def test_an_impossible_inertia_is_mended_for_the_scene(urdf):
    odd = HEAVY.replace('izz="1"', 'izz="3"')
    scene = robot_scene(urdf(f'<link name="a">{odd}</link>'))
    assert scene.tables["rigid"]["robot/a"]["inertia"] == pytest.approx([1, 1, 2, 0, 0, 0])
    assert "lowered to the sum of the others" in scene.report()


def test_closures_end_at_bodies(model):
    inner = f'<body name="b" pos="1 0 0">{BALL}<joint name="j"/><body name="c" pos="0 0 1">{BALL}</body></body>'
    ties = '<connect name="t" body1="c" anchor="0 2 0"/><weld name="u" body1="b" body2="c"/><weld body1="a" body2="c"/>'
    robot = model(f'<worldbody><body name="a">{BALL}{inner}</body></worldbody><equality>{ties}</equality>')
    scene = robot_scene(robot, "r")
    joints = {name: table for name, table in scene.tables["joints"].items() if table.get("loop")}
    assert joints == {
        "r/t": {"kind": "ball", "child": "r/b", "anchor": [1.0, 2.0, 1.0], "loop": True},
        "r/weld2": {"kind": "fixed", "parent": "r/a", "child": "r/b", "anchor": [0.0, 0.0, 0.0], "loop": True},
    }
    assert "closure 'u' (m.xml line 1): left out: both ends are parts of one body" in scene.report()


def test_actuators_become_motors(model):
    joints = BALL + '<joint name="j" range="-90 90" actuatorfrcrange="-7 7"/><joint name="k" type="slide"/>'
    drives = (
        '<motor name="m" joint="j" gear="5"/><position name="p" joint="j" kp="8" kv="2" forcerange="-9 9"/>'
        '<velocity name="v" joint="k" kv="3" gear="2"/>'
        '<general name="g" joint="k" gainprm="4" biastype="affine" biasprm="1 -2 -3"/>'
        '<general name="off" joint="k" biastype="affine" biasprm="0 2 0"/>'
    )
    robot = model(f"<worldbody><body>{joints}</body></worldbody><actuator>{drives}</actuator>")
    scene = robot_scene(robot, "r", joints={"j": 0.5})
    servo = "position_motor"
    still, bent = {"kind": "constant", "value": 0.0}, {"kind": "constant", "value": 0.5}
    assert scene.tables["actuators"] == {
        "r/m": {"joint": "r/j", "kind": "motor", "strength": 5.0, "signal": still},
        "r/p": {"joint": "r/j", "kind": servo, "stiffness": 8.0, "damping": 2.0, "limit": 7.0, "signal": bent},
        "r/v": {"joint": "r/k", "kind": "velocity_motor", "damping": 12.0, "signal": still},
        "r/g": {"joint": "r/k", "kind": "position_motor", "stiffness": 2.0, "damping": 3.0, "signal": still},
    }  # fmt: skip
    report = scene.report()
    assert "keep the signal within ±1.4" in report and "'off'" in report and "left out" in report
    assert "the signal is the target: 2 · control + 0.5" in report and "0.5 · control + 0" in report


def test_initial_coordinates_outside_the_limits_are_reported(model):
    robot = model(f'<worldbody><body>{BALL}<joint name="j" range="30 70"/></body></worldbody>')
    assert "initial position of joint 'j'" in robot_scene(robot).report()
    assert robot_scene(robot, joints={"j": 1.0}).report() == ""


@pytest.mark.parametrize("kind", ["open", "flat", "closed"])
def test_collision_meshes_are_closed_filled_or_boxed(urdf, tmp_path, kind):
    corners = "".join(f"v {x} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1))
    quads = ((1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4))
    faces = [f"f {a} {b} {c}\n" for a, b, c, d in quads for a, b, c in ((a, b, c), (a, c, d))]
    kept = {"open": faces[1:], "flat": faces[:2], "closed": faces}[kind]
    (tmp_path / "c.obj").write_text(corners + "".join(kept))
    shape = '<collision><origin xyz="0 0 3"/><geometry><mesh filename="c.obj" scale="2 2 2"/></geometry></collision>'
    scene = robot_scene(urdf(f'<link name="a">{HEAVY}{shape}</link>'), folder=tmp_path)
    table = scene.tables["rigid"]["robot/a"]["shape"]
    said = {"open": "filled (repair = true)", "flat": "the box around it stands for it", "closed": ""}[kind]
    assert said in scene.report() and bool(said) == bool(scene.report())
    assert table["kind"] == ("box" if kind == "flat" else "mesh")
    assert table.get("file", "c.obj") == "c.obj"
    middle = resolve_shape(table, 3, folder=tmp_path).centre
    assert middle == pytest.approx([0 if kind == "flat" else 1, 1, 4], abs=2e-3)


def test_names_are_those_a_scene_allows(model):
    robot = model(
        f'<worldbody><body name="a b"><freejoint name="1"/>{BALL}</body><body name="a.b">{BALL}</body></worldbody>'
    )
    assert set(robot_tables(robot, "r")["rigid"]) == {"r/a_b", "r/a_b_2"}
    with pytest.raises(ValueError, match="name = '1r': must be letters"):
        robot_tables(robot, "1r")
    with pytest.raises(ValueError, match="must be finite"):
        robot_tables(robot, "r", position=[0, np.nan, 0])


def test_meshes_in_the_file_need_a_folder():
    robot = read_robot(HERE / "models/orientations.xml")
    with pytest.raises(ValueError, match="the file holds a mesh itself; say folder"):
        robot_tables(robot)


@pytest.mark.parametrize(
    "table",
    [
        {"kind": "box", "center": [1, 2, 3], "size": [1, 2, 3]},
        {"kind": "sphere", "center": [1, 2, 3], "radius": 1},
        {"kind": "capsule", "start": [1, 2, 3], "end": [2, 2, 2], "radius": 1},
        {"kind": "cylinder", "start": [1, 2, 3], "end": [2, 2, 2], "radius": 1},
        {"kind": "ellipsoid", "center": [1, 2, 3], "radii": [1, 2, 3]},
        {"kind": "plane", "point": [1, 2, 3], "normal": [1, 0, 1]},
        {
            "kind": "placed",
            "shape": {"kind": "box", "lower": [0, 0, 0], "upper": [1, 2, 3]},
            "rotation": [1, 0, 0],
            "position": [0, 1, 0],
        },
        {"kind": "box", "lower": [0, 0, 0], "upper": [1, 2, 3]},
    ],
    ids=lambda table: table["kind"],
)
@pytest.mark.parametrize("vector", [(0.0, 0.0, 0.0), (0.3, -1.2, 0.8)])
def test_posed_shapes_are_the_shapes_posed(table, vector):
    pose = Pose.of([3.0, -1.0, 0.5], vector)
    points = np.random.default_rng(0).uniform(-6, 6, (500, 3))
    there = resolve_shape(posed(table, pose), 3).signed_distance(points)
    here = resolve_shape(table, 3).signed_distance((points - pose.position) @ pose.turn)
    assert there == pytest.approx(here, abs=1e-12)
    assert solid_of(Geometry(table, pose)).signed_distance(points) == pytest.approx(here, abs=1e-12)


def test_rotation_vectors_undo_rotation_matrices():
    rng = np.random.default_rng(0)
    for angle in (0.0, 1e-12, 1e-5, 0.5, 3.0, np.pi - 1e-9, np.pi):
        for _ in range(20):
            axis = rng.normal(size=3)
            turn = rotation_matrix(angle * axis / np.linalg.norm(axis), 3)
            assert rotation_matrix(rotation_vector(turn), 3) == pytest.approx(turn, abs=1e-14)
    assert np.array_equal(rotation_vector(np.eye(3)), np.zeros(3))


def test_files_are_looked_for_but_not_outside(tmp_path):
    (tmp_path / "a.stl").write_text("")
    folder = tmp_path / "x" / "y"
    folder.mkdir(parents=True)
    assert find_file("a.stl", folder) == tmp_path / "a.stl"
    assert find_file(f"file://{tmp_path / 'a.stl'}", folder) == tmp_path / "a.stl"
    assert find_file("package://pkg/a.stl", folder) == tmp_path / "a.stl"
    assert find_file("b.stl", folder) is None and find_file("/nowhere/a.stl", folder) is None
