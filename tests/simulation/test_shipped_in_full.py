"""Shipped scenes: as they are run by default to their end, and that nothing but the scene decides the bits."""

import numpy as np
import pytest

from taichi_sim import Scene, Simulation
from taichi_sim.data import shipped_scenes

FRAMES = 6


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped_scenes())
def test_it_runs_to_its_end(name):
    """What cannot go on raises (``RolloutError``)."""
    with Simulation(Scene.load(name)) as sim:
        sim.run()
        assert np.isfinite(sim.observe("center_of_mass")).all() and np.isfinite(sim.observe("loss")).all()


def rolled(name: str, threads: int, segment: int | None) -> tuple[str, str, dict[str, np.ndarray]]:
    """Hash of the state without and with gradients, and the gradients by the design variables."""
    with Simulation(Scene.load(name), precision="f64", threads=threads, segment=segment) as sim:
        sim.horizon = min(FRAMES, sim.frames)
        sim.run()
        plain = sim.state_hash()
        _, gradients = sim.value_and_grad()
        return plain, sim.state_hash(), gradients


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped_scenes())
def test_threads_gradients_and_checkpoints_do_not_matter(name):
    plain, taped, gradients = rolled(name, 2, None)
    assert plain == taped
    again, _, same = rolled(name, 1, None)
    assert again == plain and all(np.array_equal(same[path], gradients[path]) for path in gradients)
    cut, _, close = rolled(name, 2, 20)
    assert cut == plain
    for path, gradient in gradients.items():
        assert np.abs(close[path] - gradient).max() <= 1e-12 * max(np.abs(gradient).max(), 1e-300), path
