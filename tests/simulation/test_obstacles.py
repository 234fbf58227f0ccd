"""Obstacles: any number of them at one place, in whatever order they are declared."""

import numpy as np
import pytest
from tiny import DELETE, tiny

from taichi_sim import Simulation

NAMES = ("a", "b", "c", "d", "e", "f")
PILE = {
    name: {
        "shape": {"kind": "sphere", "center": [0.3 + 0.02 * k, 0.05 + 0.005 * k], "radius": 0.12},
        "friction": 0.1 + 0.05 * k,
    }
    for k, name in enumerate(NAMES)
}
CHANGES = {"actuators": DELETE, "fields": DELETE, "design": DELETE, "duration": 0.12}


def build(names) -> Simulation:
    return Simulation(tiny({**CHANGES, "obstacles": {name: PILE[name] for name in names}}), precision="f64")


def test_six_obstacles_at_one_node_all_act_and_have_gradients():
    with build(NAMES) as sim:
        plan = sim.model.plan
        sim.run()
        head, following = (sim._alive().store.view(name) for name in ("contact_head", "contact_next"))
        lengths = []
        for c in head[: plan.nodes]:
            lengths.append(0)
            while c >= 0:
                lengths[-1] += 1
                c = following[c]
        assert max(lengths) >= 6
        paths = [f"obstacles.{name}.{key}" for name in NAMES for key in ("position", "friction")]
        _, gradients = sim.value_and_grad("objectives.climb", paths)
        assert all(gradients[path].any() for path in paths), gradients
        report = sim.check_gradients("objectives.climb", paths)
        assert report.ok, report


@pytest.mark.parametrize("names", [("f", "e", "d", "c", "b", "a"), ("c", "a", "f", "b", "e", "d")])
def test_the_order_of_declaration_does_not_matter(names):
    hashes, gradients = [], []
    for order in (NAMES, names):
        with build(order) as sim:
            _, found = sim.value_and_grad("objectives.climb", ["obstacles.*.position", "obstacles.*.friction"])
            hashes.append(sim.state_hash())
            gradients.append(found)
    assert hashes[0] == hashes[1]
    assert all(np.array_equal(gradients[0][path], gradients[1][path]) for path in gradients[0])
