"""Observables recorded frame by frame."""

import numpy as np
import pytest

import taichi_sim as ts


def falling(frames: int) -> ts.Scene:
    return ts.Scene(
        dim=2,
        duration=0.01 * frames,
        frame_dt=0.01,
        domain=ts.Domain(upper=[1.0, 1.0], cells=16, walls={"default": "separate"}),
        materials={"jelly": ts.Material(law="neo_hookean", density=100.0, youngs_modulus=1e3, poissons_ratio=0.3)},
        bodies={
            "block": ts.Body(shape={"kind": "box", "lower": [0.4, 0.1], "upper": [0.65, 0.35]}, material="jelly"),
        },
    )


PATHS = ["kinetic_energy", "elastic_energy", "bodies.block.center_of_mass", "momentum"]


@pytest.mark.parametrize("envs", [1, 2])
def test_recorded_frames_are_what_is_observed_after_runs_of_that_length(envs):
    with ts.Simulation(falling(4), precision="f64", envs=envs) as sim:
        sim.run(record=PATHS)
        traces = sim.rollout.observed
        assert sim.rollout.position.shape[0] == 5
    for frames in (2, 4):
        with ts.Simulation(falling(frames), precision="f64", envs=envs) as sim:
            for path in PATHS:
                now = traces[path][frames] if envs == 1 else traces[path][:, frames]
                np.testing.assert_allclose(now, sim.observe(path), rtol=1e-12, atol=1e-12)


def test_recording_does_not_change_the_rollout_and_a_wrong_path_is_named():
    with ts.Simulation(falling(2)) as sim:
        sim.run()
        plain = sim.state_hash()
        sim.run(record=PATHS)
        assert sim.state_hash() == plain
        with pytest.raises(ValueError, match="kinetic_energy"):
            sim.run(record=["kinetic_enrgy"])
