"""F8: the same seed gives the same bits, for any number of threads."""

import json
import tempfile
from pathlib import Path

from validate.case import Case, Report
from validate.process import python

PROGRAM = """
import hashlib, json, sys
import numpy as np
import taichi_sim as ts
out = {}
for name in %r:
    scene = ts.Scene.load(name)
    scene.duration = 4 * scene.frame_dt
    for threads in (1, 2):
        with ts.Simulation(scene, threads=threads, seed=3) as sim:
            for turn in (1, 2):
                sim.run()
                value, gradient = sim.value_and_grad()
                digest = hashlib.sha256(b"".join(np.ascontiguousarray(g).tobytes() for g in gradient.values()))
                out[f"{name} {threads} {turn}"] = [sim.state_hash(), repr(value), digest.hexdigest()]
print("RESULT" + json.dumps(out))
"""


def run(quick: bool) -> Report:
    report = Report("F8")
    names = ("crawler",) if quick else ("crawler", "pour", "quadruped")
    found: list[dict[str, list[str]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            ended = python(PROGRAM % (names,), Path(folder))
            line = next((one for one in ended.output.splitlines() if one.startswith("RESULT")), "RESULT{}")
            found.append(json.loads(line[len("RESULT") :]))
            if ended.code:
                report.notes.append(ended.errors.strip()[-300:])
    for name in names:
        runs = [bits for one in found for key, bits in one.items() if key.startswith(f"{name} ")]
        for k, what in enumerate(("final states", "losses", "gradients")):
            different = len({bits[k] for bits in runs})
            report.row(
                f"{name}: different {what} of {2 * 2 * 2} runs (2 processes, 1 and 2 threads)", 1.0, different, 0.0
            )
    return report


case = Case("F8", "same seed, same bits", run)
