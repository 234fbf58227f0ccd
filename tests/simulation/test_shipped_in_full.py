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


def rolled(
    name: str, threads: int, segment: int | None = None, plain: bool = False
) -> tuple[str, str, dict[str, np.ndarray]]:
    """Hash of the state without and with gradients, and the gradients by the design variables."""
    scene = Scene.load(name)
    with Simulation(scene, precision="f64", threads=threads, segment=segment, plain_launches=plain) as sim:
        sim.horizon = min(FRAMES, sim.frames)
        sim.run()
        untaped = sim.state_hash()
        _, gradients = sim.value_and_grad()
        return untaped, sim.state_hash(), gradients


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped_scenes())
def test_threads_gradients_and_checkpoints_do_not_matter(name):
    untaped, taped, gradients = rolled(name, 2)
    assert untaped == taped
    again, _, same = rolled(name, 1)
    assert again == untaped and all(np.array_equal(same[path], gradients[path]) for path in gradients)
    cut, _, close = rolled(name, 2, 20)
    assert cut == untaped
    for path, gradient in gradients.items():
        assert np.abs(close[path] - gradient).max() <= 1e-12 * max(np.abs(gradient).max(), 1e-300), path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rigid_stack", "boat", "cart_pole"])
def test_plain_launches_give_the_same_bits(name):
    """Their kernels have more arguments than Taichi's own calls take."""
    bound, _, gradients = rolled(name, 2)
    plain, _, same = rolled(name, 2, plain=True)
    assert plain == bound and all(np.array_equal(same[path], gradients[path]) for path in gradients)
