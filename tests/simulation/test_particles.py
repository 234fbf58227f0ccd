"""Springs and grains in scenes: what they do, what of them can be seen, and gradients by every quantity of theirs."""

import numpy as np
import pytest

from taichi_sim import Scene, Simulation, optimize
from taichi_sim.core.errors import RolloutError, SceneError
from taichi_sim.data import data_root
from taichi_sim.film import Film
from taichi_sim.scene.particles import build_clusters


def robot(**changes) -> Scene:
    """A lattice that falls, tumbles and slides on the floor while a part of it pumps and is pushed."""
    table = {
        "format": 1, "dim": 2, "duration": 0.2, "frame_dt": 0.02, "damping": 0.2,
        "domain": {
            "lower": [-1.0, 0.0], "upper": [1.0, 1.0], "walls": {"default": {"kind": "separate", "friction": 0.4}}
        },
        "springs": {
            "robot": {
                "kind": "lattice", "shape": {"kind": "box", "lower": [-0.2, 0.1], "upper": [0.2, 0.3]}, "spacing": 0.1,
                "mass": 1.0, "stiffness": 400.0, "damping": 0.5, "rotation": 0.3, "velocity": [0.5, -1.0],
                "angular_velocity": 0.4,
                "regions": {"left": {"shape": {"kind": "box", "lower": [-0.3, 0.0], "upper": [0.0, 0.4]}}},
            }
        },
        "obstacles": {
            "ramp": {"shape": {"kind": "plane", "point": [0.0, -0.1], "normal": [-1.0, 1.0]}, "friction": 0.3}
        },
        "actuators": {
            "leg": {
                "kind": "spring", "body": "robot", "region": "left", "strength": 0.3,
                "signal": {"kind": "sinusoids", "frequency": 4.0, "phases": [0.0], "weights": [0.7], "bias": 0.1},
            },
            "push": {
                "kind": "body_force", "body": "robot", "strength": 1.0, "direction": [1.0, 0.3],
                "signal": {"kind": "constant", "value": 1.0},
            },
        },
        "objectives": {
            "forward": {"kind": "position", "body": "robot", "direction": [1.0, 0.2]},
            "rest": {"kind": "velocity", "body": "robot", "region": "left", "direction": [0.3, 1.0], "when": "running"},
        },
    }  # fmt: skip
    return Scene.from_dict({**table, **changes})


def heap(dim: int, law: str = "linear", **changes) -> Scene:
    """Spinning grains that fall on a ramp and into a corner, under a rod that touches them and is held at one end."""
    side = dim - 1
    K = 2e3 if law == "linear" else 1e6
    table = {
        "format": 1, "dim": dim, "duration": 0.06, "frame_dt": 0.02, "damping": 0.1,
        "domain": {
            "lower": [-0.2] * side + [0.0], "upper": [0.2] * side + [0.6],
            "walls": {"default": {"kind": "separate", "friction": 0.4}, "x_lower": "sticky", "x_upper": "slip"},
        },
        "grains": {
            "heap": {
                "shape": {"kind": "box", "lower": [-0.19] * side + [0.06], "upper": [0.1] * side + [0.27]},
                "radius": 0.04, "radius_spread": 0.2, "packing": "lattice", "density": 800.0, "law": law,
                "contact_stiffness": K, "rolling_friction": 0.1, "velocity": [0.3] * side + [-1.5],
                "angular_velocity": 0.4 if dim == 2 else [0.3, 0.2, 0.1],
                "regions": {"low": {"shape": {"kind": "box", "lower": [-1.0] * dim, "upper": [1.0] * side + [0.15]}}},
            }
        },
        "springs": {
            "rope": {
                "kind": "rod", "start": [-0.15] * side + [0.3], "end": [0.15] * side + [0.32], "segments": 4,
                "mass": 3.0, "stiffness": 4000.0, "damping": 0.5, "bend_stiffness": 0.5, "radius": 0.02,
                "contact_stiffness": K, "velocity": [0.0] * side + [-2.5],
                "held": {"kind": "sphere", "center": [-0.15] * side + [0.3], "radius": 0.01},
            }
        },
        "obstacles": {
            "ramp": {"shape": {"kind": "plane", "point": [-0.13] * side + [0.0], "normal": [1.0] * side + [1.5]},
                     "friction": 0.3}
        },
        "objectives": {
            "heap": {"kind": "position", "body": "heap", "direction": [1.0] * dim},
            "rope": {"kind": "velocity", "body": "rope", "direction": [1.0] * dim, "when": "running"},
        },
    }  # fmt: skip
    return Scene.from_dict({**table, **changes})


