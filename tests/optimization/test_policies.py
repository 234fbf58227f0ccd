"""Contact-gradient policies of whole scenes."""

import json

import numpy as np
import pytest

from taichi_sim import Scene, Simulation
from taichi_sim.cli import main
from taichi_sim.core.errors import SceneError
from taichi_sim.optimization.policies import compare_policies
from taichi_sim.scene.schema import CONTACT_GRADIENTS


def scene(policy: str = "exact", height: float = 0.1, speed: float = -1.0, **cube) -> Scene:
    """A box that falls on the floor, tilted, and slides."""
    box = {"kind": "box", "lower": [-0.1, -0.1], "upper": [0.1, 0.1]}
    body = {"shape": box, "mass": 0.5, "position": [0.0, 0.1 + height], "velocity": [1.0, speed], "friction": 0.3}
    return Scene.from_dict({
        "format": 1, "dim": 2, "duration": 0.3, "frame_dt": 0.02, "gravity": [0.0, -9.81],
        "solver": {"dt": 2e-3, "contact_gradient": policy},
        "domain": {"lower": [-3.0, 0.0], "upper": [3.0, 2.0],
                   "walls": {"default": {"kind": "separate", "friction": 0.3}}},
        "rigid": {"box": {**body, **cube}},
        "objectives": {"go": {"kind": "displacement", "body": "box", "direction": [1.0, 0.0]}},
        "design": [{"path": "rigid.box.velocity"}],
    })  # fmt: skip


def gradients(policy: str, **changes) -> tuple[str, dict[str, np.ndarray]]:
    with Simulation(scene(policy, **changes), precision="f64") as sim:
        _, found = sim.value_and_grad("loss", ["rigid.box.velocity", "rigid.box.friction", "rigid.box.position"])
        return sim.state_hash(), found


def test_forward_results_do_not_depend_on_the_policy():
    found = {policy: gradients(policy, rotation=0.3) for policy in CONTACT_GRADIENTS if policy != "event"}
    assert len({bits for bits, _ in found.values()}) == 1
    exact, smoothed, distance = (found[p][1]["rigid.box.velocity"] for p in ("exact", "smoothed", "distance"))
    assert not np.allclose(exact, smoothed, rtol=1e-3) and not np.allclose(smoothed, distance, rtol=1e-3)


@pytest.mark.slow
def test_what_rebounds_keeps_its_events():
    bits, exact = gradients("exact", restitution=0.5)
    again, event = gradients("event", restitution=0.5)
    assert bits == again and all(np.array_equal(exact[p], event[p]) for p in exact)
    assert (
        gradients("distance", restitution=0.5, rotation=0.3)[0] == gradients("exact", restitution=0.5, rotation=0.3)[0]
    )


def test_only_distance_feels_what_it_does_not_touch():
    """The box flies 2 mm above the floor: what friction would do is seen from there."""
    near = {"height": 2e-3, "speed": 1.48}  # comes back after 0.3 s
    assert gradients("exact", **near)[1]["rigid.box.friction"] == 0.0
    assert gradients("smoothed", **near)[1]["rigid.box.friction"] == 0.0
    assert gradients("distance", **near)[1]["rigid.box.friction"] < 0.0, "friction brakes"


def test_smoothing_steadies_gradients_of_stiff_contact():
    stiff = scene(rotation=0.4, contact_stiffness=1e6, contact_damping=0.2)
    found = compare_policies(stiff, around={"rigid.box.velocity": 0.03}, samples=24)
    exact, smoothed = (found[p].rows[0] for p in ("exact", "smoothed"))
    assert np.array_equal(exact.slope, smoothed.slope), "of the same values"
    assert smoothed.spread < 0.3 * exact.spread, (smoothed.spread, exact.spread)


def test_mistakes():
    with pytest.raises(SceneError, match="smoothed"):
        scene("smoothd")
    with pytest.raises(ValueError, match="no body rebounds"):
        Simulation(scene("event"))
    with pytest.raises(ValueError, match="rigid"):
        compare_policies(Scene.load("throw"))


def test_the_command(tmp_path, capsys):
    file = scene(rotation=0.3).save(tmp_path / "box.toml")
    assert main(["check", str(file), "--policies", "8", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)["policies"]
    assert set(found) == {"exact", "smoothed", "distance"}
    assert main(["check", str(file), "--policies", "8", "--spread", "8"]) == 2
