"""``taichi-sim import``: a scene from a robot's URDF or MJCF file, and what of it was not understood."""

import argparse
from pathlib import Path

from taichi_sim.cli.parser import Parser
from taichi_sim.core.places import check_place

EXAMPLES = """  taichi-sim import arm.urdf --fixed --out arm.toml
  taichi-sim import ant.xml --out ant.toml
  taichi-sim import dog.urdf --stiffness 40 --damping 1 --out dog.toml"""


def add_arguments(parser: Parser) -> None:
    """Declare the options."""
    parser.usage = "taichi-sim import FILE --out SCENE.toml [options]"
    parser.add_argument("file", metavar="FILE", help="URDF or MJCF file")
    parser.add_argument("--out", metavar="SCENE.toml", required=True, help="where to write the scene")
    parser.add_argument("--name", default="robot", help="name of the robot in the scene (default: robot)")
    base = parser.add_mutually_exclusive_group()
    base.add_argument("--fixed", action="store_true", help="fix the root to the world")
    base.add_argument("--floating", action="store_true", help="let the root float")
    parser.add_argument("--stiffness", type=float, help="give every joint without a drive a servo this stiff, N m/rad")
    parser.add_argument("--damping", type=float, help="damping of these servos, N m s/rad (default 0)")
    parser.add_argument("--inertia", choices=("file", "shapes"), default="file", help="where URDF inertias come from")


def execute(arguments: argparse.Namespace) -> int:
    """Import. 0, or ``ValueError`` for what cannot be read or written."""
    from taichi_sim.scene.importers import read_robot
    from taichi_sim.scene.importers.scene import scene_of

    check_place("--out", arguments.out)
    if not arguments.out.endswith(".toml"):
        raise ValueError(f"--out {arguments.out}: must end in .toml")
    if arguments.damping is not None and arguments.stiffness is None:
        raise ValueError("--damping is that of the servos --stiffness gives: give it too")
    robot = read_robot(arguments.file, arguments.inertia)
    drive = None
    if arguments.stiffness is not None:
        drive = {"kind": "position_motor", "stiffness": arguments.stiffness, "damping": arguments.damping or 0.0}
    fixed = True if arguments.fixed else False if arguments.floating else None
    folder = Path(arguments.out).expanduser().resolve().parent
    scene, report = scene_of(robot, folder, arguments.name, fixed, drive)
    scene.source = str(Path(arguments.out).expanduser().resolve())
    scene.save(arguments.out)
    print(f"{len(scene.rigid)} bodies, {len(scene.joints)} joints, {len(scene.actuators)} actuators: {arguments.out}")
    if report:
        print("not understood, or read differently:")
        print("\n".join(f"  {line}" for line in report.splitlines()))
    return 0
