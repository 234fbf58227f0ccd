"""Shapes of scenes as contact sees them: where their points and planes are, and robots made of them."""

import numpy as np
import pytest

from taichi_sim import Scene
from taichi_sim.compile.model import compile_scene
from taichi_sim.compile.rigid.collider import collider
from taichi_sim.scene.pieces import pieces
from taichi_sim.scene.shapes.shape import resolve_shape
from taichi_sim.solvers.rigid.shapes import CAPSULE, CYLINDER, WALL

BOX = {"kind": "box", "lower": [0.1, -0.2, 0.0], "upper": [0.4, 0.3, 0.2]}
ROD = {"kind": "capsule", "start": [0.1, 0.2, 0.3], "end": [-0.2, 0.4, 0.1], "radius": 0.07}
CAN = {"kind": "cylinder", "start": [0.1, 0.2, 0.3], "end": [-0.2, 0.4, 0.1], "radius": 0.07}
TURNED = {"kind": "placed", "rotation": [0.3, -0.5, 0.2], "position": [0.1, 0.0, -0.3]}


@pytest.mark.parametrize("shape", [
    BOX, ROD, CAN, {**TURNED, "shape": BOX}, {**TURNED, "shape": ROD}, {**TURNED, "shape": CAN},
    {**TURNED, "shape": {**TURNED, "shape": BOX}},
])  # fmt: skip
def test_points_and_planes_are_those_of_the_shape(shape):
    given, origin = resolve_shape(shape, 3), np.array([0.05, -0.1, 0.2])
    (piece,) = pieces(given)
    found = collider(piece, origin)
    skip = 2 if found.kind == CYLINDER else 0  # centres of caps
    distance = given.signed_distance(found.points[skip:] + origin)
    np.testing.assert_allclose(distance, -found.radii[skip:], atol=1e-12)
    for normal, offset in found.planes:
        heights = found.points @ normal - offset
        assert abs(heights.max()) < 1e-12
        assert abs(given.signed_distance((found.points[heights > -1e-9].mean(axis=0) + origin)[None])[0]) < 1e-12


def test_a_union_of_placed_shapes_is_all_of_its_pieces():
    whole = resolve_shape({**TURNED, "shape": {"kind": "union", "parts": [BOX, ROD, {**TURNED, "shape": CAN}]}}, 3)
    found = pieces(whole)
    assert [piece.kind for piece in found] == ["placed", "capsule", "cylinder"]
    x = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    np.testing.assert_allclose(np.min([p.signed_distance(x) for p in found], axis=0), whole.signed_distance(x))


ROBOT = """<mujoco><worldbody><body name="torso" pos="0 0 1"><freejoint/>
  <geom type="capsule" size="0.1 0.2"/>
  <body name="leg" pos="0 0 -0.3"><joint name="hip" type="hinge" axis="0 1 0"/>
    <geom type="cylinder" size="0.05 0.2" pos="0 0 -0.2"/></body>
</body></worldbody></mujoco>"""


def test_robots_of_capsules_and_cylinders_build(tmp_path):
    (tmp_path / "walker.xml").write_text(ROBOT)
    table = {
        "format": 1, "dim": 3, "duration": 0.1, "frame_dt": 0.01, "domain": {"lower": [-2.0] * 3, "upper": [2.0] * 3},
        "robots": {"walker": {"file": str(tmp_path / "walker.xml")}},
    }  # fmt: skip
    model = compile_scene(Scene.from_dict(table))
    assert model.rigid is not None
    assert {row[0] for row in model.rigid.plan.shapes} == {CAPSULE, CYLINDER, WALL}
    model.rigid.check(model.values, model.rigid.begin(model.values))
