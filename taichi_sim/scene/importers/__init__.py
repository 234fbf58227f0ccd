"""Robots from URDF and MJCF files, as tables of a scene."""

from taichi_sim.scene.importers.read import read_robot
from taichi_sim.scene.importers.robot import RobotDescription

__all__ = ["RobotDescription", "read_robot"]
