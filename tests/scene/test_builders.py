"""Scenes written in Python."""

import inspect

import pytest

from taichi_sim.scene import Body, Domain, Material, Region, Scene, builders
from taichi_sim.scene.kinds import kinds

BUILDERS = {
    "box": builders.Box,
    "sphere": builders.Sphere,
    "capsule": builders.Capsule,
    "cylinder": builders.Cylinder,
    "ellipsoid": builders.Ellipsoid,
    "placed": builders.Placed,
    "polygon": builders.Polygon,
    "plane": builders.Plane,
    "mesh": builders.MeshFile,
    "union": builders.Union,
    "difference": builders.Difference,
}


def test_every_shape_has_a_builder_with_its_parameters():
    assert set(kinds("shape").names()) == set(BUILDERS)
    for kind, build in BUILDERS.items():
        named = {n for n, p in inspect.signature(build).parameters.items() if p.kind != p.VAR_KEYWORD}
        assert named <= {p.name for p in kinds("shape").get(kind).parameters}


def test_a_scene_in_python(tmp_path):
    scene = Scene(dim=2, duration=1, domain=Domain(upper=[1, 1], cells=32))
    scene.materials["jelly"] = Material(law="neo_hookean", density=1000, youngs_modulus=2e4)
    scene.bodies["torso"] = Body(
        shape=builders.Difference(
            builders.Union(builders.Box(lower=[0.2, 0.2], upper=[0.6, 0.4]), builders.Sphere([0.6, 0.3], 0.1)),
            builders.Capsule([0.3, 0.3], [0.4, 0.3], 0.02),
            builders.Polygon([[0.5, 0.2], [0.55, 0.2], [0.5, 0.25]]),
            builders.Plane([0.0, 0.22], [0.0, 1.0]),
        ),
        material="jelly",
        regions={"front": Region(shape=builders.Box(center=[0.6, 0.3], size=[0.2, 0.2]))},
    )
    scene.check()
    assert Scene.load(scene.save(tmp_path / "s.toml")) == scene


def test_nested_shapes_are_checked_in_place():
    scene = Scene(dim=2, duration=1, domain=Domain(upper=[1, 1], cells=32))
    scene.materials["jelly"] = Material(law="neo_hookean", density=1000, youngs_modulus=2e4)
    scene.bodies["a"] = Body(
        shape=builders.Union(builders.Sphere([0.5, 0.5], -0.1), builders.Box(lower=[0, 0], upper=[0.2, 0.0])),
        material="jelly",
    )
    scene.bodies["b"] = Body(shape=builders.Plane([0, 0], [0, 1]), material="jelly")
    scene.bodies["c"] = Body(shape=builders.Cylinder([0, 0], [0, 1], 0.1), material="jelly")
    scene.bodies["d"] = Body(shape=builders.Box(lower=[0.0, 0.0], upper=[0.2, 0.0]), material="jelly")
    with pytest.raises(ValueError) as caught:
        scene.check()
    found = {p.path: p.message for p in caught.value.problems}
    assert "> 0 m" in found["bodies.a.shape.parts[0].radius"]
    assert "no volume" in found["bodies.b.shape"]
    assert "3-D only; in 2-D: box" in found["bodies.c.shape.kind"]
    assert "greater than lower" in found["bodies.d.shape.upper"]
    assert len(found) == 4
