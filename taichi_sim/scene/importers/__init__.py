"""Robots from URDF and MJCF files, as tables of a scene.

``robot_tables(read_robot("arm.urdf"), "arm", fixed_base=True)`` holds what a scene's file would: rigid bodies, joints,
actuators. Both steps say what they did not understand: ``robot.report()``, ``robot_scene(…).report()``.
"""

from taichi_sim.scene.importers.read import read_robot
from taichi_sim.scene.importers.robot import RobotDescription, forward
from taichi_sim.scene.importers.tables import RobotTables, robot_scene, robot_tables

__all__ = ["RobotDescription", "RobotTables", "forward", "read_robot", "robot_scene", "robot_tables"]
