"""URDF files: what they say, what was not understood, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from taichi_sim.core.errors import SceneError
from taichi_sim.scene.importers import forward, read_robot
from taichi_sim.scene.importers.robot import faults, group_bodies
from taichi_sim.scene.pose import rotation_matrix

MODELS = Path(__file__).parent / "models"
CUBE = "".join(f"v {x} {y} {z}\n" for x in (0, 100) for y in (0, 100) for z in (0, 100)) + "".join(
    f"f {a} {b} {c}\n"
    for a, b, c, d in ((1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4))
    for a, b, c in ((a, b, c), (a, c, d))
)
HEAVY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'


def link(name: str, inside: str = HEAVY) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(
    name: str, parent: str, child: str, kind: str = "revolute", inside: str = '<limit lower="-1" upper="1"/>'
) -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def write(folder: Path, *parts: str, root: str = '<robot name="r">') -> Path:
    file = folder / "r.urdf"
    file.write_text(root + "\n" + "\n".join(parts) + "\n</robot>\n", encoding="utf-8")
    return file


@pytest.fixture
def arm(tmp_path):
    """The arm, in a workspace as ROS lays it out."""
    package = tmp_path / "src" / "arm_description"
    (package / "meshes").mkdir(parents=True)
    (package / "urdf").mkdir()
    (package / "meshes" / "boom.obj").write_text(CUBE)
    file = package / "urdf" / "arm.urdf"
    file.write_text((MODELS / "arm.urdf").read_text(encoding="utf-8"), encoding="utf-8")
    return read_robot(file)


def test_links_joints_and_shapes_are_read(arm):
    assert [one.name for one in arm.links] == ["base_link", "column", "table", "boom", "camera"]
    assert arm.link("base_link").body is None and arm.mass == pytest.approx(7.5)
    kinds = {one.name: one.kind for one in arm.joints}
    assert kinds == {"mount": "fixed", "turn": "hinge", "slide": "prismatic", "screw": "fixed"}
    turn, slide = arm.joints[1], arm.joints[2]
    assert turn.axis == pytest.approx([0, 0, 1]) and turn.lower is None and turn.upper is None
    assert (turn.damping, turn.friction, turn.effort, turn.speed) == (0.4, 0.05, 12, 3)
    assert (slide.lower, slide.upper, slide.effort) == (-0.1, 0.4, 50)
    column, (plate, block), (boom,) = (arm.link(n).collision for n in ("column", "table", "boom"))
    assert column[0].shape == {"kind": "cylinder", "start": [0, 0, -0.5], "end": [0, 0, 0.5], "radius": 0.1}
    assert arm.link("column").visual[0].color == (0.9, 0.1, 0.1)
    assert plate.name == "plate" and plate.shape["size"] == [0.4, 0.2, 0.1]
    assert block.pose.turn == pytest.approx(rotation_matrix(np.array([0.3, 0, 0]), 3))
    assert boom.shape["scale"] == 0.001 and Path(boom.shape["file"]).name == "boom.obj"


def test_an_inertia_is_turned_into_its_link(arm):
    """A quarter turn about z: what was along x is along y."""
    body = arm.link("table").body
    assert body.center == pytest.approx([0.1, 0, 0.05])
    expected = [[0.03, -0.001, 0.003], [-0.001, 0.01, 0.002], [0.003, 0.002, 0.035]]
    assert body.inertia == pytest.approx(np.array(expected), abs=1e-15)


def test_forward_kinematics_by_hand(arm):
    poses = forward(arm, {"turn": np.pi / 2, "slide": 0.2})
    # the table's frame is turned by a quarter, the joint turns another one: the boom points along -x
    assert poses["table"].position == pytest.approx([0, 0, 1])
    assert poses["boom"].position == pytest.approx([-0.5, 0, 1.05])
    assert poses["camera"].position == pytest.approx([-1.0, 0, 1.15])
    with pytest.raises(ValueError, match=r"unknown joint 'slid'; did you mean 'slide'\?"):
        forward(arm, {"slid": 0.1})
    with pytest.raises(ValueError, match="1 finite coordinates"):
        forward(arm, {"slide": [0.1, 0.2]})


def test_fixed_links_weigh_together(arm):
    """Parallel axes, by hand: boom and camera along x, the camera turned about y."""
    body = group_bodies(arm, forward(arm, {"turn": -np.pi / 2}))["boom"]
    turn = rotation_matrix(np.array([0, 0.6, 0]), 3)
    boom = np.array([0.3, 0, 1.05])
    camera = boom + [0.5, 0, 0.1] + turn @ [0.02, 0, 0]
    centre = (boom + 0.5 * camera) / 1.5
    arms = [(1.0, boom - centre, np.diag([0.001, 0.01, 0.01]))]
    arms.append((0.5, camera - centre, turn @ np.diag([0.001, 0.002, 0.0025]) @ turn.T))
    expected = sum(own + m * (a @ a * np.eye(3) - np.outer(a, a)) for m, a, own in arms)
    assert body.mass == 1.5 and body.center == pytest.approx(centre)
    assert body.inertia == pytest.approx(expected, abs=1e-14)
    assert not list(faults(arm))


def test_what_was_not_understood_is_reported(arm):
    lines = arm.report().splitlines()
    assert any(line.startswith("<mimic> in <joint> (arm.urdf line 31)") and "free to move" in line for line in lines)
    assert any("<safety_controller>" in line for line in lines)
    assert any("<gazebo>" in line for line in lines) and any("<transmission>" in line for line in lines)
    assert len(lines) == 4


def test_the_same_remark_stands_once_with_its_number(tmp_path):
    file = write(tmp_path, *(link(n, HEAVY + "<sensor/>") for n in "abc"), joint("x", "a", "b"), joint("y", "b", "c"))
    assert read_robot(file).report() == "<sensor> in <link> (r.urdf line 2 and 2 more): not read"


def test_planar_floating_and_spherical_joints(tmp_path):
    planar = joint("p", "a", "b", "planar", '<axis xyz="0 0 1"/>')
    file = write(
        tmp_path,
        *map(link, "abcd"),
        planar,
        joint("f", "b", "c", "floating", ""),
        joint("s", "c", "d", "spherical", ""),
    )
    robot = read_robot(file)
    assert [(one.name, one.kind) for one in robot.joints] == [
        ("p_x", "prismatic"), ("p_y", "prismatic"), ("p_turn", "hinge"), ("f", "free"), ("s", "ball"),
    ]  # fmt: skip
    first, second, axis = (one.axis for one in robot.joints[:3])
    assert np.cross(first, second) == pytest.approx(axis)
    pose = forward(robot, {"p_x": 2.0, "p_y": 3.0, "p_turn": 0.5})["b"]
    assert pose.position == pytest.approx(2 * first + 3 * second)
    assert pose.turn == pytest.approx(rotation_matrix(0.5 * axis, 3))
    assert "two prismatic joints and a hinge" in robot.report()


def test_limits_that_limit_nothing_are_reported(tmp_path):
    missing = joint("x", "a", "b", "revolute", "")
    upside_down = joint("y", "b", "c", "prismatic", '<limit lower="1" upper="-1"/>')
    robot = read_robot(write(tmp_path, *map(link, "abc"), missing, upside_down))
    assert [(one.lower, one.upper) for one in robot.joints] == [(None, None)] * 2
    assert "revolute joint without <limit>" in robot.report()
    assert "lower is not less than upper" in robot.report()


def test_mesh_files_are_found_beside_the_file_and_above(tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "cube.obj").write_text(CUBE)
    folder = tmp_path / "urdf"
    folder.mkdir()
    for name in ("../meshes/cube.obj", "meshes/cube.obj", "package://other_name/meshes/cube.obj"):
        shape = f'<collision><geometry><mesh filename="{name}" scale="1 -2 3"/></geometry></collision>'
        robot = read_robot(write(folder, link("a", HEAVY + shape)))
        table = robot.links[0].collision[0].shape
        assert Path(table["file"]).resolve() == (tmp_path / "meshes" / "cube.obj").resolve()
        assert table["stretch"] == [1, -2, 3]


def test_inertias_can_come_from_the_shapes(tmp_path):
    wrong = '<inertial><mass value="3"/><inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial>'
    shapes = (
        '<collision><origin xyz="0 0 1"/><geometry><box size="1 1 2"/></geometry></collision>'
        '<collision><origin xyz="0 0 2.5"/><geometry><box size="1 1 1"/></geometry></collision>'
    )
    file = write(tmp_path, link("a"), link("b", wrong + shapes), joint("x", "a", "b"))
    with pytest.raises(SceneError, match=r'moves and the inertia must be positive definite.*inertia = "shapes"'):
        read_robot(file)
    body = read_robot(file, inertia="shapes").link("b").body
    assert body.mass == pytest.approx(3) and body.center == pytest.approx([0, 0, 1.5])
    assert body.inertia == pytest.approx(3 / 12 * np.diag([10, 10, 2]))


def test_an_inertia_no_body_has_is_kept_and_reported(tmp_path):
    odd = HEAVY.replace('izz="1"', 'izz="3"')
    robot = read_robot(write(tmp_path, link("a", odd)))
    assert "exceeds the sum of the others, 1 + 1 kg m²; kept as it is" in robot.report()
    assert robot.links[0].body.inertia[2, 2] == 3


def test_a_light_dummy_between_fixed_joints_is_no_mistake(tmp_path):
    file = write(
        tmp_path,
        link("world", ""),
        link("a"),
        link("tool", ""),
        joint("x", "world", "a"),
        joint("y", "a", "tool", "fixed", ""),
    )
    assert read_robot(file).link("tool").body is None


MESH = '<collision><geometry><mesh filename="gone.stl"/></geometry></collision>'


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([], "has no <link>"),
        ([link("a"), link("a")], r"the link 'a' is given twice \(line 2\)"),
        ([link("a"), link("b"), joint("x", "a", "b"), joint("x", "a", "b")], "the joint 'x' is given twice"),
        ([link("a"), link("b")], r"is not joined to the rest: the robot has 2 roots \(a, b\)"),
        ([link("arm"), link("b"), joint("x", "arn", "b")], "unknown link 'arn'; did you mean 'arm'\\?"),
        ([link("a"), link("b"), joint("x", "a", "elbow")], "unknown link 'elbow'.*the child of joint"),
        (
            [*map(link, "abc"), joint("x", "a", "c"), joint("y", "b", "c")],
            "link 'c' has two parents: joint 'x' moves it too",
        ),
        ([*map(link, "ab"), joint("x", "a", "b"), joint("y", "b", "a")], "the joints form a loop"),
        ([*map(link, "abc"), joint("x", "b", "c"), joint("y", "c", "b")], "link 'b' is part of a loop of joints"),
        ([link("a"), link("b"), joint("x", "a", "a")], "loop|not joined"),
        ([link("a"), link("b", ""), joint("x", "a", "b")], "link 'b' moves but has no mass; give it an <inertial>"),
        ([link("a", HEAVY.replace('mass value="1"', 'mass value="-1"'))], "the mass must be ≥ 0 kg"),
        ([link("a", HEAVY.replace('ixx="1"', 'ixx="-1"'))], "link 'a': the inertia must be positive definite"),
        ([link("a", HEAVY.replace('ixy="0"', 'ixy="2"'))], "link 'a': the inertia must be positive definite"),
        ([link("a", HEAVY.replace('ixx="1"', 'ixx="nan"'))], "ixx = 'nan': must be finite"),
        ([link("a", HEAVY.replace('ixx="1"', 'ixx="1,5"'))], "must be numbers separated by blanks"),
        ([link("a", HEAVY.replace('ixx="1"', 'ixx="${m}"'))], "is xacro, a macro language; expand it first"),
        (["<xacro:include filename='x'/>", link("a")], "is xacro"),
        ([link("a", HEAVY + MESH)], "filename = 'gone.stl': no such mesh file.*put it there or correct the name"),
        ([link("a", HEAVY + MESH.replace("collision", "visual"))], "no such mesh file"),
        ([link("a", HEAVY + "<collision/>")], "has no <geometry>"),
        (
            [link("a", HEAVY + '<collision><geometry><box size="1 1"/></geometry></collision>')],
            "must be 3 numbers, has 2",
        ),
        ([link("a", HEAVY + '<collision><geometry><sphere radius="-1"/></geometry></collision>')], "must be ≥ 0 m"),
        ([link("a", HEAVY + HEAVY)], "<inertial> is given twice"),
        ([link("a"), link("b"), joint("x", "a", "b", "hinge")], "unknown value 'hinge'; allowed: continuous"),
        (
            [link("a"), link("b"), joint("x", "a", "b", "revolute", '<axis xyz="0 0 0"/>')],
            "xyz = '0 0 0': must not be zero",
        ),
        (
            [link("a"), link("b"), joint("x", "a", "b", "fixed", '<origin rpy="0 0"/>')],
            "rpy = '0 0': must be 3 numbers",
        ),
        ([link("a"), link("b"), joint("x", "a", "b", "continuous", '<dynamics damping="-1"/>')], "must be ≥ 0"),
        ([link("a"), '<joint name="x" type="fixed"><parent link="a"/></joint>'], "has no <child"),
        ([link("a"), "<joint type='fixed'/>"], 'the attribute "name" is missing'),
    ],
)
def test_mistakes_are_refused_in_one_line_that_names_file_and_line(tmp_path, parts, said):
    file = write(tmp_path, *parts)
    with pytest.raises(SceneError, match=said) as error:
        read_robot(file)
    text = str(error.value)
    assert "\n" not in text and text.startswith(f"{file}: line ")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<robot>\n<link name='a'>\n</robot>", "line 3: is not XML: mismatched tag"),
        (b"<robot name='a'>\n<link name=a/></robot>", "line 2: is not XML"),
        (b"\n\n<?xml version='1.0'?>\n<robot>\n<link</robot>", "line 5: is not XML"),
        (b"", "is not XML: no element found"),
        (b"\xff\xfe\x00", "is not XML"),
        (b"[bodies.a]\n", "line 1: is not XML"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]>\n<robot>&b;</robot>', "line 1: document types and entities are refused"),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd">\n<robot/>', "document types and entities are refused"),
        (b"<robot>" + b"<a>" * 5000 + b"</a>" * 5000 + b"</robot>", "nested deeper than 200"),
        (b"<sdf version='1.6'/>", "is SDF; convert it to URDF"),
        (b"<mujocoinclude/>", "name the file that includes it"),
        (b"<svg/>", "is neither URDF .<robot>. nor MJCF .<mujoco>."),
    ],
)
def test_what_is_no_robot_is_refused(tmp_path, content, said):
    file = tmp_path / "x.xml"
    file.write_bytes(content)
    with pytest.raises(SceneError, match=said) as error:
        read_robot(file)
    assert "\n" not in str(error.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(SceneError, match=r"nowhere\.urdf: file: cannot be read: No such file"):
        read_robot(tmp_path / "nowhere.urdf")
    with pytest.raises(SceneError, match="is a folder"):
        read_robot(tmp_path)
    with pytest.raises(ValueError, match='must be "file" or "shapes"'):
        read_robot(tmp_path, inertia="guess")


def test_a_billion_laughs_end_at_the_first(tmp_path):
    file = tmp_path / "bomb.urdf"
    laughs = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(20))
    file.write_text(f'<!DOCTYPE r [<!ENTITY l0 "lol">{laughs}]><robot name="&l20;"/>')
    with pytest.raises(SceneError, match="refused"):
        read_robot(file)


def test_blank_lines_before_and_a_zero_byte_behind_do_no_harm(tmp_path):
    file = tmp_path / "r.urdf"
    file.write_bytes(b"\n\n<?xml version='1.0'?>\n<robot name='r'>" + link("a").encode() + b"</robot>\n\0")
    assert read_robot(file).name == "r"


def test_drawn_shapes_can_be_left_alone(tmp_path):
    file = write(tmp_path, link("a", HEAVY + MESH.replace("collision", "visual")))
    robot = read_robot(file, visuals=False)
    assert robot.links[0].visual == () and robot.report() == ""
