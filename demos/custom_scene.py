"""A scene written in Python: a soft gripper finger that bends towards a ball, identified, saved, and filmed.

python demos/custom_scene.py
"""

import numpy as np

import taichi_sim as ts
from taichi_sim.film import film

scene = ts.Scene(
    dim=2, name="finger", duration=0.3, frame_dt=0.01,
    domain=ts.Domain(upper=[0.4, 0.3], spacing=0.01, walls={"y_upper": "sticky"}),
)  # fmt: skip
scene.materials["silicone"] = ts.Material(preset="ecoflex_0030", youngs_modulus=3e4)
finger = ts.Body(shape={"kind": "box", "lower": [0.15, 0.1], "upper": [0.19, 0.3]}, material="silicone")
finger.regions["left"] = ts.Region(shape={"kind": "box", "lower": [0.15, 0.1], "upper": [0.17, 0.3]})
finger.regions["tip"] = ts.Region(shape={"kind": "box", "lower": [0.15, 0.1], "upper": [0.19, 0.12]})
scene.bodies["finger"] = finger
scene.obstacles["ball"] = ts.Obstacle(shape={"kind": "sphere", "center": [0.08, 0.1], "radius": 0.03}, friction=0.5)
times = np.linspace(0.0, 0.3, 4)
scene.actuators["tendon"] = ts.Actuator(
    kind="muscle", body="finger", region="left", direction=[0, 1], strength=2e4,
    signal=ts.Signal(kind="piecewise_linear", times=times, values=np.zeros(4), limits=[0.0, 1.0]),
)  # fmt: skip
scene.objectives["reach"] = ts.Objective(kind="distance", body="finger", region="tip", target=[0.12, 0.12])
scene.design = [ts.Design(path="actuators.tendon.signal.values", lower=0.0, upper=1.0, spread=0.1)]

scene.check()
print("saved as", scene.save("finger.toml"))
assert ts.Scene.load("finger.toml") == scene

result = ts.optimize(scene, iterations=10)
print(f"distance of the tip to its target: {result.loss[0]:.4f} -> {result.best_loss:.4f} m")
print("command at", times, "s:", np.round(result.parameters["actuators.tendon.signal.values"], 3))

with ts.Simulation(scene) as sim:
    for path, value in result.parameters.items():
        sim.set(path, value)
    sim.run(record=True)
    print("wrote", film(sim, "finger.gif", size=(320, 240)).path)
