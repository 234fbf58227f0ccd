"""A scene compiled and in memory: run it, differentiate it, look at it."""

import resource
import sys
from collections.abc import Callable, Sequence

import numpy as np

from taichi_sim.compile import observe
from taichi_sim.core.errors import unknown
from taichi_sim.core.given import text
from taichi_sim.io.hashing import state_hash
from taichi_sim.simulation.audit import Ledger
from taichi_sim.simulation.derivatives import Derivatives
from taichi_sim.simulation.mechanism import Mechanism
from taichi_sim.simulation.turns import exclusive
from taichi_sim.simulation.watch import Watch
from taichi_sim.timeline.tape import on_tape, open_tape, recording


class Simulation(Derivatives):
    """A scene ready to run. Use it in a ``with`` block, or call :meth:`close`.

    ``scene``: a :class:`Scene`, a file, or the name of a shipped scene. ``precision``: ``"f32"`` or ``"f64"``.
    ``envs``: independent copies that may differ in parameters and start; with 1 the leading axis is dropped
    everywhere. ``memory``: budget of the arrays and snapshots; gradients do not depend on it. ``segment``: substeps
    between checkpoints, otherwise chosen. ``seed``: placement of particles. ``threads``: default all cores (results
    do not depend on it).

    Raises ``SceneError`` or ``ValueError`` for mistakes in the scene or the arguments.
    """

    # ---- running ----

    @exclusive
    def run(self, record: "bool | Sequence[str]" = False, progress: Callable[[int, int], None] | None = None) -> None:
        """Run the rollout. With ``record`` the positions of every frame are kept in :attr:`rollout`; with paths of
        observables of the state (``["kinetic_energy", "bodies.torso.center_of_mass"]``) those are too.

        Inside a ``ti.ad.Tape`` the run is differentiable: losses of :meth:`array` and their gradients just work.
        Raises :class:`RolloutError` naming step, body, particle and position if it cannot be trusted.
        """
        self._run(record, progress)

    @exclusive
    def audit(
        self, record: "bool | Sequence[str]" = False, progress: Callable[[int, int], None] | None = None
    ) -> Ledger:
        """Run the rollout, to the same bits as :meth:`run`, and balance momentum and energy over every substep.

        Slower than :meth:`run`: every substep is read on the host. ``RuntimeError`` inside a ``ti.ad.Tape``; raises
        otherwise as :meth:`run`.
        """
        world, ledger, at = self._alive(), Ledger(self.precision), 0
        if recording():
            raise RuntimeError("audit() inside a ti.ad.Tape is not differentiated; call it outside, run() within")

        def stored(k: int) -> np.ndarray:
            soft = self.model.continuum
            assert soft is not None
            F = soft.look(world.solvers["continuum"], k, ("F",))["F"]
            return self._energy(F).sum(axis=1)

        watch = Watch(world, stored)

        def look(k: int) -> None:
            nonlocal at
            ledger.add(at * self.dt, watch.read(k))
            at += 1

        world.watch = look
        try:
            self._forward(self.model.judge.terms, False, record, progress)
        finally:
            world.watch = None
            watch.close()
        self._fill_user_arrays()
        return ledger

    def _run(self, record: "bool | Sequence[str]", progress: Callable[[int, int], None] | None) -> None:
        self._alive()
        if not recording():
            self._forward(self.model.judge.terms, False, record, progress)
            self._fill_user_arrays()
            return

        def forward() -> None:
            self._tape, self._gradients = open_tape(), {}  # should it break off, there are none
            felt = any(observe.select(self.model, path)[0].reads for path in self._user_arrays)
            self._forward(self.model.judge.terms, True, record, progress, felt=felt)
            self._fill_user_arrays()

        on_tape(forward, self._backward_from_arrays)

    def _ensure_run(self) -> None:
        if self._final is None or set(self._losses) != {t.name for t in self.model.judge.terms}:
            self._run(False, None)

    # ---- looking ----

    @exclusive
    def observe(self, path: str) -> np.ndarray:
        """Value of an observable after the last run (which is made if there was none).

        ``bodies.B.position`` and the like (see ``compile.observe``), ``loss``, ``objectives.NAME``,
        ``actuators.NAME.activation`` (frames,). ``contacts`` is a table of what touched in the last step: a structured
        array with a row for each contact of a rigid body, and one for all of its contacts with a continuum
        (``compile.contact_table``).
        """
        self._alive()
        if path == "contacts":
            self._ensure_run()
            return self._contacts()
        if text("an observable", path).startswith("actuators.") and path.endswith(".activation"):
            names = [a.name for a in self.model.actuators.actuators]
            name = path.split(".")[1]
            if name not in names:
                raise ValueError(unknown("actuator", name, names))
            self._ensure_run()
            return self._drop(self.model.actuators.activation[:, :, names.index(name)].copy())
        if self._terms_of(path) is None:
            observe.select(self.model, path)
        self._ensure_run()
        return self._drop(self._value(path))

    @exclusive
    def mechanism(self, env: int = 0) -> Mechanism:
        """Rigid bodies and joints, with the values they have now, as a mechanism: forward kinematics, Jacobians, mass
        matrix, inverse dynamics. Raises ``ValueError`` where there are no rigid bodies."""
        world, family = self._alive(), self.model.rigid
        if family is None:
            raise ValueError("there is no mechanism: the scene has no rigid bodies ([rigid.NAME] or [robots.NAME])")
        solver = world.solvers["rigid"]
        start = family.begin(self._values)
        family.apply(self._values, solver)
        if not 0 <= env < self.envs:
            raise ValueError(f"env must lie in 0 … {self.envs - 1}, got {env}")
        scales = [float(self._values[f"rigid.{body.name}.scale"][env]) for body in family.bodies]
        return Mechanism(family, solver, family.first(self._values, start), scales, env)

    @exclusive
    def state_hash(self) -> str:
        """Hash of the exact bits of the final state (x, v, C, F in body order)."""
        self._alive()
        self._ensure_run()
        assert self._final is not None
        return state_hash(self._final)

    @property
    def peak_memory_mb(self) -> float:
        """Largest resident memory of this process so far, MB."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)

    # ---- end ----

    def __enter__(self) -> "Simulation":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
