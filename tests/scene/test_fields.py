"""Acceleration fields against their formulas."""

import numpy as np
import pytest
from scene_tables import WALKER, bent

from taichi_sim.scene import Scene
from taichi_sim.scene.complete import complete
from taichi_sim.scene.fields import fields


def acceleration(kind: str, points: np.ndarray, **given) -> np.ndarray:
    field = fields.get(kind)
    return field.acceleration(complete(field.parameters, given, points.shape[1]), points)


def test_uniform():
    points = np.random.default_rng(0).normal(size=(5, 3))
    assert np.array_equal(
        acceleration("uniform", points, acceleration=[1.0, 2.0, 3.0]), np.tile([1.0, 2.0, 3.0], (5, 1))
    )


@pytest.mark.parametrize("dim", [2, 3])
def test_radial(dim):
    points = np.random.default_rng(1).normal(size=(20, dim)) * 2.0
    centre = np.full(dim, 0.3)
    arm = points - centre
    r = np.linalg.norm(arm, axis=1, keepdims=True)
    found = acceleration("radial", points, center=centre, strength=-2.0, falloff=2.0, core=0.01)
    assert np.allclose(found, -2.0 * arm / r**3)
    assert np.allclose(acceleration("radial", points, center=centre, strength=3.0), 3.0 * arm / r)


@pytest.mark.parametrize("kind", ["radial", "vortex"])
def test_fields_are_finite_and_continuous_at_their_centre(kind):
    points = np.array([[0.0, 0.0], [1e-12, 0.0], [0.05 - 1e-9, 0.0], [0.05 + 1e-9, 0.0]])
    found = acceleration(kind, points, center=[0.0, 0.0], strength=1.0, falloff=3.0)
    assert np.isfinite(found).all()
    assert np.allclose(found[:2], 0.0, atol=1e-6)
    assert np.allclose(found[2], found[3], rtol=1e-6)


def test_vortex_turns_counterclockwise():
    assert np.allclose(acceleration("vortex", np.array([[1.0, 0.0]]), center=[0.0, 0.0], strength=2.0), [[0.0, 2.0]])
    point = np.array([[0.0, 2.0, 5.0]])
    found = acceleration("vortex", point, center=[0, 0, 0], strength=2.0, falloff=1.0, axis=[0, 0, 3.0])
    assert np.allclose(found, [[-1.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match="axis must not be zero"):
        acceleration("vortex", point, center=[0, 0, 0], strength=2.0, axis=[0, 0, 0])


@pytest.mark.parametrize("kind", fields.names())
def test_every_field_can_be_in_a_scene(kind):
    given = {"acceleration": [1.0, 0.0], "center": [0.5, 0.5], "strength": 1.0}
    names = {p.name for p in fields.get(kind).parameters}
    table = {"kind": kind, **{key: value for key, value in given.items() if key in names}}
    scene = Scene.from_dict(bent({"fields": {"wind": table}}))
    assert np.isfinite(
        fields.get(kind).acceleration(scene.resolved().fields["wind"].parameters, np.zeros((3, WALKER["dim"])))
    ).all()