def test_every_gradient_of_a_network():
    with Simulation(robot(), precision="f64") as sim:
        paths = list(sim.parameters())
        own = {"mass", "stiffness", "damping", "rest_scale", "position", "rotation", "velocity", "angular_velocity"}
        assert own == {path.split(".")[2] for path in paths if path.startswith("springs.robot")}
        for of in ("loss", "springs.robot.regions.left.kinetic_energy"):
            report = sim.check_gradients(of, paths)
            assert report.ok, report
        _, gradient = sim.value_and_grad("loss", ["obstacles.ramp.position", "domain.walls.y_lower.friction"])
        assert all(value.any() for value in gradient.values()), "it has to slide on the floor and to touch the ramp"


@pytest.mark.parametrize(("dim", "law"), [(2, "linear"), (3, "hertz")])
def test_every_gradient_of_what_touches(dim, law):
    with Simulation(heap(dim, law), precision="f64") as sim:
        paths = list(sim.parameters())
        assert {"grains.heap.radius", "grains.heap.rolling_friction", "springs.rope.bend_stiffness"} <= set(paths)
        for of in ("loss", "grains.heap.regions.low.kinetic_energy"):
            report = sim.check_gradients(of, paths)
            assert report.ok, report
        between = ["springs.rope.contact_stiffness", "grains.heap.friction", "obstacles.ramp.friction"]
        _, touched = sim.value_and_grad("loss", between)
        assert all(value.any() for value in touched.values()), "the rope has to hit the grains, and they the ramp"


def test_grains_on_an_obstacle_of_any_shape():
    with Simulation(heap(2, obstacles=ROCKS), precision="f64") as sim:
        assert "obstacles.rock.position" not in sim.parameters(), "there is no gradient by it, so it is no quantity"
        paths = ["obstacles.rock.friction", "grains.heap.radius", "grains.heap.velocity", "springs.rope.position"]
        report = sim.check_gradients("loss", paths)
        assert report.ok and sim.value_and_grad("loss", paths)[1]["obstacles.rock.friction"].any(), report
        sim.set("grains.heap.position", [0.0, -0.06])
        with pytest.raises(RolloutError, match=r"grains.heap: point \d+ at .* m deep in obstacles.rock"):
            sim.run()
    with pytest.raises(ValueError, match="points without a radius know planes as obstacles only, not a sphere"):
        Simulation(robot(obstacles=ROCKS))


def test_a_network_of_the_edges_of_a_mesh():
    """Euler's formula for a closed surface: points - edges + faces = 2."""
    table = {
        "format": 1, "dim": 3, "duration": 0.02, "domain": {"lower": [-5.0] * 3, "upper": [5.0] * 3},
        "springs": {
            "skin": {"kind": "mesh", "file": str(data_root() / "scenes" / "meshes" / "bunny.obj"), "cross": False,
                     "mass": 1.0, "stiffness": 10.0}
        },
    }  # fmt: skip
    (skin,) = build_clusters(Scene.from_dict(table).resolved(), 0)
    assert skin.count - len(skin.edges) + len(skin.faces) == 2
    assert np.isclose(skin.share.sum(), 1.0)


def test_one_number_a_spring():
    scene = robot()
    edges = 40
    with pytest.raises(SceneError, match=r"springs.robot.stiffness: must be one number or one a spring: \d+, got 3"):
        scene.springs["robot"].stiffness = [400.0] * 3
        Simulation(scene)
    with Simulation(robot()) as sim:
        edges = len(sim.model.particle.springs.clusters[0].edges)
    scene.springs["robot"].stiffness = np.linspace(300.0, 500.0, edges)
    scene.springs["robot"].rest_scale = np.linspace(0.95, 1.05, edges)
    with Simulation(scene, precision="f64") as sim:
        report = sim.check_gradients("loss", ["springs.robot.stiffness", "springs.robot.rest_scale"])
        assert report.ok, report


