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
        plan = sim.model.continuum.plan
        sim.run()
        head, following = (
            sim._alive().solvers["continuum"].store.view(name) for name in ("contact_head", "contact_next")
        )
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


@pytest.mark.parametrize(
    ("shape", "position", "kinds", "kinks"),
    [
        # faces on grid lines: nodes at corners, and half way between opposite faces, where the normal turns
        ({"kind": "box", "lower": [0.3, -0.1], "upper": [0.5, 0.1]}, [0.0, 0.0], ("separate", "slip", "sticky"), 0),
        # a face half a cell from a row of nodes: the weight begins there, its slope is zero on one side
        ({"kind": "box", "lower": [0.33, -0.1], "upper": [0.53, 0.15]}, [0.0, 0.0], ("separate",), 1),
        ({"kind": "box", "lower": [0.33, -0.1], "upper": [0.53, 0.12]}, [0.0, 0.0], ("separate",), 0),
        ({"kind": "sphere", "center": [0.37, 0.02], "radius": 0.12}, [0.0, 0.0], ("separate", "slip"), 0),
    ],
)
def test_where_an_obstacle_stands_on_the_grid_its_corners_are_called_kinks(shape, position, kinds, kinks):
    for kind in kinds:
        rock = {"shape": shape, "position": position, "kind": kind}
        changes = {**CHANGES, "duration": 0.16, "obstacles": {"rock": rock}}
        with Simulation(tiny(changes), precision="f64") as sim:
            report = sim.check_gradients("objectives.climb", "obstacles.rock.position", full=True)
        assert report.ok and sum(row.note == "kink" for row in report.rows) == kinks, (kind, str(report))
