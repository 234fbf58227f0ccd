"""This package, through its public API only."""

import dataclasses
from typing import Any

import numpy as np

from bench.scenes import DENSITY, ONCE, POISSON_RATIO, YOUNGS_MODULUS, BenchScene
from bench.variant import Result, Variant, gradient_result

VELOCITY = "bodies.box.velocity"


def scene_table(scene: BenchScene) -> dict[str, Any]:
    """The scene as a scene file would hold it."""
    dim = scene.dim
    up = [0.0] * (dim - 1) + [1.0]
    box = {"kind": "box", "lower": scene.lower.tolist(), "upper": scene.upper.tolist()}
    body: dict[str, Any] = {
        "shape": box,
        "material": "jelly",
        "velocity": list(scene.velocity),
        "seeding": "lattice",
        "particles_per_cell": 2**dim,
    }
    table: dict[str, Any] = {
        "format": 1,
        "name": scene.name,
        "dim": dim,
        "duration": scene.steps * scene.dt,
        "frame_dt": scene.substeps * scene.dt,
        "gravity": [scene.gravity * component for component in up],
        "domain": {
            "lower": [0.0] * dim,
            "upper": [scene.cells * scene.dx] * dim,
            "spacing": scene.dx,
            "walls": {"default": {"kind": "separate", "friction": scene.friction}},
        },
        "solver": {"dt": scene.dt, "max_speed": 4.0},
        "materials": {
            "jelly": {
                "law": "neo_hookean",
                "density": DENSITY,
                "youngs_modulus": YOUNGS_MODULUS,
                "poissons_ratio": POISSON_RATIO,
            }
        },
        "bodies": {"box": body},
        "objectives": {"height": {"kind": "position", "body": "box", "direction": up, "weight": 1.0, "when": "final"}},
    }
    if scene.muscle:
        middle = float(scene.lower[0] + scene.upper[0]) / 2
        half = {"kind": "box", "lower": box["lower"], "upper": [middle, *box["upper"][1:]]}
        body["regions"] = {"half": {"shape": half}}
        table["actuators"] = {
            "half": {
                "kind": "muscle",
                "body": "box",
                "region": "half",
                "direction": up,
                "strength": scene.muscle,
                "signal": {"kind": "constant", "value": 1.0},
            }
        }
    return table


class Ours(Variant):
    def __init__(self, scene: BenchScene, threads: int) -> None:
        from taichi_sim import Scene, Simulation

        description = Scene.from_dict(scene_table(scene))
        if scene.environments == 1:  # one velocity a particle, so that every particle's gradient can be compared
            description.bodies["box"].velocity = np.tile(np.array(scene.velocity), (scene.n, 1))
        self.several = scene.environments > 1
        self.simulation = Simulation(
            description, precision="f32", envs=scene.environments, memory=scene.memory, threads=threads
        )
        asked, built = (scene.steps, scene.n), (self.simulation.frames * self.simulation.substeps, self.simulation.n)
        if built != asked:
            raise RuntimeError(f"built (steps, particles) {built} where {asked} were asked for")
        self.gradient: np.ndarray | None = None
        self.compiled_mb: float | None = None

    def forward(self) -> None:
        self.simulation.run()

    def forward_backward(self) -> None:
        _, gradients = self.simulation.value_and_grad("loss", wrt=[VELOCITY])
        gradient = np.asarray(gradients[VELOCITY])
        self.gradient = gradient[0] if self.several else gradient

    def result(self) -> Result:
        center = np.asarray(self.simulation.observe("bodies.box.center_of_mass"))
        result = gradient_result(float((center[0] if self.several else center)[-1]), self.gradient)
        if self.compiled_mb is not None:
            grown = self.simulation.peak_memory_mb - self.compiled_mb
            result.extra["grown_against_printed"] = grown * 2**20 / self.simulation.schedule.bytes
        return result


def load(scene: BenchScene, threads: int) -> Ours:
    if scene.name not in ONCE:
        return Ours(scene, threads)
    frame = Ours(dataclasses.replace(scene, steps=scene.substeps), threads)  # what the program takes without the steps
    frame.forward_backward()
    compiled_mb = frame.simulation.peak_memory_mb
    frame.simulation.close()
    result = Ours(scene, threads)
    result.compiled_mb = compiled_mb
    return result
