"""One robot of a file in MuJoCo and here: the same joints, servos, start and floor. MuJoCo is needed for it.

What the two take differently from a file, or not at all, is left out of both: limits of joints and of efforts, contact
of a robot with itself, the file's friction (1 instead) and actuators, ``<equality>`` and ``<mimic>``, the fluid around,
and the margin of MuJoCo's contacts, a cushion on which robots float. MuJoCo's contacts are as hard as those here (with
its defaults feet under load creep, and a robot stands millimetres lower).
"""

import importlib
import importlib.util
import warnings
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import taichi_sim as ts
from taichi_sim.scene.importers import read_robot
from taichi_sim.scene.importers.scene import scene_of

#: Seconds of a frame, within which commands are constant, and of a step of the reference.
FRAME, FINE = 0.02, 2e-4
#: Kinds of joints as MuJoCo counts them.
FREE, SLIDE, HINGE = 0, 2, 3
#: Half of the side of a box that nothing reaches, m.
FAR = 99.0


@dataclass(frozen=True)
class Robot:
    """A file in an installed package. ``free``: whether its base floats (MJCF files say so themselves). ``base`` is the
    link that is looked at, ``height`` (m) where it begins, ``stance`` the joints' coordinates there by the end of
    their names, ``gains`` (N m/rad, N m s/rad) what holds them."""

    name: str
    package: str
    path: str
    free: bool = False
    base: str = ""
    height: float = 0.0
    stance: dict[str, float] = field(default_factory=dict)
    gains: tuple[float, float] = (0.0, 0.0)

    @property
    def file(self) -> "Path | None":
        """The file, or ``None`` where the package is not installed. The package is not imported."""
        found = importlib.util.find_spec(self.package)
        places = [] if found is None else list(found.submodule_search_locations or [])
        return next((file for place in places if (file := Path(place, self.path)).is_file()), None)


@dataclass(frozen=True)
class Trial:
    """What is done with a robot: over ``duration`` (s) servos of ``stiffness`` and ``damping`` (joints,) follow
    ``targets`` (frames, joints), from coordinates ``start`` and velocities ``rate`` (joints,); on a floor or nowhere.
    Without stiffness nothing drives it."""

    names: list[str]
    duration: float
    start: np.ndarray
    rate: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    targets: np.ndarray
    floor: bool = False

    @property
    def driven(self) -> bool:
        """Whether anything drives it."""
        return bool(self.stiffness.any())


@dataclass(frozen=True)
class Motion:
    """Coordinates of joints (frames + 1, joints), and height (frames + 1,) of the base."""

    q: np.ndarray
    height: np.ndarray


