"""Masses, inertias, forward kinematics and mass matrices of robots as MuJoCo has them, where it is installed."""

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from mechanics import frames, mass_matrix

from taichi_sim.data import data_root
from taichi_sim.scene.importers import forward, read_robot, robot_tables

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install mujoco gymnasium pybullet")

HERE = Path(__file__).parent
QUADRUPED = data_root() / "scenes" / "robots" / "quadruped.urdf"


def inside(package: str, folder: str, pattern: str) -> list[Path]:
    """Files in an installed package, which is not imported."""
    found = importlib.util.find_spec(package)
    places = [] if found is None else list(found.submodule_search_locations or [])
    return sorted(Path(places[0], folder).glob(pattern)) if places else []


GYMNASIUM = inside("gymnasium", "envs/mujoco/assets", "*.xml")
PYBULLET = [
    file
    for name in (
        "r2d2.urdf", "kuka_iiwa/model.urdf", "franka_panda/panda.urdf", "laikago/laikago_toes_zup.urdf", "a1/a1.urdf",
        "cartpole.urdf", "pendulum5.urdf", "quadruped/minitaur.urdf", "aliengo/aliengo.urdf", "humanoid/humanoid.urdf",
    )
    for file in inside("pybullet_data", "", name)
]  # fmt: skip


def reference(file: Path):
    """MuJoCo's model; of URDF without its shapes, which it would weigh, and with all links kept."""
    if file.suffix == ".xml":
        return mujoco.MjModel.from_xml_path(str(file))
    root = ET.fromstring(file.read_bytes().strip(b"\0 \r\n\t"))
    for link in root.findall("link"):
        for drawn in (*link.findall("visual"), *link.findall("collision")):
            link.remove(drawn)
    settings = ET.SubElement(root, "mujoco")
    ET.SubElement(settings, "compiler", fusestatic="false", inertiafromgeom="false")
    return mujoco.MjModel.from_xml_string(ET.tostring(root).decode())


def body_ids(robot, model):
    """MuJoCo's number of every link: its name, or for links without one, its place."""
    names = {mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, i): i for i in range(model.nbody)}
    return {link.name: names.get(link.name, number + 1) for number, link in enumerate(robot.links)}


def drawn_coordinates(robot, model, data, rng):
    """Random coordinates, written into MuJoCo's data and returned as ours."""
    given = {}
    moving = [joint for joint in robot.joints if joint.kind != "fixed"]
    names = {mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, i): i for i in range(model.njnt)}
    for number, joint in enumerate(moving):
        at = model.jnt_qposadr[names.get(joint.name, number)]
        if joint.kind in ("hinge", "prismatic"):
            data.qpos[at] = given[joint.name] = rng.uniform(-1.5, 1.5)
            continue
        vector, place, quaternion = rng.normal(size=3), rng.normal(size=3), np.zeros(4)
        angle = np.linalg.norm(vector)
        mujoco.mju_axisAngle2Quat(quaternion, vector / angle, angle)
        free = joint.kind == "free"
        given[joint.name] = np.concatenate([place, vector]) if free else vector
        data.qpos[at : at + (7 if free else 4)] = np.concatenate([place, quaternion]) if free else quaternion
    return given


@pytest.mark.parametrize(
    "file", [HERE / "models/orientations.xml", QUADRUPED, *GYMNASIUM, *PYBULLET], ids=lambda f: f.stem
)
def test_robots_are_those_of_mujoco(file):
    try:
        model = reference(file)
    except ValueError as error:
        pytest.skip(f"MuJoCo refuses the file: {error}")
    robot, data, rng = read_robot(file), mujoco.MjData(model), np.random.default_rng(0)
    ids = body_ids(robot, model)
    assert robot.mass == pytest.approx(model.body_mass.sum(), rel=1e-6)
    for link in robot.links:
        number = ids[link.name]
        if link.body is None:
            assert model.body_mass[number] < 1e-12
            continue
        axes = np.zeros(9)
        mujoco.mju_quat2Mat(axes, model.body_iquat[number])
        axes = axes.reshape(3, 3)
        inertia = axes * model.body_inertia[number] @ axes.T
        assert link.body.mass == pytest.approx(model.body_mass[number], rel=1e-6)
        assert link.body.center == pytest.approx(model.body_ipos[number], abs=1e-6)
        assert link.body.inertia == pytest.approx(inertia, rel=1e-6, abs=1e-6 * np.abs(inertia).max())
    for _ in range(5):
        given = drawn_coordinates(robot, model, data, rng)
        mujoco.mj_kinematics(model, data)
        poses = forward(robot, given)
        for link in robot.links:
            assert poses[link.name].position == pytest.approx(data.xpos[ids[link.name]], abs=1e-6)
            assert poses[link.name].turn == pytest.approx(data.xmat[ids[link.name]].reshape(3, 3), abs=1e-6)


