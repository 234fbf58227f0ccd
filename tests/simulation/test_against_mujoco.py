"""A robot of a file moves under servos as in MuJoCo, where that is installed: joint positions within 2 % over 1 s."""

import numpy as np
import pytest

from taichi_sim import Scene, Signal, Simulation
from taichi_sim.data import data_root

FILE = data_root() / "scenes" / "robots" / "quadruped.urdf"
STIFFNESS, DAMPING, FRAME = 60.0, 1.5, 0.02
TIMES = FRAME * np.arange(50)


def target(t, i):
    """Coordinate joint ``i`` is sent to, constant within a frame."""
    return 0.4 * np.sin(2 * np.pi * t + 0.7 * i)


def reference() -> tuple[list[str], np.ndarray]:
    """Names of the joints and their coordinates (frames + 1, joints) by the reference engine, without contact."""
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_path(str(FILE))
    model.opt.timestep = 2e-4
    model.geom_contype[:], model.geom_conaffinity[:], model.jnt_limited[:] = 0, 0, 0
    data = mujoco.MjData(model)
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, i) for i in range(model.njnt)]
    each, found = round(FRAME / model.opt.timestep), []
    for t in TIMES:
        found.append(data.qpos.copy())
        for _ in range(each):
            goal = target(t, np.arange(model.nv))
            data.qfrc_applied[:] = STIFFNESS * (goal - data.qpos) - DAMPING * data.qvel
            mujoco.mj_step(model, data)
    return names, np.array([*found, data.qpos.copy()])


def test_quadruped_under_servos():
    names, expected = reference()
    drive = {"kind": "position_motor", "stiffness": STIFFNESS, "damping": DAMPING}
    scene = Scene.from_urdf(FILE, fixed_base=True, drive=drive)
    scene.duration, scene.frame_dt, scene.solver.dt = 1.0, FRAME, 5e-4
    for joint in scene.joints.values():
        joint.lower = joint.upper = None
    for body in scene.rigid.values():
        body.no_contact = ["*"]
    number = {f"robot_{name}": i for i, name in enumerate(names)}
    for actuator in scene.actuators.values():
        actuator.signal = Signal(kind="array", values=target(TIMES, number[str(actuator.joint)]))
        actuator.parameters.pop("limit", None)
    paths = [f"joints.robot_{name}.position" for name in names]
    with Simulation(scene, precision="f64") as sim:
        sim.run(record=paths)
        assert sim.rollout is not None
        q = np.stack([sim.rollout.observed[path] for path in paths], axis=1)
    assert np.abs(q - expected).max() < 0.02 * np.abs(expected).max()