def test_environments_are_independent():
    paths = ["springs.robot.stiffness", "actuators.leg.signal.weights", "domain.walls.y_lower.friction"]
    with Simulation(robot(), precision="f64", envs=2) as sim:
        sim.set("springs.robot.stiffness", [250.0, 350.0])
        both, found = sim.value_and_grad("loss", paths)
    for e, stiffness in enumerate((250.0, 350.0)):
        with Simulation(robot(), precision="f64") as alone:
            alone.set("springs.robot.stiffness", stiffness)
            value, gradient = alone.value_and_grad("loss", paths)
            assert value == both[e]
            assert all(np.array_equal(gradient[path], found[path][e]) for path in gradient)


@pytest.mark.parametrize("scene", [robot, lambda: heap(2)])
def test_checkpoints_do_not_matter(scene):
    reference = None
    for segment in (1, 7, 1000):
        with Simulation(scene(), precision="f64", segment=segment) as sim:
            paths = [path for path in sim.parameters() if path.startswith(("springs", "grains", "gravity"))]
            value, gradient = sim.value_and_grad("loss", paths)
            reference = reference or (value, gradient)
            assert value == reference[0]
            for path in gradient:
                np.testing.assert_allclose(gradient[path], reference[1][path], rtol=1e-11, atol=1e-14)


def test_what_can_be_seen():
    with Simulation(heap(2), precision="f64") as sim:
        sim.run(record=["grains.heap.center_of_mass", "springs.rope.position"])
        assert sim.rollout is not None
        heap_points, rope = sim.rollout.bodies["heap"], sim.rollout.bodies["rope"]
        assert heap_points.start == rope.stop and rope.start == 0
        x = sim.rollout.observed["springs.rope.position"]
        assert np.array_equal(x[:, 0], np.broadcast_to([-0.15, 0.3], x[:, 0].shape)), "the held end stays"
        np.testing.assert_allclose(x[-1], sim.rollout.position[-1, rope], atol=1e-6)
        r = sim.model.particle.matter.radii(sim._values)[0, heap_points]
        assert float(sim.observe("grains.heap.mass")) == pytest.approx(float(np.sum(800.0 * np.pi * r**2)))
        assert float(sim.observe("mass")) == pytest.approx(float(np.sum(800.0 * np.pi * r**2)) + 3.0)
        assert sim.observe("grains.heap.regions.low.position").shape[1] == 2
        with pytest.raises(ValueError, match="did you mean 'momentum'"):
            sim.observe("grains.heap.momentun")


def test_momentum_of_free_grains_stays():
    """No gravity, no walls in reach: what grains do to each other adds up to nothing."""
    scene = heap(2, gravity=[0.0, 0.0], damping=0.0, obstacles={}, objectives={})
    scene.domain.lower, scene.domain.upper = [-9.0, -9.0], [9.0, 9.0]
    scene.springs["rope"].held = None
    with Simulation(scene, precision="f64") as sim:
        sim.run(record=["momentum", "kinetic_energy"])
        momentum = sim.rollout.observed["momentum"]
        np.testing.assert_allclose(momentum[-1], momentum[0], atol=1e-12)
        assert sim.rollout.observed["kinetic_energy"][-1] < sim.rollout.observed["kinetic_energy"][0] - 0.1


def test_soft_springs_and_rigid_side_by_side():
    """Families share the smallest step."""
    whole = robot().to_dict()
    more = {
        "materials": {"jelly": {"law": "neo_hookean", "density": 1e3, "youngs_modulus": 1e3, "poissons_ratio": 0.3}},
        "bodies": {
            "block": {
                "shape": {"kind": "box", "lower": [-0.7, 0.5], "upper": [-0.4, 0.8]}, "material": "jelly",
                "velocity": [0.3, 0.1],
            }
        },
        "rigid": {"ball": {"shape": {"kind": "sphere", "center": [0.8, 0.8], "radius": 0.1}, "mass": 2.0,
                           "no_contact": ["block"]}},
        "obstacles": {}, "domain": {**whole["domain"], "spacing": 0.1},
        "objectives": {"drop": {"kind": "position", "direction": [0.3, 1.0]}},
    }  # fmt: skip
    with Simulation(Scene.from_dict({**whole, **more}), precision="f64") as sim:
        assert sim.dt <= min(1e-3, sim.model.particle.limit.allowed)
        paths = ["bodies.block.velocity", "rigid.ball.mass", "springs.robot.mass", "actuators.push.strength", "gravity"]
        report = sim.check_gradients(wrt=paths)
        assert report.ok, report


