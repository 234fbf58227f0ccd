"""Two ways to write an objective of your own: a Python function of one frame, or a Taichi kernel on final arrays.

python demos/own_objective.py
"""

import numpy as np

import taichi_sim as ts
from taichi_sim.runtime import ti

scene = ts.Scene.load("throw")
scene.duration = 0.096


def lean(frame):
    """How far the block's upper half is ahead of its lower half, m, with its derivative by every position."""
    upper = frame.rest[:, 1] > frame.rest[:, 1].mean()
    weight = np.where(upper, 1.0 / upper.sum(), -1.0 / (~upper).sum())
    value = float(weight @ frame.position[:, 0])
    return value, {"position": np.stack([weight, 0.0 * weight], axis=1)}


# 1. a function that returns its value and derivative, as an objective of the scene
scene.objectives = {"lean": ts.Objective(kind="function", body="block", function=lean)}
with ts.Simulation(scene, precision="f64") as sim:
    value, gradients = sim.value_and_grad("loss", wrt=["bodies.block.angular_velocity"])
    print("lean", value, "m; by the initial spin", gradients["bodies.block.angular_velocity"], "m per rad/s")


# 2. a loss of your own in Taichi: ti.ad.Tape goes through the whole simulation
@ti.kernel
def height(x: ti.types.ndarray(), loss: ti.types.ndarray()):
    for i in x:
        loss[0] += x[i][1] ** 2 / x.shape[0]


with ts.Simulation(scene, precision="f64") as sim:
    x = sim.array("bodies.block.position")
    loss = ti.ndarray(ti.f64, 1, needs_grad=True)
    with ti.ad.Tape(loss):
        sim.run()
        height(x, loss)
    print("mean squared height", loss[0], "m²")
    print("d loss / d initial velocity", sim.gradient("bodies.block.velocity"))
