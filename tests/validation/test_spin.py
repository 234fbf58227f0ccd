"""A spinning body keeps its angular momentum from the first substep on, and the derivative knows it."""

import numpy as np
import pytest

import taichi_sim as ts


def spinning(dim: int, duration: float) -> ts.Scene:
    rate = 2.0 if dim == 2 else [0.5, -1.0, 2.0]
    return ts.Scene(
        dim=dim,
        duration=duration,
        frame_dt=0.02,
        gravity=[0.0] * dim,
        domain=ts.Domain(upper=[1.0] * dim, cells=16),
        materials={"rubber": ts.Material(law="neo_hookean", density=1.0, youngs_modulus=50.0, poissons_ratio=0.3)},
        bodies={
            "block": ts.Body(
                shape={"kind": "box", "lower": [0.3] * dim, "upper": [0.7] * (dim - 1) + [0.6]},
                material="rubber",
                velocity=[0.1] * dim,
                angular_velocity=rate,
            )
        },
        objectives={"turned": ts.Objective(kind="velocity", body="block", direction=[1.0, *[0.0] * (dim - 1)])},
    )


def moment(x: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Σ x × v."""
    pairs = [(0, 1)] if x.shape[1] == 2 else [(1, 2), (2, 0), (0, 1)]
    return np.array([np.sum(x[:, a] * v[:, b] - x[:, b] * v[:, a]) for a, b in pairs])


def angular_momentum(sim: ts.Simulation) -> np.ndarray:
    """Of the particles' centres about the centre of mass; their own spin adds a constant share of it."""
    x = sim.observe("bodies.block.position") - sim.observe("bodies.block.center_of_mass")
    v = sim.observe("bodies.block.velocity") - sim.observe("bodies.block.mean_velocity")
    return moment(x, v)


@pytest.mark.parametrize("dim", [2, 3])
def test_angular_momentum_holds_from_the_start(dim):
    scene = spinning(dim, 0.2)
    with ts.Simulation(scene, precision="f64") as sim:
        start = sim.model.continuum.start.state(sim._values)
        x = start["x"][0] - start["x"][0].mean(axis=0)
        v = start["v"][0] - start["v"][0].mean(axis=0)
        before = moment(x, v)
        sim.run()
        np.testing.assert_allclose(angular_momentum(sim), before, atol=5e-3 * np.abs(before).max())


@pytest.mark.parametrize("dim", [2, 3])
def test_gradient_of_what_a_spinning_body_does(dim):
    with ts.Simulation(spinning(dim, 0.04), precision="f64") as sim:
        x = sim.observe("bodies.block.position")
        cotangent = np.random.default_rng(0).normal(size=x.shape)
        gradient = sim.vjp("bodies.block.position", "bodies.block.angular_velocity", cotangent)
        reached = gradient["bodies.block.angular_velocity"]
        base = sim.get("bodies.block.angular_velocity")
        direction = np.ones(base.shape)
        step, ends = 1e-4, []
        for sign in (1.0, -1.0):
            sim.set("bodies.block.angular_velocity", base + sign * step * direction)
            ends.append(np.sum(cotangent * sim.observe("bodies.block.position")))
    np.testing.assert_allclose(np.sum(reached * direction), (ends[0] - ends[1]) / (2 * step), rtol=1e-6)
