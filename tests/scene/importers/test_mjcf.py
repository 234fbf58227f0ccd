"""MJCF files: the common core, what was not understood, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from taichi_sim.core.errors import SceneError
from taichi_sim.scene.importers import forward, read_robot
from taichi_sim.scene.inertia import mass_properties
from taichi_sim.scene.pose import rotation_matrix
from taichi_sim.scene.shapes import resolve_shape

MODELS = Path(__file__).parent / "models"


@pytest.fixture
def model(tmp_path):
    """Reads a model from the text inside <mujoco>."""

    def reads(inside: str, **files: str):
        for name, text in files.items():
            (tmp_path / f"{name}.xml").write_text(text, encoding="utf-8")
        file = tmp_path / "m.xml"
        file.write_text(f'<mujoco model="m">{inside}</mujoco>', encoding="utf-8")
        return read_robot(file)

    return reads


def body(inside: str, world: str = "", **attributes: str) -> str:
    given = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<worldbody>{world}<body{given}>{inside}</body></worldbody>"


BALL = '<geom size="0.1"/>'


def test_a_model_with_everything_is_read():
    """The same file is compared with MuJoCo in test_reference_engine.py."""
    robot = read_robot(MODELS / "orientations.xml")
    assert [link.name for link in robot.links] == ["trunk", "thigh", "shin", "arm", "hand", "cart"]
    assert [(link.parent, bool(link.visual)) for link in robot.links][-1] == ("", False)
    kinds = [(joint.name, joint.kind, joint.parent) for joint in robot.joints]
    assert kinds[:3] == [("root", "free", ""), ("hip_roll", "hinge", "trunk"), ("hip_pitch", "hinge", "trunk")]
    assert robot.excludes == (("trunk", "shin"),)
    assert [geometry.name for geometry in robot.world] == ["floor", "post"]
    assert robot.link("trunk").collision[0].color == (0.1, 0.2, 0.9)
    assert robot.link("thigh").collision[0].color == (0.2, 0.4, 0.6)
    assert robot.link("shin").collision[1].kinds == 2 and robot.link("shin").collision[1].touches == 0
    assert set(robot.link("shin").markers) == {"sole"}
    (loop,) = robot.loops
    assert (loop.kind, loop.parent, loop.child) == ("ball", "hand", "shin")
    by_name = {actuator.name: actuator for actuator in robot.actuators}
    assert by_name["pitch"].gain == 120 and by_name["pitch"].bias == (0, -360, -18)
    assert (by_name["pitch"].lower, by_name["pitch"].upper) == (-27, 36)
    assert (by_name["roll"].control_lower, by_name["roll"].control_upper) == (-2, 2)
    assert "actuator <motor> on a site" in robot.report() and "<joint> in <equality>" in robot.report()


def test_density_and_mass_of_geoms(model):
    inside = '<geom type="box" size="0.1 0.2 0.3" density="500" pos="0 0 1"/><geom size="0.1" mass="2"/>'
    robot = model(body(inside, name="a"))
    box = mass_properties(resolve_shape({"kind": "box", "center": [0, 0, 1], "size": [0.2, 0.4, 0.6]}, 3), density=500)
    assert robot.mass == pytest.approx(box.mass + 2)
    assert robot.links[0].body.center == pytest.approx([0, 0, box.mass / (box.mass + 2)])


def test_a_mesh_weighs_what_the_solid_weighs_and_an_open_one_its_hull(model, tmp_path):
    corners = "0 0 0  1 0 0  0 1 0  0 0 1"
    closed = f'<asset><mesh name="t" vertex="{corners}" face="0 2 1  0 1 3  0 3 2  1 2 3"/></asset>'
    geom = '<geom type="mesh" mesh="t" density="6"/>'
    robot = model(closed + body(geom))
    assert robot.mass == pytest.approx(1) and robot.links[0].body.center == pytest.approx([0.25] * 3)
    assert np.diag(robot.links[0].body.inertia) == pytest.approx([0.075] * 3)
    assert robot.report() == ""
    robot = model(closed.replace("1 2 3", "0 1 2") + body(geom))
    assert robot.mass == pytest.approx(1) and "its convex hull weighs" in robot.report()


def test_where_the_inertia_comes_from(model):
    inertial = '<inertial pos="0 0 0" mass="7" diaginertia="1 1 1"/>' + BALL
    ball = 4 / 3 * np.pi
    for setting, mass in (("auto", 7), ("false", 7), ("true", ball)):
        assert model(f'<compiler inertiafromgeom="{setting}"/>' + body(inertial)).mass == pytest.approx(mass)
    grouped = '<geom size="0.1" group="3"/>' + BALL
    assert model('<compiler inertiagrouprange="0 2"/>' + body(grouped)).mass == pytest.approx(ball)
    assert model('<compiler settotalmass="3"/>' + body(inertial)).mass == pytest.approx(3)
    assert model('<compiler boundmass="9"/>' + body(inertial)).mass == pytest.approx(9)
    flat = inertial.replace("1 1 1", "1 1 4")
    assert "kept as it is" in model(body(flat)).report()
    balanced = model('<compiler balanceinertia="true"/>' + body(flat))
    assert balanced.links[0].body.inertia == pytest.approx(2 * np.eye(3))


def test_nested_classes_and_childclass(model):
    defaults = (
        '<default><joint damping="1"/><default class="a"><joint armature="2"/>'
        '<default class="b"><joint damping="3"/></default></default></default>'
    )
    joints = '<joint name="i"/><joint name="j" class="b" axis="1 0 0"/>'
    deep = f'<body childclass="b">{BALL}<joint name="l" armature="9"/></body>'
    inner = f'<body childclass="a">{BALL}<joint name="k" axis="0 1 0"/>{deep}</body>'
    found = {j.name: (j.damping, j.armature) for j in model(defaults + body(BALL + joints + inner)).joints}
    assert found == {"i": (1, 0), "j": (3, 2), "k": (1, 2), "l": (3, 9)}


def test_limits_angles_and_references(model):
    def joint(attributes, compiler=""):
        robot = model(f"<compiler {compiler}/>" + body(BALL + f"<joint {attributes}/>"))
        return robot.joints[0]

    assert joint('range="-90 180"').upper == pytest.approx(np.pi)
    assert joint('range="-1 2"', 'angle="radian"').upper == 2
    assert joint('range="-1 2" type="slide"').upper == 2
    assert joint('range="-1 2" limited="false"').upper is None
    assert joint('range="-1 2"', 'autolimits="false"').upper is None
    assert joint('ref="90" springref="45"').reference == pytest.approx(np.pi / 2)
    assert joint('actuatorfrcrange="-3 3"').effort == 3
    with pytest.raises(SceneError, match="limited needs range"):
        joint('limited="true"')
    with pytest.raises(SceneError, match="limited needs range"):
        joint('range="2 -1"')


def test_a_chain_of_joints_turns_in_order(model):
    """Two hinges beside each other: the second is carried by the first."""
    inside = BALL + '<joint name="i" axis="0 0 1" pos="1 0 0"/><joint name="j" axis="1 0 0" pos="0 0 2"/>'
    robot = model('<compiler angle="radian"/>' + body(inside, name="a", pos="0 5 0"))
    pose = forward(robot, {"i": 0.3, "j": -0.7})["a"]
    first, second = rotation_matrix(np.array([0, 0, 0.3]), 3), rotation_matrix(np.array([-0.7, 0, 0]), 3)
    carried = np.array([0, 0, 2]) - second @ [0, 0, 2]
    expected = np.array([0, 5, 0]) + np.array([1, 0, 0]) + first @ (carried - [1, 0, 0])
    assert pose.turn == pytest.approx(first @ second) and pose.position == pytest.approx(expected)


def test_free_and_ball_coordinates_and_key_frames(model):
    inner = f'<body name="b" pos="0 0 1">{BALL}<joint name="j" type="ball"/></body>'
    half = np.sqrt(0.5)
    key = f'<keyframe><key qpos="1 2 3 {half} 0 0 {half} {half} {half} 0 0" time="1"/></keyframe>'
    robot = model(body(BALL + '<freejoint name="i"/>' + inner, name="a", pos="0 0 9") + key)
    assert forward(robot)["a"].position == pytest.approx([0, 0, 9])
    at = robot.keyframes["key0"]
    assert at["i"] == pytest.approx([1, 2, 3, 0, 0, np.pi / 2]) and at["j"] == pytest.approx([np.pi / 2, 0, 0])
    poses = forward(robot, at)
    assert poses["b"].position == pytest.approx([1, 2, 4])
    assert poses["b"].turn @ [0, 1, 0] == pytest.approx([0, 0, 1])


def test_included_files_stand_where_they_are_named(model):
    part = "<mujocoinclude><default><geom density='2000'/></default></mujocoinclude>"
    shapes = f"<mujoco><include file='deep.xml'/>{BALL}</mujoco>"
    robot = model(
        '<include file="part.xml"/>' + body('<include file="shapes.xml"/>', name="a"),
        part=part,
        shapes=shapes,
        deep='<mujoco><geom size="0.2"/></mujoco>',
    )
    assert len(robot.links[0].collision) == 2
    assert robot.mass == pytest.approx(2000 * 4 / 3 * np.pi * (0.1**3 + 0.2**3))


def test_actuators_of_every_kind(model):
    joints = BALL + '<joint name="j"/><joint name="k" type="slide"/>'
    drives = (
        '<actuator><motor name="m" joint="j" gear="-5" forcerange="-1 3"/><position name="p" joint="j" kp="8" kv="2"/>'
        '<velocity name="v" joint="k" kv="3"/>'
        '<general name="g" joint="k" gainprm="2" biastype="affine" biasprm="1 -2 -3"/>'
        '<general name="plain" joint="k" gainprm="4" biasprm="9 9 9"/><muscle joint="j"/><motor tendon="t"/></actuator>'
    )
    found = {a.name: (a.gain, a.bias, a.lower, a.upper) for a in model(body(joints) + drives).actuators}
    assert found == {
        "m": (-5, (0, 0, 0), -15, 5),
        "p": (8, (0, -8, -2), None, None),
        "v": (3, (0, 0, -3), None, None),
        "g": (2, (1, -2, -3), None, None),
        "plain": (4, (0, 0, 0), None, None),
    }
    report = model(body(joints) + drives).report()
    assert "<muscle>" in report and "<motor> on a tendon" in report


def test_closures_between_bodies_the_world_and_sites(model):
    inner = f'<body name="b">{BALL}<joint/><site name="s" pos="0 1 0"/></body><site name="t" pos="0 1 0"/>'
    ties = (
        '<equality><connect body1="b" anchor="1 0 0"/><weld body1="a" body2="b"/>'
        '<connect site1="s" site2="t"/></equality>'
    )
    robot = model(body(BALL + inner, name="a") + ties)
    assert [(l.kind, l.parent, l.child, *l.anchor) for l in robot.loops] == [
        ("ball", "b", "", 1, 0, 0), ("fixed", "a", "b", 0, 0, 0), ("ball", "b", "a", 0, 1, 0),
    ]  # fmt: skip


def test_what_was_not_understood_is_reported(model):
    extra = (
        '<sensor><clock name="c"/></sensor><option density="3" solver="CG"/><compiler lengthrange="1"/>'
        '<default class="main"><geom solref="1 1"/><tendon/></default><custom/>'
    )
    robot = model(
        extra + body(BALL + '<camera/><composite type="grid"/><geom type="hfield" hfield="h"/>', mocap="true")
    )
    report = robot.report()
    for said in (
        "<sensor> in <mujoco>", 'attribute "density" of <option>', 'attribute "lengthrange" of <compiler>', "solref",
        "<camera> in <body>", "left out: expand it first", 'geom of type "hfield"', "mocap body (m.xml line 1)",
    ):  # fmt: skip
        assert said in report
    assert "solver" not in report and "tendon" not in report


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("", "has no <body> in <worldbody>"),
        (body('<geom size="0"/>'), "size = '0': must be > 0 m"),
        (body('<geom type="box" size="1 1"/>'), "a box needs 3 numbers in size"),
        (body('<geom type="cube" size="1"/>'), "unknown value 'cube'"),
        (body('<geom size="1" fromto="0 0 0 1 1 1"/>'), "a sphere has no fromto"),
        (body('<geom type="capsule" size="1" fromto="1 1 1 1 1 1"/>'), "the two ends are the same point"),
        (body('<geom size="1" quat="0 0 0 0"/>'), "quat = '0 0 0 0': must not be zero"),
        (body('<geom size="1" euler="0 0 1" quat="1 0 0 0"/>'), "has both quat and euler"),
        (body('<geom size="1" xyaxes="1 0 0 2 0 0"/>'), "must not be parallel"),
        (body('<geom size="1" pos="0 0 inf"/>'), "pos = '0 0 inf': must be finite"),
        (body('<geom size="1" mass="-1"/>'), "mass = '-1': must be ≥ 0"),
        (body('<geom size="1" class="x"/>'), "unknown default class 'x'; allowed: main"),
        (body('<geom type="mesh" mesh="x"/>'), "unknown mesh 'x'"),
        ('<asset><mesh name="x" file="gone.stl"/></asset>' + body('<geom type="mesh" mesh="x"/>'), "no such mesh file"),
        (
            '<asset><mesh name="x" vertex="0 0 0"/></asset>' + body('<geom type="mesh" mesh="x"/>'),
            "at least four points",
        ),
        (
            '<asset><mesh name="x" vertex="0 0 0 1 0 0 0 1 0 1 1 0"/></asset>' + body('<geom type="mesh" mesh="x"/>'),
            "lie in a plane",
        ),
        (body('<geom mesh="x" size="1"/>'), "fitting a sphere to a mesh is not understood"),
        (body('<geom size="1" shellinertia="true"/>'), "a hollow geom is not understood"),
        (body("<joint/>"), "moves but has no mass"),
        (body('<joint/><inertial pos="0 0 0" mass="1"/>'), "moves and the inertia must be positive definite"),
        (body('<inertial pos="0 0 0" mass="1" diaginertia="1 1 -1"/>'), "must be positive definite"),
        (
            body('<inertial pos="0 0 0" mass="1" diaginertia="1 1 1" fullinertia="1 1 1 0 0 0"/>'),
            "has both fullinertia",
        ),
        (
            body('<inertial pos="0 0 0" mass="1" quat="1 0 0 0" fullinertia="1 1 1 0 0 0"/>'),
            "fullinertia and an orientation",
        ),
        (body(BALL + '<joint axis="0 0 0"/>'), "axis = '0 0 0': must not be zero"),
        (body(BALL + '<joint type="screw"/>'), "unknown value 'screw'"),
        (body(BALL + '<joint damping="-1"/>'), "damping = '-1': must be ≥ 0"),
        (body(BALL + '<joint name="a"/><joint name="a"/>'), "a second joint 'a'"),
        (body(BALL + "<freejoint/><joint/>"), "a free joint must be the only joint"),
        (body(BALL + f"<body>{BALL}<freejoint/></body>"), "a free joint must be the only joint"),
        (body(BALL + f'<body name="a">{BALL}</body>', name="a"), "a second body 'a'"),
        (body(BALL, world="<joint/>"), "the world cannot have a joint"),
        ('<compiler coordinate="global"/>' + body(BALL), "global coordinates are out of use"),
        ('<compiler eulerseq="xyw"/>' + body(BALL), "must be three of x, y, z"),
        ('<compiler angle="grad"/>' + body(BALL), "unknown value 'grad'; did you mean 'radian'|allowed"),
        ('<default><default class="a"/><default class="a"/></default>' + body(BALL), "the class is given twice"),
        ("<default><default/></default>" + body(BALL), 'the attribute "class" is missing'),
        (body(BALL) + '<contact><exclude body1="a" body2="world"/></contact>', "unknown body 'a'"),
        (body(BALL) + '<actuator><motor joint="elbow"/></actuator>', "unknown joint 'elbow'"),
        (body(BALL) + "<actuator><motor/></actuator>", "drives nothing; name its joint"),
        (body(BALL) + '<equality><connect body1="a" anchor="0 0 0"/></equality>', "unknown body 'a'"),
        (body(BALL, name="a") + '<equality><connect body1="a"/></equality>', "needs an anchor"),
        (body(BALL) + '<keyframe><key qpos="1"/></keyframe>', "must be 0 numbers, has 1"),
        (body(BALL) + '<include file="gone.xml"/>', "file = 'gone.xml': no such file"),
        (body(BALL) + '<include file="m.xml"/>', "is included twice, or includes itself"),
    ],
)
def test_mistakes_are_refused_in_one_line(model, tmp_path, inside, said):
    with pytest.raises(ValueError, match=said) as error:
        model(inside)
    assert "\n" not in str(error.value) and str(error.value).startswith(f"{tmp_path / 'm.xml'}: ")


def test_files_that_include_each_other_end(model):
    with pytest.raises(SceneError, match="includes itself"):
        model(
            body(BALL) + '<include file="a.xml"/>',
            a='<mujoco><include file="b.xml"/></mujoco>',
            b='<mujoco><include file="a.xml"/></mujoco>',
        )
