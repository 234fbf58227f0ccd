"""One use of a simulation at a time: threads take turns, and a use from inside another one is refused."""

import threading

import numpy as np
import pytest
from tiny import tiny

from taichi_sim import Simulation


def build(changes=None, **options):
    return Simulation(tiny(changes), precision="f64", threads=2, **options)


@pytest.mark.parametrize("segment", [None, 7])
def test_a_use_inside_progress_is_refused_and_disturbs_nothing(segment):
    with build(segment=segment) as sim:
        expected, gradients = sim.value_and_grad("loss", "gravity")
        sim.run(record=True)
        first = sim.rollout.position
        uses = {
            "run()": sim.run, "observe()": lambda: sim.observe("loss"), "set()": lambda: sim.set("gravity", 0.0),
            "value_and_grad()": sim.value_and_grad, "vjp()": lambda: sim.vjp("loss", "gravity", 1.0),
            "jvp()": lambda: sim.jvp("loss", "gravity", [1.0, 0.0]),
            "jacobian()": lambda: sim.jacobian("loss", "gravity"), "check_gradients()": sim.check_gradients,
            "state_hash()": sim.state_hash, "array()": lambda: sim.array("position"), "close()": sim.close,
        }  # fmt: skip
        read = []

        def progress(done, of):
            for name, use in uses.items():
                with pytest.raises(RuntimeError) as error:
                    use()
                text = str(error.value)
                assert text.startswith(f"{name} inside run(): the simulation is in the middle of a rollout; ")
                assert "sim.recorded" in text and text.endswith("after run()") and "\n" not in text
            read.append((len(sim.recorded), sim.get("gravity")[1], sim.dt, len(sim.parameters()), len(sim.design)))

        sim.run(record=True, progress=progress)
        assert [n for n, *_ in read] == list(range(1, 14))
        assert np.array_equal(sim.rollout.position, first) and sim.observe("loss") == expected
        again, repeated = sim.value_and_grad("loss", "gravity")
        assert again == expected and np.array_equal(repeated["gravity"], gradients["gravity"])


def test_a_progress_that_breaks_off_leaves_it_usable():
    with build() as sim:
        expected = sim.observe("loss")

        def progress(done, of):
            if done:
                sim.observe("loss")

        with pytest.raises(RuntimeError, match=r"observe\(\) inside run\(\)"):
            sim.run(progress=progress)
        assert sim.observe("loss") == expected


def test_an_objectives_function_may_not_run_its_simulation():
    made = []

    def judge(frame):
        if made:
            made[0].observe("kinetic_energy")
        return 0.0, {}

    own = {"objectives": {"own": {"kind": "function", "function": judge}}, "duration": 0.02}
    with build(own) as sim:
        made.append(sim)
        with pytest.raises((RuntimeError, ValueError), match=r"observe\(\) inside value_and_grad\(\)"):
            sim.value_and_grad("loss", "gravity")


def test_one_simulation_may_be_used_by_several_threads():
    with build() as sim:
        uses = [
            lambda: (v := sim.value_and_grad("loss", "gravity"))[0] + v[1]["gravity"].tolist()[1],
            lambda: float(sim.observe("loss")),
            lambda: float(sim.jvp("loss", "gravity", [0.0, 1.0])),
            lambda: float(sim.get("gravity")[1]),
        ]
        expected = [use() for use in uses]
        found: dict[int, object] = {}

        def work(k: int) -> None:
            try:
                found[k] = {uses[k]() for _ in range(5)}
            except Exception as error:
                found[k] = error

        threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(len(uses))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert found == {k: {value} for k, value in enumerate(expected)}
