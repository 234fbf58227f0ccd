"""``taichi-sim import``: a robot file becomes a scene file."""

import pytest

from taichi_sim import Scene
from taichi_sim.data import data_root

QUADRUPED = data_root() / "scenes" / "robots" / "quadruped.urdf"
MODEL = """<mujoco model="m"><option gravity="0 0 -2"/><worldbody><light/><geom name="floor" type="plane" size="1 1 1"/>
<body name="a" pos="0 0 1"><freejoint/><geom size="0.1"/>
<body name="b"><joint name="j"/><geom size="0.1"/></body></body>
</worldbody><actuator><motor name="m" joint="j"/></actuator></mujoco>"""


def test_our_quadruped_as_a_scene(cli, tmp_path):
    out = tmp_path / "dog.toml"
    answer = cli("import", QUADRUPED, "--stiffness", "40", "--damping", "1", "--name", "dog", "--out", out)
    assert answer.code == 0 and "13 bodies, 12 joints, 12 actuators" in answer.out
    scene = Scene.load(out)
    assert sum(float(body.mass) for body in scene.rigid.values()) == pytest.approx(13.04)
    assert scene.joints["dog_rear_left_knee"].parent == "dog_rear_left_thigh"
    assert scene.actuators["dog_rear_left_knee"].parameters["limit"] == 30.0


def test_what_was_not_understood_is_said(cli, tmp_path):
    (tmp_path / "m.xml").write_text(MODEL)
    answer = cli("import", tmp_path / "m.xml", "--out", tmp_path / "m.toml")
    assert answer.code == 0 and "<light> in <worldbody> (m.xml line 1): only drawn" in answer.out
    scene = Scene.load(tmp_path / "m.toml")
    assert list(scene.gravity) == [0, 0, -2] and "robot_floor" in scene.obstacles
    same = Scene.from_mjcf(tmp_path / "m.xml")
    assert list(same.rigid) == list(scene.rigid) and list(same.joints) == list(scene.joints)


def test_a_base_can_be_fixed(cli, tmp_path):
    assert cli("import", QUADRUPED, "--fixed", "--out", tmp_path / "dog.toml").code == 0
    assert Scene.load(tmp_path / "dog.toml").joints["robot_trunk_base"].kind == "fixed"
    assert "robot_trunk_base" in Scene.from_urdf(QUADRUPED, fixed_base=True).joints


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere.urdf", "--out", "x.toml"], "cannot be read"),
        ([QUADRUPED], "--out"),
        ([QUADRUPED, "--out", "x.json"], "must end in .toml"),
        ([QUADRUPED, "--out", "x.toml", "--name", "1"], "must be letters"),
        ([QUADRUPED, "--out", "x.toml", "--stiffness", "soft"], "invalid float"),
        ([QUADRUPED, "--out", "x.toml", "--damping", "1"], "--stiffness gives: give it too"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(cli, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    answer = cli("import", *words)
    assert answer.code == 2 and says in answer.err and len(answer.err.splitlines()) == 1
    assert not list(tmp_path.glob("x.*"))
