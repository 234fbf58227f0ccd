"""From a scene to its optimised design: builds the simulation, runs a method, leaves a folder of results."""

import contextlib
import hashlib
import inspect
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim import runtime
from taichi_sim.core.errors import RolloutError
from taichi_sim.core.places import check_place
from taichi_sim.io.hashing import file_hash
from taichi_sim.io.results import versions, write_result
from taichi_sim.optimization.curriculum import checked_curriculum
from taichi_sim.optimization.health import history_notes
from taichi_sim.optimization.journal import Journal
from taichi_sim.optimization.loop import Outcome, Record, minimise, prepare
from taichi_sim.optimization.problem import Point, Problem
from taichi_sim.optimization.randomised import Randomised
from taichi_sim.optimization.result import OptimizationResult, base_record, ending
from taichi_sim.optimization.spread import gradient_spread

__all__ = ["JOURNAL", "optimize"]

#: Name of the file of evaluations in an optimisation's folder.
JOURNAL = "evaluations.jsonl"
#: Starts the spread of gradients is measured from, at the start of each stage of a curriculum.
SPREAD = 5


def optimize(
    scene: Any,
    method: str = "adam",
    iterations: int = 40,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    *,
    memory: str | int = "500MB",
    seed: int = 0,
    precision: str = "f32",
    arch: str = "cpu",
    threads: int | None = None,
    envs: int = 1,
    callback: Callable[[Record], None] | None = None,
    announce: Callable[[Any], None] | None = None,
    options: Mapping[str, float] | None = None,
    of: str = "loss",
    curriculum: Sequence[int] | None = None,
    spread: int | None = None,
) -> OptimizationResult:
    """Find better values for a scene's ``[[design]]`` entries.

    ``scene`` is a :class:`Scene`, a file or the name of a shipped scene; it is not changed. ``method`` is one of
    ``adam``, ``gd``, ``lbfgs`` with ``options`` as ``taichi-sim list`` shows them; ``iterations`` is the number of
    evaluations of loss and gradient, the start included. With ``out`` every evaluation is on disk before the next one
    begins (``evaluations.jsonl``, ``result.json``); ``resume`` continues there after a kill, to the same result bit for
    bit, with the same scene, method and options and at least as many iterations as there are evaluations (with a
    curriculum: the same). ``callback``
    gets a :class:`Record` per evaluation, ``announce`` the :class:`Simulation` before the first. ``seed`` decides the
    start (``spread`` of the design) and the seeding of particles; the other arguments are those
    of :class:`Simulation`.

    ``curriculum`` is for rollouts that are chaotic far from the answer: ``[25, 40, 70]`` optimises over the first 25
    frames, then from the best design found over 40, then 70, and last over all. Iterations are shared out equally among
    the stages; what one leaves goes to those after it. The result is the best of the last one.

    ``spread`` is the number of starts (about the scale of a step: see :func:`gradient_spread`) from which the spread
    of gradients is measured where a stage begins; a note says where it exceeds their mean. It costs as much as so many
    evaluations a stage, and the memory of as many environments (within ``memory`` again). By default 5 with a
    curriculum, else none.

    Where the scene says ``solver.contact_gradient = "randomised"`` loss and gradient of an evaluation are means over
    ``solver.gradient_samples`` starts near the design (:mod:`taichi_sim.optimization.randomised`), and its cost is that
    of as many environments; the last note says what the loss of the best design itself is.

    Raises ``ValueError`` for what the user can put right, before anything is simulated where possible;
    :class:`RolloutError` if the start cannot be simulated.
    """
    chosen, numbers = prepare(method, iterations, options)
    ends = checked_curriculum(curriculum, iterations)
    if spread is None:
        spread = SPREAD if ends else 0
    if isinstance(spread, bool) or not isinstance(spread, int) or spread < 0 or spread == 1:
        raise ValueError(f"spread must be 0 (not measured) or a number of starts, 2 at least, got {spread!r}")
    if envs != 1:
        raise ValueError(f"envs = {envs!r}: an optimisation follows one environment; start one per seed instead")
    if resume and out is None:
        raise ValueError("resume needs the folder of the interrupted optimisation (out)")
    from taichi_sim.scene.files import named_files
    from taichi_sim.scene.schema import Scene
    from taichi_sim.simulation import Simulation

    began = time.perf_counter()
    if not hasattr(scene, "to_dict"):
        scene = Scene.load(scene)
    folder = None if out is None else Path(out)
    if folder is not None:
        check_place("out", folder / JOURNAL, shown=folder)
    table = scene.to_dict()
    identity = {
        "scene": _digest(table),
        **{f"the file {name}": file_hash(path) for name, path in named_files(table, scene.folder).items()},
        "seed": seed,
        "precision": precision,
        "arch": arch,
        "of": of,
        "method": chosen.name,
        **{f"option {name}": number for name, number in numbers.items()},
        "taichi_sim": versions()["taichi-sim"],
        # what is done in a stage depends on what there is to do in all
        "curriculum": f"{', '.join(map(str, ends))} in {iterations}" if ends else None,
    }
    journal = Journal(None if folder is None else folder / JOURNAL, identity, resume)
    if len(journal) > iterations:
        raise ValueError(
            f"{journal.file}: holds {len(journal)} evaluations already; resume with iterations of at least as many, "
            f"got {iterations}"
        )
    settings = {"precision": precision, "arch": arch, "memory": memory, "seed": seed, "threads": threads}
    with Simulation(scene, envs=envs, **settings) as simulation, contextlib.ExitStack() as opened:
        problem = Problem(simulation, seed, of)
        policy = getattr(getattr(scene, "solver", None), "contact_gradient", "exact")
        if policy == "randomised":
            samples, sigma = scene.solver.gradient_samples, float(scene.solver.gradient_sigma)
            starts = opened.enter_context(Simulation(scene, envs=samples, **settings))
            problem = Randomised(simulation, starts, samples, sigma, seed, of)
        if announce is not None:
            announce(simulation)
        base = base_record(
            simulation, scene=scene.title, seed=seed, precision=precision, threads=runtime.current().threads, envs=envs,
            status="running", hashed=False,
        )  # fmt: skip
        folder_state = _Folder(folder, base, method, problem, began, callback)

        def begun(start: Point) -> list[str]:
            """Notes on the spread of gradients around the start of a stage."""
            at, horizon = problem.values(start.z), start.horizon or simulation.frames

            def measure() -> list[str]:
                try:
                    return gradient_spread(
                        scene, of, problem.paths, samples=spread, seed=seed, at=at, horizon=horizon,
                        precision=precision, arch=arch, memory=memory, threads=threads,
                    ).doubts  # fmt: skip
                except RolloutError as error:
                    return [f"the spread of gradients over {horizon} frames could not be measured: {error}"]

            return journal.measured(f"spread of {spread} over {horizon} frames", measure) if spread else []

        try:
            outcome = minimise(
                problem, method, iterations, options=options, journal=journal, callback=folder_state.evaluated,
                curriculum=ends, begun=begun,
            )  # fmt: skip
            problem.apply(outcome.best.z)
            simulation.run()
        except BaseException as error:  # whatever it was, the record may not go on saying "running"
            folder_state.broken(**ending(error))
            raise
        base["state_hash"] = simulation.state_hash()
        base["peak_memory_mb"] = round(float(simulation.peak_memory_mb), 1)
        doubts = list(simulation.doubts)
        if isinstance(problem, Randomised):
            doubts.append(
                f"losses are means over {len(problem.changes)} starts near the design (solver.contact_gradient = "
                f"'randomised'); {of} of the best design itself is {float(simulation.observe(of)):.6g}"
            )
        return folder_state.finished(outcome, doubts)


