"""Builds ``plain_reference.cpp`` and says how to start it; it speaks the worker's protocol itself."""

import shutil
import subprocess
from pathlib import Path

import numpy as np

from bench.scenes import LAMBDA, MU, PAD, BenchScene
from bench.variant import Unavailable

FLAGS = ("-O3", "-march=native", "-fopenmp", "-std=c++17")


def compile_reference(folder: Path) -> Path:
    """The executable in ``folder``, compiled if it is not there. Raises ``Unavailable`` without a compiler."""
    program = folder / "plain_reference"
    if program.exists():
        return program
    compiler = shutil.which("g++")
    if compiler is None:
        raise Unavailable("g++ is not installed")
    source = Path(__file__).with_suffix(".cpp")
    built = subprocess.run([compiler, *FLAGS, str(source), "-o", str(program)], capture_output=True, text=True)
    if built.returncode:
        raise Unavailable("g++ could not compile it: " + (built.stderr.strip().splitlines() or ["no message"])[0])
    return program


def command(scene: BenchScene, threads: int, folder: Path) -> list[str]:
    """Command line that starts the reference on ``scene``; compiled program and particles are kept in ``folder``."""
    if scene.dim != 3 or scene.environments > 1:
        raise Unavailable("written for 3-D alone")
    program = compile_reference(folder)
    positions = scene.positions()
    rows = np.column_stack([positions + PAD * scene.dx, scene.in_muscle(positions)]).astype(np.float32)
    particles = folder / f"{scene.name}.f32"
    rows.tofile(particles)
    numbers = (scene.nodes, PAD, scene.steps, threads, scene.dt, scene.gravity, scene.friction, scene.particle_mass)
    numbers += (scene.particle_volume, MU, LAMBDA, scene.muscle, *scene.velocity)
    return [str(program), str(particles), *(repr(number) for number in numbers)]
