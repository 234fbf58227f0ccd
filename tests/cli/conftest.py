"""A scene small enough to run in a moment, and the command line in this process."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from taichi_sim.cli import main

TINY = """
format = 1
dim = 2
duration = 0.1
frame_dt = 0.01

[domain]
upper = [1.0, 1.0]
cells = 16

[domain.walls]
y_lower = {kind = "separate", friction = 0.5}

[materials.jelly]
law = "neo_hookean"
density = 1000.0
youngs_modulus = 1e4
poissons_ratio = 0.3

[bodies.block]
shape = {kind = "box", lower = [0.3, 0.05], upper = [0.6, 0.3]}
material = "jelly"
velocity = [1.0, -0.5]

[bodies.block.regions.left]
shape = {kind = "box", lower = [0.3, 0.0], upper = [0.45, 0.4]}

[obstacles.rock]
shape = {kind = "sphere", center = [0.8, 0.1], radius = 0.1}

[actuators.pull]
kind = "muscle"
body = "block"
region = "left"
direction = [0.0, 1.0]
strength = 2e3

[actuators.pull.signal]
kind = "sinusoids"
frequency = 3.0
phases = [0.0, 1.5]
weights = [0.0, 0.0]
squash = "tanh"

[objectives.aim]
kind = "distance"
body = "block"
target = [0.7, 0.2]
squared = true

[[design]]
path = "bodies.block.velocity"

[[design]]
path = "actuators.*.signal.weights"
spread = 0.1
"""


class Answer(NamedTuple):
    """Exit code and what was printed."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Lines of standard error."""
        return self.err.splitlines()


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    """File of a 2-D scene: 80 particles, 10 frames, a muscle, an obstacle, contact with the floor."""
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    return str(file)


@pytest.fixture
def cli(capsys, monkeypatch, tmp_path):
    """Calls the command line in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> Answer:
        code = main([str(w) for w in words])
        return Answer(code, *capsys.readouterr())

    return call


@pytest.fixture
def program(tmp_path):
    """Starts the command line as a process of its own, in a folder of the test's own; what is left running is ended."""
    root = str(Path(__file__).parents[2])
    started = []

    def start(*words: object, **environment: str) -> subprocess.Popen:
        env = {**os.environ, "PYTHONPATH": root, **environment}
        command = [sys.executable, "-m", "taichi_sim", *map(str, words)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, env=env))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
