"""Teach the crawler to walk, in a few evaluations, and look at the result.

    python demos/optimise.py [evaluations]

Leaves demo_crawler/ with result.json, evaluations.jsonl and crawler.gif.
"""

import sys

import taichi_sim as ts
from taichi_sim.film import film

evaluations = int(sys.argv[1]) if len(sys.argv) > 1 else 40


def show(record):
    loss = "rejected" if record.loss is None else f"{record.loss:.4f}"
    print(f"{record.iteration + 1:3d}  loss {loss}  best {record.best_loss:.4f}", flush=True)


result = ts.optimize("crawler", method="adam", iterations=evaluations, out="demo_crawler", callback=show)
print(f"best loss {result.best_loss:.4f} at evaluation {result.best_iteration + 1}")

with ts.Simulation("crawler") as sim:
    for path, value in result.parameters.items():
        sim.set(path, value)
    sim.run(record=True)
    print("the walker's centre is now at", sim.observe("bodies.walker.center_of_mass"), "m")
    print("wrote", film(sim, "demo_crawler/crawler.gif", size=(320, 240), most=40).path)