def test_a_step_that_is_too_large_is_refused_by_name():
    with pytest.raises(
        ValueError, match=r"solver.dt = 0.02 s is too large: allowed is .* s \(springs.robot: stiffness"
    ):
        Simulation(robot(solver={"dt": 0.02}))
    with Simulation(robot()) as sim:
        sim.set("springs.robot.stiffness", 1e6)
        with pytest.raises(RolloutError, match=r"too large for springs\.robot as it"):
            sim.run()
    softer = robot(design=[{"path": "springs.robot.stiffness", "lower": 100.0, "upper": 1e6}])
    with Simulation(softer) as sim:
        sim.set("springs.robot.stiffness", 1e6)
        sim.run()


def points(**changes):
    """A table of three points and two springs."""
    table = {"kind": "points", "points": [[0.0, 0.5], [0.1, 0.5], [0.2, 0.5]], "edges": [[0, 1], [1, 2]], "mass": 1.0,
             "stiffness": 10.0}  # fmt: skip
    return {**table, **changes}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"edges": [[0, 1], [2, 2]]}, "edge 1 = (2, 2) joins a point to itself"),
        ({"edges": [[0, 1], [1, 3]]}, "edge 1 = (1, 3) names a point that is not there (0 … 2)"),
        ({"edges": [[0, 1], [1, 0]]}, "edge 0 = (0, 1) is there twice"),
        ({"edges": [[0, 1]]}, "point 2 has no edge"),
        ({"edges": [[0, 0.5], [1, 2]]}, "edges must be whole numbers"),
        ({"bends": [[0, 1, 1]]}, "bend 0 = (0, 1, 1) joins a point to itself"),
        ({"bend_stiffness": 1.0}, "has no bends"),
        ({"held": {"kind": "sphere", "center": [5.0, 5.0], "radius": 0.1}}, "springs.robot.held: holds no point; the"),
        ({"regions": {"a": {"shape": {"kind": "sphere", "center": [5.0, 5.0], "radius": 0.1}}}}, "holds no point"),
        ({"radius": 0.01}, "give both radius (m) and contact_stiffness"),
        ({"velocity": [[0.0, 0.0]] * 2}, "must have one row a point: 3, got 2"),
        ({"mass": 0.0}, "must be > 0 kg"),
        ({"kind": "latice"}, "did you mean"),
        ({"stifness": 1.0}, "did you mean 'stiffness'"),
    ],
)
def test_mistakes_in_networks_are_named(changes, sentence):
    table = {
        "format": 1,
        "dim": 2,
        "duration": 0.1,
        "domain": {"upper": [1.0, 1.0]},
        "springs": {"robot": points(**changes)},
    }
    with pytest.raises(SceneError) as error:
        Simulation(Scene.from_dict(table))
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t["grains"]["heap"].update(radius=0.5), "does not fit into a shape of"),
        (lambda t: t["grains"].update(rope=t["grains"]["heap"]), "grains.rope: is the name of springs.rope too"),
        (lambda t: t["springs"]["rope"].update(radius=None, contact_stiffness=None), "needs radius"),
        (lambda t: t["grains"].update(other={**t["grains"]["heap"], "law": "hertz"}), "touch by one law"),
        (lambda t: t.update(obstacles={**ROCKS, "other": {**ROCKS["rock"], "friction": 0.7}}), "are one surface"),
        (lambda t: t.update(obstacles=ROCKS, design=[{"path": "obstacles.*.position"}]), "cannot be a design variable"),
        (lambda t: t["objectives"]["heap"].update(body="hep"), "did you mean 'heap'"),
        (lambda t: t["objectives"]["heap"].update(region="lo"), "did you mean 'low'"),
        (lambda t: t.update(actuators={"a": ACT | {"kind": "spring", "body": "heap"}}), "is of [grains]; this is for"),
        (lambda t: t.update(actuators={"a": ACT | {"kind": "muscle", "body": "rope", "direction": [1.0, 0.0]}}),
         "is of [springs]; this is for [bodies]"),
        (lambda t: t.update(actuators={"a": ACT | {"kind": "spring", "joint": "rope"}}), "a.body: is missing"),
    ],
)  # fmt: skip
def test_mistakes_around_grains_are_named(change, sentence):
    table = heap(2).to_dict()
    change(table)
    with pytest.raises(ValueError) as error:
        Simulation(Scene.from_dict(table))
    assert sentence in str(error.value)


