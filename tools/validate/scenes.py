"""A small scene with contact, a muscle and a design, for cases about use rather than physics."""

from typing import Any

import taichi_sim as ts


def hopper(**changes: Any) -> ts.Scene:
    """A block of 100 particles that falls on a rough floor and pushes itself; ``changes`` replace entries."""
    scene = ts.Scene(
        name="hopper",
        dim=2,
        duration=0.2,
        frame_dt=0.01,
        domain=ts.Domain(upper=[1.0, 1.0], cells=20, walls={"y_lower": ts.Wall(kind="separate", friction=0.4)}),
        solver=ts.SolverSettings(max_speed=3.0),
        materials={"jelly": ts.Material(law="neo_hookean", density=1000.0, youngs_modulus=2e4, poissons_ratio=0.3)},
        bodies={
            "block": ts.Body(
                shape={"kind": "box", "lower": [0.3, 0.02], "upper": [0.55, 0.27]}, material="jelly",
                velocity=[0.5, -0.5],
            )
        },
        actuators={
            "push": ts.Actuator(
                kind="muscle", body="block", direction=[0.0, 1.0], strength=4e3,
                signal=ts.Signal(
                    kind="sinusoids", frequency=5.0, weights=[0.3, 0.2], phases=[0.0, 1.0], squash="tanh"
                ),
            )
        },
        objectives={
            "far": ts.Objective(kind="position", body="block", direction=[1.0, 0.0], weight=-1.0),
            "tired": ts.Objective(kind="effort", weight=0.01),
        },
        design=[ts.Design(path="actuators.push.signal.weights"), ts.Design(path="bodies.block.velocity")],
    )  # fmt: skip
    for name, value in changes.items():
        setattr(scene, name, value)
    return scene