@pytest.mark.parametrize(
    "file", [HERE / "models/orientations.xml", QUADRUPED, *GYMNASIUM, *PYBULLET], ids=lambda f: f.stem
)
def test_tables_have_the_mass_matrix_of_mujoco(file, tmp_path):
    try:
        model = reference(file)
    except ValueError as error:
        pytest.skip(f"MuJoCo refuses the file: {error}")
    robot, data = read_robot(file, visuals=False), mujoco.MjData(model)
    given = drawn_coordinates(robot, model, data, np.random.default_rng(1))
    fixed = None if file.suffix == ".xml" else True
    tables = robot_tables(robot, "bot", joints=given, fixed_base=fixed, folder=tmp_path)
    matrix, rows = mass_matrix(tables, tmp_path)
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_forward(model, data)
    ids, poses = body_ids(robot, model), frames(tables, tmp_path)
    for link in robot.links:
        if (name := f"bot/{link.name}") in poses:
            assert poses[name].position == pytest.approx(data.xpos[ids[link.name]], abs=1e-6)
            assert poses[name].turn == pytest.approx(data.xmat[ids[link.name]].reshape(3, 3), abs=1e-6)
    for row, unit in zip(full, np.eye(model.nv), strict=True):
        mujoco.mj_mulM(model, data, row, unit)
    assert matrix.shape == full.shape
    names = {mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, i): i for i in range(model.njnt)}
    free = {joint.child: joint.name for joint in robot.joints if joint.kind == "free"}
    order = []
    for row, (joint, number) in enumerate(rows):
        plain = joint.removeprefix("bot/")
        plain = free.get(plain, plain)
        order.append(model.jnt_dofadr[names[plain]] + number if plain in names else row)
    # a body between two joints of a chain has a millionth of the mass
    assert matrix == pytest.approx(full[np.ix_(order, order)], abs=3e-6 * np.abs(full).max())


def test_joints_and_actuators_are_those_of_mujoco():
    file = HERE / "models/orientations.xml"
    model, robot = reference(file), read_robot(file)
    for joint in robot.joints:
        number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint.name)
        row, at = model.jnt_dofadr[number], model.jnt_qposadr[number]
        assert joint.damping == pytest.approx(model.dof_damping[row])
        assert joint.friction == pytest.approx(model.dof_frictionloss[row])
        assert joint.armature == pytest.approx(model.dof_armature[row])
        assert joint.stiffness == pytest.approx(model.jnt_stiffness[number])
        assert (joint.upper is not None) == bool(model.jnt_limited[number])
        if joint.kind in ("hinge", "prismatic"):
            assert joint.rest == pytest.approx(model.qpos_spring[at])
            assert joint.reference == pytest.approx(model.qpos0[at])
            if joint.upper is not None:
                assert [joint.lower, joint.upper] == pytest.approx(model.jnt_range[number])
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    poses = forward(robot, robot.keyframes["stand"])
    data.qvel[:] = np.linspace(-1, 1, model.nv)
    data.ctrl[:] = 0.7
    data.actuator("thumb").ctrl = 0.0  # left out: it pulls at a site
    mujoco.mj_forward(model, data)
    for link in robot.links:
        assert poses[link.name].position == pytest.approx(data.body(link.name).xpos, abs=1e-9)
    for actuator in robot.actuators:
        row, at = (model.joint(actuator.joint).dofadr[0], model.joint(actuator.joint).qposadr[0])
        law = actuator.gain * 0.7 + actuator.bias @ np.array([1.0, data.qpos[at], data.qvel[row]])
        if actuator.lower is not None:
            law = np.clip(law, actuator.lower, actuator.upper)
        assert law == pytest.approx(data.qfrc_actuator[row], rel=1e-9)
    assert robot.gravity == pytest.approx(model.opt.gravity) and robot.timestep == model.opt.timestep
