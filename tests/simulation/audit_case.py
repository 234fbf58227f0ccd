"""Small scenes of every pair of solvers, to be audited."""

from taichi_sim import Scene


def boxes(**changes) -> Scene:
    """A soft block on the floor and a tilted box that falls on it and slides, pushed."""
    table = {
        "format": 1, "dim": 2, "duration": 0.05, "frame_dt": 0.01, "gravity": [0.0, -9.81],
        "domain": {"upper": [1.0, 1.0], "spacing": 0.1, "walls": {"default": {"kind": "separate", "friction": 0.4}}},
        "solver": {"max_speed": 3.0},
        "materials": {"jelly": {"law": "neo_hookean", "density": 1e3, "youngs_modulus": 2e4, "poissons_ratio": 0.3}},
        "bodies": {"block": {"shape": {"kind": "box", "lower": [0.2, 0.0], "upper": [0.8, 0.3]}, "material": "jelly"}},
        "rigid": {"box": {"shape": {"kind": "box", "lower": [0.4, 0.31], "upper": [0.6, 0.45]}, "mass": 10.0,
                          "rotation": 0.03, "velocity": [0.5, -1.0], "force": [2.0, -20.0]}},
    }  # fmt: skip
    return Scene.from_dict(table | changes)


def stack(**changes) -> Scene:
    """Two crates, one on the other, on a floor; a third thrown at them, and one that is held."""

    def crate(x: float, y: float, **more) -> dict:
        return {"shape": {"kind": "box", "lower": [x, y], "upper": [x + 0.2, y + 0.2]}, "density": 50.0, **more}

    table = {
        "format": 1, "dim": 2, "duration": 0.3, "frame_dt": 0.02, "gravity": [0.0, -9.81],
        "domain": {"lower": [-2.0, 0.0], "upper": [2.0, 2.0], "walls": {"default": {"kind": "separate"}}},
        "solver": {"dt": 1e-3},
        "rigid": {"low": crate(0.0, 0.0), "high": crate(0.03, 0.2), "post": crate(0.5, 0.0, fixed=True),
                  "thrown": crate(-0.5, 0.15, velocity=[3.0, 0.5], angular_velocity=2.0)},
    }  # fmt: skip
    return Scene.from_dict(table | changes)


def grains_and_solids() -> Scene:
    """Grains between a box that is thrown up at them and a shelf that is held; some of a rod of points is held too."""
    table = {
        "format": 1, "dim": 2, "duration": 0.1, "frame_dt": 0.01, "gravity": [0.0, -9.81],
        "domain": {"lower": [-1.0, 0.0], "upper": [1.0, 1.5], "walls": {"default": {"kind": "separate"}}},
        "grains": {"sand": {"shape": {"kind": "box", "lower": [-0.1, 0.25], "upper": [0.1, 0.4]}, "radius": 0.02,
                            "density": 1000.0, "contact_stiffness": 1e4, "friction": 0.4, "velocity": [0.0, -2.0]}},
        "springs": {"line": {"kind": "rod", "start": [0.25, 0.2], "end": [0.5, 0.2], "segments": 8, "mass": 0.1,
                             "stiffness": 500.0, "radius": 0.005, "contact_stiffness": 1e4,
                             "held": {"kind": "box", "lower": [0.2, 0.1], "upper": [0.3, 0.3]}}},
        "rigid": {"box": {"shape": {"kind": "box", "lower": [0.02, 0.1], "upper": [0.2, 0.22]}, "mass": 5.0,
                          "friction": 0.3, "velocity": [1.0, 2.0]},
                  "shelf": {"shape": {"kind": "box", "lower": [-0.2, 0.2], "upper": [0.0, 0.24]}, "mass": 1.0,
                            "fixed": True}},
    }  # fmt: skip
    return Scene.from_dict(table)


def padded() -> Scene:
    """A box that carries a pad, welded to it."""
    scene = boxes()
    scene.rigid["box"].rotation = 0.0
    table = scene.to_dict()
    table["bodies"]["pad"] = {
        "shape": {"kind": "box", "lower": [0.42, 0.45], "upper": [0.58, 0.65]}, "material": "jelly",
        "regions": {"root": {"shape": {"kind": "box", "lower": [0.0, 0.0], "upper": [1.0, 0.52]}}},
    }  # fmt: skip
    table["attachments"] = {"hold": {"body": "pad", "region": "root", "to": "box"}}
    return Scene.from_dict(table)


def hinged() -> Scene:
    """A box on a driven hinge that presses on a block."""
    scene = boxes()
    scene.rigid["box"].velocity = [0.0, 0.0]
    table = scene.to_dict()
    table["joints"] = {"pin": {"kind": "hinge", "child": "box", "anchor": [0.9, 0.4], "velocity": 3.0,
                               "damping": 0.5, "lower": -0.05, "upper": 0.5}}  # fmt: skip
    table["actuators"] = {
        "m": {"kind": "motor", "joint": "pin", "strength": 20.0, "signal": {"kind": "constant", "value": 0.5}}
    }
    return Scene.from_dict(table)


def points_on_a_block(**changes) -> Scene:
    """A rope, held at one end, and grains that fall on a soft block."""
    points = {"radius": 0.02, "contact_stiffness": 1e4, "velocity": [0.3, -1.5], "friction": 0.4}
    table = boxes().to_dict() | {
        "rigid": {},
        "grains": {"sand": {"shape": {"kind": "box", "lower": [0.3, 0.33], "upper": [0.5, 0.42]}, "density": 1000.0,
                            **points}},
        "springs": {"rope": {"kind": "rod", "start": [0.6, 0.33], "end": [0.75, 0.33], "segments": 5, "mass": 0.5,
                             "stiffness": 500.0, **points,
                             "held": {"kind": "box", "lower": [0.7, 0.3], "upper": [0.8, 0.4]}}},
    }  # fmt: skip
    for key, value in changes.items():
        for cluster in (table["grains"]["sand"], table["springs"]["rope"]):
            cluster[key] = value
    table["bodies"]["block"]["velocity"] = [0.0, 1.0]
    return Scene.from_dict(table)
