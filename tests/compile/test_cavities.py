"""Where chambers and tendons are, what they go with, and every way they cannot be."""

import numpy as np
import pytest

from taichi_sim import Scene
from taichi_sim.compile.acting.anchors import within
from taichi_sim.compile.acting.cavities import volume
from taichi_sim.compile.model import compile_scene

BOX = {"kind": "box", "lower": [0.1, 0.1], "upper": [0.3, 0.3]}
HOLE = {"kind": "box", "lower": [0.16, 0.16], "upper": [0.24, 0.24]}
SIGNAL = {"kind": "constant", "value": 1.0}
CHAMBER = {"kind": "chamber", "body": "it", "strength": 10.0, "signal": SIGNAL}
TENDON = {"kind": "tendon", "body": "it", "points": [[0.12, 0.12], [0.28, 0.12]], "strength": 1.0, "signal": SIGNAL}


def scene(actuator: dict, shape: dict | None = None, dim: int = 2, **tables) -> Scene:
    shape = shape or {"kind": "difference", "base": BOX, "remove": [HOLE]}
    return Scene.from_dict({
        "format": 1, "dim": dim, "duration": 0.01, "frame_dt": 0.01,
        "domain": {"lower": [0.0] * dim, "upper": [0.4] * dim, "spacing": 0.02},
        "materials": {"soft": {"law": "neo_hookean", "density": 1e3, "youngs_modulus": 1e4, "poissons_ratio": 0.3}},
        "bodies": {"it": {"shape": shape, "material": "soft"}},
        "actuators": {"act": actuator}, **tables,
    })  # fmt: skip


SQUARE = {
    "kind": "points", "points": [[0.1, 0.1], [0.2, 0.1], [0.2, 0.2], [0.1, 0.2]],
    "edges": [[0, 1], [3, 2], [1, 2], [3, 0]], "mass": 1.0, "stiffness": 100.0,
}  # fmt: skip
OPEN = {**SQUARE, "edges": [[0, 1], [1, 2], [2, 3]]}


def springs(actuator: dict, network: dict, dim: int = 2, **tables) -> Scene:
    return Scene.from_dict({
        "format": 1, "dim": dim, "duration": 0.01, "frame_dt": 0.01,
        "domain": {"lower": [0.0] * dim, "upper": [0.4] * dim},
        "springs": {"it": network}, "actuators": {"act": actuator}, **tables,
    })  # fmt: skip


@pytest.mark.parametrize("dim", [2, 3])
def test_anchors_move_with_affine_motion_and_carry_moments(dim: int) -> None:
    rng = np.random.default_rng(0)
    rest = np.stack(np.meshgrid(*[np.arange(6.0)] * dim, indexing="ij"), -1).reshape(-1, dim) + 0.2 * rng.random(dim)
    points = rng.uniform(-0.4, 5.4, (10, dim))
    A, b = rng.normal(size=(dim, dim)), rng.normal(size=dim)
    for hold, point in zip(within("here", rest, 100, points, 1.0), points, strict=True):
        w = hold.weights(point)
        assert np.isclose(w.sum(), 1.0) and hold.particles.min() >= 100
        assert np.allclose(w @ (rest[hold.particles - 100] @ A.T + b), A @ point + b, atol=1e-11)
        step = 1e-3 * rng.normal(size=dim)
        bar = rng.normal(size=len(w))
        assert np.isclose(bar @ (hold.weights(point + step) - w), hold.weights_vjp(bar) @ step, atol=1e-13)


@pytest.mark.parametrize(
    ("hole", "size"),
    [
        (HOLE, 0.08**2),
        ({"kind": "sphere", "center": [0.2, 0.2], "radius": 0.04}, np.pi * 0.04**2),
        ({"kind": "union", "parts": [HOLE, {"kind": "sphere", "center": [0.24, 0.2], "radius": 0.03}]},
         0.08**2 + np.pi * 0.03**2 / 2),
    ],
    ids=["box", "disc", "both"],
)  # fmt: skip
def test_the_volume_of_a_hole(hole: dict, size: float) -> None:
    model = compile_scene(scene(CHAMBER, {"kind": "difference", "base": BOX, "remove": [hole]}))
    assert model.continuum is not None and model.continuum.acting is not None
    unit = model.continuum.acting.units[0]
    assert volume(unit.points, unit.faces)[0] == pytest.approx(size, rel=0.03)
    assert 16 <= len(unit.points) <= 80