ROCKS = {"rock": {"shape": {"kind": "sphere", "center": [-0.08, 0.0], "radius": 0.06}, "friction": 0.3}}
ACT = {"strength": 1.0, "signal": {"kind": "constant", "value": 1.0}}


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("obstacles.ramp.position", [0.1, 0.1], r"grains.heap: point \d+ at .* starts .* m deep in 'ramp'"),
        ("springs.rope.position", [0.0, -0.1], "grains.heap and springs.rope overlap by"),
        ("grains.heap.radius", 0.06, "two of grains.heap overlap by"),
    ],
)
def test_starts_that_cannot_be_are_named(path, value, sentence):
    with Simulation(heap(2)) as sim:
        sim.set(path, value)
        with pytest.raises(RolloutError, match=sentence):
            sim.run()


def test_a_network_that_starts_in_the_floor_is_named():
    with Simulation(robot()) as sim:
        sim.set("springs.robot.position", [0.0, -0.5])
        with pytest.raises(RolloutError, match=r"springs.robot: point \d+ at .* m deep in 'y_lower'"):
            sim.run()


@pytest.mark.parametrize("name", ["mass_spring_robot", "cloth_drop", "grain_hopper"])
def test_shipped_scenes_run_and_have_gradients(name):
    scene = Scene.load(name)
    scene.duration = 3 * scene.frame_dt
    with Simulation(scene, precision="f64") as sim:
        if name == "grain_hopper":  # where grains have met already
            sim.set("grains.sand.position", [0.0, -0.008])
            sim.set("grains.sand.velocity", [0.05, -0.5])
        paths = [path for path in (d.path for d in sim.design) if not path.endswith("friction")]
        report = sim.check_gradients("loss", paths[:4] or ["grains.sand.radius", "grains.sand.velocity"])
        assert report.ok, report


def test_results_do_not_depend_on_threads():
    scene = Scene.load("grain_hopper")
    scene.duration = 4 * scene.frame_dt
    scene.grains["sand"].radius, scene.grains["sand"].velocity = 0.0036, [0.0, -1.0]  # enough for steps in parallel
    found = []
    for threads in (1, 2):
        with Simulation(scene, threads=threads) as sim:
            assert not sim.model.particle.plan.segment_mode
            paths = ["grains.sand.radius", "grains.sand.friction", "gravity"]
            value, gradient = sim.value_and_grad("loss", paths)
            found.append([value, sim.observe("grains.sand.position"), *gradient.values()])
    assert all(np.array_equal(one, two) for one, two in zip(*found, strict=True))


def test_a_robot_learns_to_run():
    """A smoke test: a few evaluations of gradient descent take it further than it gets by itself."""
    result = optimize("mass_spring_robot", iterations=12, seed=1)
    assert result.best_loss < result.loss[0] - 0.05


def test_what_a_picture_shows():
    with Simulation(robot()) as sim:
        sim.run(record=True)
        *_, last = Film.of(sim).pictures()
        (family,) = sim.model.families.values()
        assert len(last.points) == sim.n and len(last.lines) == len(family.plan.edges)
        colors = {tuple(np.round(line.color, 3)) for line in last.lines}
        assert len(colors) == 2, "springs that are driven have a colour of their own"
        assert [len(polygon.points) for polygon in last.obstacles] == [3], "the ramp, cut to the domain"
    with Simulation(heap(2)) as sim:
        sim.run(record=True)
        *_, last = Film.of(sim).pictures()
        radii = sim.model.particle.matter.radii(sim._values)[0]
        assert np.allclose(last.radius, radii), "grains are drawn as large as they are"
