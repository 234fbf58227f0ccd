"""One backward sweep gives the derivative of a loss by every number of a scene; a Jacobian, and both checked.

python demos/gradient_of_anything.py
"""

import numpy as np

import taichi_sim as ts

scene = ts.Scene.load("throw")
scene.duration = 0.0960
scene.bodies["block"].velocity = [0.5, -3.0]  # at the floor, so that stiffness and friction matter too
scene.domain.walls["y_lower"] = ts.Wall(friction=0.3)

with ts.Simulation(scene, precision="f64") as sim:
    paths = ["materials.rubber.youngs_modulus", "materials.rubber.density", "gravity", "bodies.block.velocity",
             "bodies.block.rotation", "damping", "domain.walls.y_lower.friction"]  # fmt: skip
    loss, gradients = sim.value_and_grad("loss", wrt=paths)
    print(f"loss {loss:.6g}: squared distance of the block to its target, m²")
    units = sim.parameters()
    for path in paths:
        print(f"  d loss / d {path:32s} {np.array2string(gradients[path], precision=4)}  per {units[path]['unit']}")

    # every quantity of the scene has a gradient:
    print(f"{len(units)} quantities, for example", ", ".join(list(units)[:4]), "…")

    # a vector by a vector: how the centre of the block follows the throw
    print("d centre / d velocity, s:\n", sim.jacobian(of="bodies.block.center_of_mass", wrt="bodies.block.velocity"))

    # and the same gradient by finite differences
    report = sim.check_gradients("loss", ["gravity", "bodies.block.velocity"])
    print(report)
    assert report.ok