def test_the_volume_of_a_hole_in_space() -> None:
    base, hole = ({"kind": "box", "lower": [a] * 3, "upper": [b] * 3} for a, b in ((0.1, 0.3), (0.16, 0.24)))
    model = compile_scene(scene(CHAMBER, {"kind": "difference", "base": base, "remove": [hole]}, 3))
    assert model.continuum is not None and model.continuum.acting is not None
    unit = model.continuum.acting.units[0]
    assert volume(unit.points, unit.faces)[0] == pytest.approx(0.08**3, rel=1e-12)
    rng = np.random.default_rng(0)
    way, h = rng.normal(size=unit.points.shape), 1e-6
    ends = [volume(unit.points + s * h * way, unit.faces)[0] for s in (1, -1)]
    assert np.sum(volume(unit.points, unit.faces)[1] * way) == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6)


def test_springs_of_a_square_turn_outward() -> None:
    model = compile_scene(springs(CHAMBER, SQUARE))
    assert model.particle is not None and model.particle.acting is not None
    unit = model.particle.acting.units[0]
    assert volume(unit.points, unit.faces)[0] == pytest.approx(0.01)


def cut(*holes: dict, base: dict = BOX) -> dict:
    return {"kind": "difference", "base": base, "remove": list(holes)}


def box(lower: list[float], upper: list[float]) -> dict:
    return {"kind": "box", "lower": lower, "upper": upper}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (scene(CHAMBER, BOX), "actuators.act: bodies.it.shape is a box without a cavity; make it kind"),
        (scene({**CHAMBER, "hole": 1}), "actuators.act.hole = 1: bodies.it.shape has 1 shape cut out, from 0"),
        (scene(CHAMBER, cut(box([0.16, 0.16], [0.35, 0.24]))), "act: the chamber is not closed: .* reaches out of the"),
        (scene(CHAMBER, cut(box([0.31, 0.31], [0.35, 0.35]))), r"act: bodies.it.shape.remove\[0\] lies outside"),
        (scene(CHAMBER, cut(HOLE, box([0.2, 0.2], [0.26, 0.22]))), r"not closed: .*opens into remove\[1\] at .*union"),
        (scene(CHAMBER, cut({"kind": "plane", "point": [0.2, 0.2], "normal": [1.0, 0.0]})), "closed: .*without an end"),
        (scene({**TENDON, "points": [[0.12, 0.12]]}), "act.points: a tendon runs through at least 2 points, got 1"),
        (scene({**TENDON, "through": ["it"]}), "act.through: must have one name a point: 2, got 1"),
        (scene({**TENDON, "through": ["it", "ti"]}), r"act.through\[1\]: unknown body or springs 'ti'; allowed: it"),
        (scene({**TENDON, "points": [[0.12, 0.12], [0.2, 0.2]]}), r"act.points\[1\]: the nearest particle of "),
        (scene({**TENDON, "through": ["it", "s"]}, springs={"s": SQUARE}), "= 's': this tendon runs through .b"),
        (springs(CHAMBER, OPEN), r"act: the chamber is not closed: springs.it has 2 open ends, the first at \(0.1"),
        (springs(CHAMBER, {**SQUARE, "edges": [*SQUARE["edges"], [0, 2]]}), "act: springs.it branches at .* closed"),
        (springs(CHAMBER, {"kind": "cloth", "corner": [0.1] * 3, "side_u": [0.1, 0.0, 0.0], "side_v": [0.0, 0.1, 0.0],
                           "cells": [1, 1], "mass": 1.0, "stiffness": 1.0}, 3), "springs.it has 4 open edges, the fi"),
        (springs(CHAMBER, {"kind": "rod", "start": [0.1] * 3, "end": [0.2] * 3, "segments": 3, "mass": 1.0,
                           "stiffness": 1.0}, 3), "springs.it is a rod without triangles"),
    ],
)  # fmt: skip
def test_mistakes_get_one_line(given: Scene, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        compile_scene(given)
    assert len(str(caught.value).splitlines()) == 1
