"""Shipped scenes as they are run by default: single precision, the whole duration."""

import numpy as np
import pytest

from taichi_sim import Scene, Simulation
from taichi_sim.data import shipped_scenes


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped_scenes())
def test_it_runs_to_its_end(name):
    """What cannot go on raises (``RolloutError``)."""
    with Simulation(Scene.load(name)) as sim:
        sim.run()
        assert np.isfinite(sim.observe("center_of_mass")).all() and np.isfinite(sim.observe("loss")).all()
