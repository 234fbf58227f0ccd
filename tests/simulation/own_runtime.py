"""A user's program with a Taichi of its own, run by ``test_runtime_owner``; prints what it finds as JSON."""

import gc
import json
import sys

import numpy as np
import taichi as ti

ti.init(arch=ti.cpu, default_fp=ti.f64, cpu_max_num_threads=2, log_level=ti.ERROR)
mine = ti.field(ti.f64, shape=1000)
mine.from_numpy(np.arange(1000.0))


@ti.kernel
def double():
    for i in mine:
        mine[i] = 2 * mine[i]


from tiny import tiny  # noqa: E402

import taichi_sim as ts  # noqa: E402
from taichi_sim import runtime  # noqa: E402

found = {}


def sentence(call) -> str:
    """What a call raises, as ``Type: message``."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def intact(factor: float) -> bool:
    return bool(np.array_equal(mine.to_numpy(), factor * np.arange(1000.0)))


# their runtime is joined, their field stays
sim = ts.Simulation(tiny(), precision="f64", threads=2)
found["joined"] = not runtime.current().owned
value = sim.observe("loss")
array = sim.array("bodies.block.position")
found["intact while it runs"] = intact(1)
double()
found["still works"] = intact(2)
other = ts.Simulation(tiny(), precision="f64", threads=2)
other.run()
other.close()
gc.collect()
found["intact after close"] = intact(2)
sim.run()
found["same again"] = bool(sim.observe("loss") == value)

# what their runtime does not have is refused, not restarted
found["other precision"] = sentence(lambda: ts.Simulation(tiny(), precision="f32", threads=2))
found["other threads"] = sentence(lambda: ts.Simulation(tiny(), precision="f64", threads=1))
found["intact after refusals"] = intact(2)

# a later ti.init: every use of the old simulation says so in one sentence
ti.init(arch=ti.cpu, default_fp=ti.f64, cpu_max_num_threads=2, log_level=ti.ERROR)
found["stale"] = {
    "run": sentence(sim.run),
    "observe": sentence(lambda: sim.observe("loss")),
    "value_and_grad": sentence(sim.value_and_grad),
    "vjp": sentence(lambda: sim.vjp("loss", "gravity", 1.0)),
    "jacobian": sentence(lambda: sim.jacobian("loss", "gravity")),
    "jvp": sentence(lambda: sim.jvp("loss", "gravity", [1.0, 0.0])),
    "check_gradients": sentence(sim.check_gradients),
    "array": sentence(lambda: sim.array("bodies.block.position")),
    "new array": sentence(lambda: sim.array("bodies.ball.position")),
    "state_hash": sentence(sim.state_hash),
    "set": sentence(lambda: sim.set("gravity", [0.0, 0.0])),
    "why_zero": sentence(lambda: sim.why_zero("gravity")),
}
found["close"] = sentence(sim.close)
found["close again"] = sentence(sim.close)
new = ts.Simulation(tiny(), precision="f64", threads=2)
found["new one is the same"] = bool(new.observe("loss") == value)
keep = [new._world.solvers["continuum"].store.view("material").copy()]
sim = other = array = None
gc.collect()
found["untouched by the old one's end"] = bool(
    np.array_equal(keep[0], new._world.solvers["continuum"].store.view("material"))
)
ti.reset()
found["after reset"] = sentence(new.run)
found["current"] = sentence(runtime.current)
new.close()

# with nobody's runtime left, ours starts, and restarts for another precision
ours = ts.Simulation(tiny(), precision="f64", threads=2)
found["owned"] = runtime.current().owned
found["value of ours"] = bool(ours.observe("loss") == value)
single = ts.Simulation(tiny(), precision="f32", threads=2)
found["replaced by another precision"] = sentence(ours.run)
json.dump(found, sys.stdout)