class Reference:
    """A robot in MuJoCo."""

    def __init__(self, robot: Robot, floor: bool = False) -> None:

        self.mujoco = importlib.import_module("mujoco")
        self.robot, self.floor = robot, floor
        self.model = self._compiled(None)
        ones = [i for i in range(self.model.njnt) if self.model.jnt_type[i] in (SLIDE, HINGE)]
        self.names = [self.model.joint(i).name for i in ones]
        self.slides = np.array([self.model.jnt_type[i] == SLIDE for i in ones])
        self._at, self._dof = self.model.jnt_qposadr[ones], self.model.jnt_dofadr[ones]

    def _spec(self) -> Any:
        file, mujoco = self.robot.file, self.mujoco
        assert file is not None
        if file.suffix == ".xml":
            return mujoco.MjSpec.from_file(str(file))
        root = ET.fromstring(file.read_bytes().strip(b"\0 \r\n\t"))
        for link in root.findall("link"):
            for drawn in (*link.findall("visual"), *([] if self.floor else link.findall("collision"))):
                link.remove(drawn)
        settings = {"fusestatic": "false", "inertiafromgeom": "false", "meshdir": str(file.parent)}
        ET.SubElement(ET.SubElement(root, "mujoco"), "compiler", settings, strippath="false")
        spec = mujoco.MjSpec.from_string(ET.tostring(root).decode())
        if self.robot.free:
            spec.worldbody.first_body().add_freejoint()
        if self.floor:
            plane = spec.worldbody.add_geom(name="ground", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[FAR, FAR, 1.0])
            plane.contype, plane.conaffinity = 1, 1
        return spec

    def _compiled(self, trial: "Trial | None") -> Any:
        mujoco, spec = self.mujoco, self._spec()
        for unwanted in (*spec.actuators, *spec.equalities):
            spec.delete(unwanted)
        for i, name in enumerate(trial.names if trial is not None and trial.driven else []):
            assert trial is not None
            servo = spec.add_actuator(name=f"drive_{name}", target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            servo.gaintype, servo.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
            servo.ctrllimited = servo.forcelimited = 0
            servo.gear[0], servo.gainprm[0] = 1.0, trial.stiffness[i]
            servo.biasprm[:3] = [0.0, -trial.stiffness[i], -trial.damping[i]]
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
        spec.option.timestep = FINE
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of settings of the files that are out of use
            model = spec.compile()
        model.opt.density = model.opt.viscosity = 0.0
        model.jnt_limited[:] = model.jnt_actfrclimited[:] = 0
        model.geom_margin[:] = 0.0
        model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0
        model.geom_solref[:, 0] = 0.005
        world = model.geom_bodyid == 0
        touching = self.floor & ((model.geom_contype | model.geom_conaffinity) > 0)
        model.geom_contype[:], model.geom_conaffinity[:] = touching & world, touching & ~world
        model.geom_friction[:, 0] = 1.0
        return model

    def begin(self, data: Any, start: "np.ndarray | None" = None) -> None:
        """Put the robot at its first coordinates."""
        if self.floor and self.model.jnt_type[0] == FREE:
            data.qpos[2] = self.robot.height
        if start is not None:
            data.qpos[self._at] = start

    def home(self) -> np.ndarray:
        """Coordinates (joints,) at the start: those of the file, but for the stance."""
        q = self.model.qpos0[self._at].copy()
        for i, name in enumerate(self.names):
            q[i] = next((v for end, v in self.robot.stance.items() if name.endswith(end)), q[i])
        return q

    def inertias(self) -> np.ndarray:
        """(joints,) what resists a joint while the others stand still."""
        data, rows = self.mujoco.MjData(self.model), np.zeros((self.model.nv, self.model.nv))
        self.mujoco.mj_forward(self.model, data)
        for row, unit in zip(rows, np.eye(self.model.nv), strict=True):
            self.mujoco.mj_mulM(self.model, data, row, unit)
        return np.diag(rows)[self._dof]

    def run(self, trial: Trial) -> Motion:
        """The motion of a trial."""
        model = self._compiled(trial)
        data = self.mujoco.MjData(model)
        self.begin(data, trial.start)
        data.qvel[self._dof] = trial.rate
        base = self.mujoco.mj_name2id(model, self.mujoco.mjtObj.mjOBJ_BODY, self.robot.base)
        q, height = [], []
        for command in (*trial.targets, None):
            self.mujoco.mj_kinematics(model, data)
            q.append(data.qpos[self._at].copy())
            height.append(data.xpos[max(base, 0), 2])
            for _ in range(round(FRAME / FINE) if command is not None else 0):
                if trial.driven:
                    data.ctrl[:] = command
                self.mujoco.mj_step(model, data)
        return Motion(np.array(q), np.array(height))


def ours(robot: Robot, trial: Trial, dt: float = 5e-4) -> Motion:
    """The same motion in this package, imported from the same file."""
    assert robot.file is not None
    described, urdf = read_robot(robot.file, visuals=False), robot.file.suffix != ".xml"
    known = {joint.name: joint.kind for joint in described.joints}
    given: dict[str, Any] = {name: at for name, at in zip(trial.names, trial.start, strict=True) if name in known}
    given |= {name: [0, 0, robot.height, 0, 0, 0] for name, kind in known.items() if trial.floor and kind == "free"}
    if not trial.floor:
        described = replace(described, links=tuple(replace(link, collision=()) for link in described.links))
    place = (0.0, 0.0, robot.height if urdf and trial.floor else 0.0)
    scene, _ = scene_of(described, fixed_base=not robot.free if urdf else None, joints=given, position=place)
    scene.duration, scene.frame_dt, scene.solver.dt = trial.duration, FRAME, dt
    scene.domain.lower, scene.domain.upper = [-FAR] * 3, [FAR] * 3
    if trial.floor and urdf:
        scene.domain.lower = [-FAR, -FAR, 0.0]
        scene.domain.walls["z_lower"] = ts.Wall(friction=1.0)
    if not trial.floor:
        scene.obstacles.clear()
    for obstacle in scene.obstacles.values():
        obstacle.friction = 1.0
    for body in scene.rigid.values():
        body.no_contact, body.friction = ["*"], 1.0
    for joint in scene.joints.values():
        joint.lower = joint.upper = None
    scene.actuators.clear()
    for i, name in enumerate(trial.names):
        scene.joints[f"robot_{name}"].velocity = float(trial.rate[i])
        if trial.driven:
            scene.actuators[name] = ts.Actuator(
                kind="position_motor", joint=f"robot_{name}", stiffness=float(trial.stiffness[i]),
                damping=float(trial.damping[i]), signal=ts.Signal(kind="array", values=trial.targets[:, i]),
            )  # fmt: skip
    joints = [f"joints.robot_{name}.position" for name in trial.names]
    base = [f"rigid.robot_{robot.base}.markers.{robot.base}.position"] if robot.base else []
    with ts.Simulation(scene, precision="f64") as sim:
        sim.run(record=[*joints, *base])
        assert sim.rollout is not None
        found = sim.rollout.observed
        q = np.stack([found[path] for path in joints], axis=1)
        return Motion(q, found[base[0]][:, 2] if base else np.zeros(len(q)))
