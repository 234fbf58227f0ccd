"""Cold and warm starts, then rounds in which every variant runs in turn."""

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bench.process import Failed, Worker, cache_folder, empty, environment, remember, remembered
from bench.scenes import BenchScene
from bench.variant import KINDS, Kind, Result, Unavailable

Say = Callable[[str], None]


@dataclass
class Measurement:
    """One variant on one scene. Lists hold one entry per round; times are of whole runs, in seconds."""

    scene: BenchScene
    variant: str
    forward: list[float] = field(default_factory=list)
    forward_cpu: list[float] = field(default_factory=list)
    forward_backward: list[float] = field(default_factory=list)
    cold_s: float | None = None  # from the start of the process, nothing compiled, to the end of the first forward run
    cold_gradient_s: float | None = None  # … to the end of the first forward and backward run after that
    cold_remembered: bool = False  # cold times are of an earlier run of this version
    warm_s: float | None = None
    warm_gradient_s: float | None = None
    peak_mb: float | None = None
    result: Result | None = None
    missing: str = ""  # why there is nothing
    failed: bool = False  # it should have worked

    def ns(self, what: str) -> float | None:
        """Median nanoseconds per particle and substep of ``forward`` or ``forward_backward``."""
        times = getattr(self, what)
        work = self.scene.n * self.scene.steps * self.scene.environments
        return statistics.median(times) / work * 1e9 if times else None


@dataclass
class Options:
    repeats: int = 5
    threads: int = os.cpu_count() or 1
    cold: bool = True  # measure cold starts
    fresh: bool = False  # also those that take minutes
    say: Say = lambda _: None


def import_seconds() -> float:
    """Median time of ``import taichi_sim`` in a new process, s."""
    program = "import time; t = time.perf_counter(); import taichi_sim; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", program]
    run = [subprocess.run(command, env=environment(), capture_output=True, text=True, check=True) for _ in range(5)]
    return statistics.median(float(result.stdout) for result in run)


def _first_runs(worker: Worker) -> dict[str, float]:
    worker.ask("forward")
    times = {"forward": worker.age_s}
    if worker.has_gradient:
        worker.ask("forward_backward")
        times["gradient"] = worker.age_s
    return times


def _start(measurement: Measurement, kind: Kind, options: Options) -> Worker:
    """A warm worker; ``measurement`` gets the times of the cold and the warm start."""
    scene, folder = measurement.scene, cache_folder(kind, measurement.scene)
    slow = kind.slow_cold_start and scene.dim == 3
    if options.cold:
        known = remembered(folder) if slow and not options.fresh else None
        measurement.cold_remembered = known is not None
        if known is None:
            options.say(f"{scene.name}: {kind.name}: cold start" + (" (takes minutes)" if slow else ""))
            empty(folder)
            with Worker(kind, scene, options.threads, folder) as worker:
                known = _first_runs(worker)
            remember(folder, known)
        measurement.cold_s, measurement.cold_gradient_s = known["forward"], known.get("gradient")
    elif slow and remembered(folder) is None:
        raise Unavailable("compiles for minutes; a full run does that once and keeps it")
    options.say(f"{scene.name}: {kind.name}: warm start")
    worker = Worker(kind, scene, options.threads, folder)
    try:
        times = _first_runs(worker)
    except BaseException:
        worker.close()
        raise
    measurement.warm_s, measurement.warm_gradient_s = times["forward"], times.get("gradient")
    return worker


def _finish(measurement: Measurement, worker: Worker) -> None:
    reply = worker.ask("result")
    measurement.peak_mb = reply.pop("peak_mb")
    measurement.result = Result(**reply)


def measure_group(pairs: Iterable[tuple[BenchScene, str]], options: Options) -> list[Measurement]:
    """Measure (scene, variant) pairs together: A B C A B C …, first forward, then forward and backward."""
    measurements = [Measurement(scene, variant) for scene, variant in pairs]
    running: list[tuple[Measurement, Worker]] = []

    def attempt(measurement: Measurement, action: Callable[[], None]) -> bool:
        try:
            action()
        except (Unavailable, Failed) as reason:
            measurement.missing, measurement.failed = str(reason), isinstance(reason, Failed)
            options.say(f"{measurement.scene.name}: {measurement.variant}: nothing measured: {reason}")
            return False
        return True

    try:
        for measurement in measurements:
            kind = KINDS[measurement.variant]
            attempt(measurement, lambda m=measurement, k=kind: running.append((m, _start(m, k, options))))
        for round_number in range(options.repeats):
            options.say(f"{', '.join(sorted({m.scene.name for m in measurements}))}: round {round_number + 1}")
            for word in ("forward", "forward_backward"):
                for measurement, worker in running:
                    if not measurement.missing and (word == "forward" or worker.has_gradient):
                        attempt(measurement, lambda m=measurement, w=worker, word=word: _round(m, w, word))
        for measurement, worker in running:
            if not measurement.missing:
                attempt(measurement, lambda m=measurement, w=worker: _finish(m, w))
    finally:
        for _, worker in running:
            worker.close()
    return measurements


def _round(measurement: Measurement, worker: Worker, word: str) -> None:
    reply = worker.ask(word)
    getattr(measurement, word).append(reply["wall_s"])
    if word == "forward":
        measurement.forward_cpu.append(reply["cpu_s"])


def measure_once(scene: BenchScene, variant: str, options: Options) -> Measurement:
    """One forward and backward run in a new process: for scenes that are about memory."""
    measurement = Measurement(scene, variant)
    kind = KINDS[variant]
    options.say(f"{scene.name}: {variant}: once")
    try:
        with Worker(kind, scene, options.threads, cache_folder(kind, scene)) as worker:
            _round(measurement, worker, "forward_backward")
            _finish(measurement, worker)
    except (Unavailable, Failed) as reason:
        measurement.missing, measurement.failed = str(reason), isinstance(reason, Failed)
        options.say(f"{scene.name}: {variant}: nothing measured: {reason}")
    return measurement
