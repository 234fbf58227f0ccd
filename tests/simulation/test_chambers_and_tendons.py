"""Pneumatic chambers and tendons in scenes: gradients by every quantity, energy, momentum, environments, mistakes."""

import numpy as np
import pytest

from taichi_sim import Scene, Simulation

CHAMBER = {"kind": "chamber", "body": "it", "strength": 40.0, "signal": {"kind": "constant", "value": 1.0}}
AIR = {**CHAMBER, "command": "mass", "strength": 1e-4, "ambient": 100.0}


def ring(**actuators) -> Scene:
    """Sixteen points in a circle, in flight."""
    turn = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    return Scene.from_dict({
        "format": 1, "dim": 2, "duration": 0.1, "frame_dt": 0.02, "gravity": [0.0, -3.0],
        "domain": {"lower": [-1.0, -1.0], "upper": [1.0, 1.0]},
        "springs": {
            "it": {
                "kind": "points", "points": (0.2 * np.stack([np.cos(turn), np.sin(turn)], axis=1)).tolist(),
                "edges": [[i, (i + 1) % 16] for i in range(16)], "mass": 1.0, "stiffness": 400.0, "damping": 0.3,
                "position": [0.1, 0.2], "rotation": 0.2, "velocity": [0.4, 0.1], "angular_velocity": 0.7,
            }
        },
        "actuators": actuators,
        "objectives": {"way": {"kind": "position", "body": "it", "direction": [1.0, 0.4]}},
    })  # fmt: skip


def rope(host: str, points, through, **changes) -> dict:
    return {
        "kind": "tendon", "body": host, "points": points, "through": through, "friction": 0.3, "strength": 5.0,
        "signal": {"kind": "sinusoids", "frequency": 4.0, "phases": [0.3], "weights": [0.4], "bias": 0.9}, **changes,
    }  # fmt: skip


RING_ROPE = rope("it", [[0.6, 0.5], [0.2, 0.0], [-0.2, 0.0]], ["world", "it", "it"])
SPRING_ROPE = {**RING_ROPE, "command": "length", "strength": 0.1, "stiffness": 30.0, "slack": -0.05}


def block(dim: int, **actuators) -> Scene:
    """A soft block with a cavity, in flight; in the plane, held at nothing."""
    up = [0.0] * (dim - 1)
    return Scene.from_dict({
        "format": 1, "dim": dim, "duration": 0.02 if dim == 2 else 0.004, "frame_dt": 0.01 if dim == 2 else 0.002,
        "gravity": [*up, -9.81],
        "domain": {"lower": [0.0] * dim, "upper": [0.3] * dim, "spacing": 0.02},
        "materials": {"soft": {"law": "neo_hookean", "density": 1000.0, "youngs_modulus": 2e4, "poissons_ratio": 0.3}},
        "bodies": {
            "it": {
                "shape": {
                    "kind": "difference", "base": {"kind": "box", "lower": [0.1] * dim, "upper": [0.24] * dim},
                    "remove": [{"kind": "box", "lower": [0.15] * dim, "upper": [0.2] * (dim - 1) + [0.19]}],
                },
                "material": "soft", "velocity": [0.2] * dim, "rotation": 0.1 if dim == 2 else [0.1, 0.0, 0.2],
            }
        },
        "actuators": actuators,
        "objectives": {
            "way": {"kind": "position", "body": "it", "direction": [1.0] + [0.4] * (dim - 1)},
            "spread": {"kind": "velocity", "body": "it", "direction": [0.3] + [1.0] * (dim - 1), "when": "running"},
        },
    })  # fmt: skip


def assert_agree(scene: Scene) -> None:
    with Simulation(scene, precision="f64") as sim:
        for of in ("loss", f"{'springs' if scene.springs else 'bodies'}.it.kinetic_energy"):
            report = sim.check_gradients(of, list(sim.parameters()))
            assert report.ok, report


@pytest.mark.parametrize(
    "actuators", [{"air": CHAMBER}, {"air": AIR}, {"cable": RING_ROPE}, {"cable": SPRING_ROPE, "air": AIR}],
    ids=["pressure", "mass", "tension", "length and mass"],
)  # fmt: skip
def test_gradients_of_springs(actuators: dict) -> None:
    assert_agree(ring(**actuators))


BLOCK_ROPE = rope("it", [[0.25, 0.28], [0.22, 0.22], [0.12, 0.2], [0.11, 0.12]], ["world", "it", "it", "it"], strength=2.0)
AIR_IN_BLOCK = {**AIR, "strength": 1e-5, "ambient": 500.0}


@pytest.mark.parametrize(
    "actuators",
    [{"air": {**CHAMBER, "strength": 300.0}}, {"air": AIR_IN_BLOCK, "cable": BLOCK_ROPE}],
    ids=["pressure", "mass and tension"],
)
def test_gradients_of_a_continuum(actuators: dict) -> None:
    assert_agree(block(2, **actuators))