class _Folder:
    """Keeps ``result.json`` (if there is a folder) as good as what is known, after every evaluation."""

    def __init__(
        self, folder: Path | None, base: dict[str, Any], method: str, problem: Problem, began: float,
        callback: Callable[[Record], None] | None,
    ) -> None:  # fmt: skip
        self.folder, self.base, self.method, self.problem = folder, base, method, problem
        self.began, self.callback = began, callback
        self.replayed = 0.0
        self.result: OptimizationResult | None = None

    def evaluated(self, record: Record) -> None:
        self.replayed += record.seconds if record.replayed else 0.0
        if record.best is not None:
            if self.result is None:
                start = self.problem.values(record.best.z)
                self.result = OptimizationResult(
                    self.method, record.best_loss, record.iteration, [], [], start, start, "", [], self.base
                )
            if record.best_iteration == record.iteration:
                self.result.best_loss, self.result.best_iteration = record.best_loss, record.iteration
                self.result.parameters = self.problem.values(record.best.z)
        if self.result is not None:
            stages = self.result.stages
            if len(stages) == record.stage:
                stages.append({"horizon": record.horizon or self.base["frames"], "first": record.iteration})
            stages[-1]["evaluations"] = record.iteration + 1 - stages[-1]["first"]
            known = record.best is not None
            stages[-1]["best_iteration"] = record.best_iteration if known else None
            stages[-1]["best_loss"] = record.best_loss if known else None
            self.result.loss.append(record.loss)
            self.result.grad_norm.append(record.grad_norm)
            if not record.replayed:
                self.write("running")
        if self.callback is not None:
            self.callback(record)

    def write(self, status: str) -> None:
        self.base["status"] = status
        self.base["wall_s"] = round(time.perf_counter() - self.began + self.replayed, 3)
        if self.folder is not None:
            known = self.base if self.result is None else self.result.to_dict()
            write_result(self.folder, known, optimize=self.result is not None)

    def broken(self, status: str, reason: str) -> None:
        if self.result is not None:
            self.result.reason = reason
        else:
            self.base["reason"] = reason
        self.write(status)

    def finished(self, outcome: Outcome, doubts: list[str]) -> OptimizationResult:
        assert self.result is not None
        self.result.reason = outcome.reason
        history: list[str] = []
        for stage in outcome.stages:
            part = slice(stage.first, stage.first + stage.evaluations)
            history += history_notes(outcome.losses[part], outcome.grad_norms[part], stage.first, stage.horizon)
        self.result.notes = [*outcome.notes, *history, *doubts]
        self.write("finished")
        return self.result


def _digest(table: Any) -> str:
    """Hash of a scene's content, the same in another process."""
    return hashlib.sha256(json.dumps(table, sort_keys=True, default=_content).encode()).hexdigest()


def _content(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if callable(value):
        name = f"{getattr(value, '__module__', '')}:{getattr(value, '__qualname__', type(value).__qualname__)}"
        with contextlib.suppress(OSError, TypeError):  # typed into an interpreter, or not a function
            return f"{name} {inspect.getsource(value)}"
        return name
    return str(value)
