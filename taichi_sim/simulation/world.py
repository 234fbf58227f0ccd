"""All solvers of a simulation as one: what the timeline steps."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from taichi_sim.solvers.coupling.sphere_stepper import Spheres, SpheresStepper
from taichi_sim.solvers.coupling.stepper import CoupledStepper, Coupling


class World:
    """Solvers by the name of their family, stepped through the same substeps; a ``timeline.Stepper``.

    States are the solvers' own, every array under ``family.array``. With a ``coupling`` rigid bodies are stepped within
    the substeps of the family ``host``; with ``spheres`` particles are stepped within those of the continuum.
    """

    def __init__(
        self,
        solvers: Mapping[str, Any],
        coupling: Coupling | None = None,
        host: str = "",
        spheres: Spheres | None = None,
    ) -> None:
        self.solvers, self.coupling, self.host, self.spheres = dict(solvers), coupling, host, spheres
        #: Called after every substep with its slot; then they are run one at a time, to the same bits.
        self.watch: Callable[[int], None] | None = None
        self._steppers, coupled = dict(solvers), None
        if coupling is not None:
            coupled = CoupledStepper(self._steppers.pop(host), self._steppers.pop("rigid"), coupling)
            self._steppers = {"coupled": coupled, **self._steppers}
        if spheres is not None:
            both = SpheresStepper(solvers["continuum"], solvers["particles"], spheres, coupled)
            rest = {k: s for k, s in self._steppers.items() if k not in ("continuum", "particles", "coupled")}
            self._steppers = {"met": both, **rest}

    def finely(self) -> contextlib.AbstractContextManager[None]:
        """Steps whose differences may be taken: rigid bodies are solved to the last digits. (Coupled ones are as they
        are: what they push at limits what they can be solved to.)"""
        solver = self._steppers.get("rigid")
        return contextlib.nullcontext() if solver is None else solver.finely()

    @staticmethod
    def named(family: str, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The state of one family's solver as a part of all."""
        return {f"{family}.{name}": value for name, value in state.items()}

    def begin(self, start: int) -> None:
        """Start a segment at absolute substep ``start``."""
        for stepper in self._steppers.values():
            stepper.begin(start)

    def forward(self, k0: int, k1: int, record: bool) -> None:
        """Substeps of slots ``k0 … k1``."""
        if self.watch is None:
            self._step(k0, k1, record)
            return
        for k in range(k0, k1):
            self._step(k, k + 1, record)
            self.watch(k)

    def _step(self, k0: int, k1: int, record: bool) -> None:
        for stepper in self._steppers.values():
            stepper.forward(k0, k1, record)

    def backward(self, k0: int, k1: int) -> None:
        """Carry the adjoint of slot ``k1`` back to slot ``k0``."""
        for stepper in self._steppers.values():
            stepper.backward(k0, k1)

    def read_slot(self, k: int) -> dict[str, np.ndarray]:
        """Copy of the state of slot ``k``."""
        found: dict[str, np.ndarray] = {}
        for name, solver in self.solvers.items():
            found |= self.named(name, solver.read_slot(k))
        return found

    def write_first_slot(self, state: dict[str, np.ndarray]) -> None:
        """Put a state into slot 0 (call :meth:`begin` first)."""
        for name, solver in self.solvers.items():
            mine = f"{name}."
            solver.write_first_slot({key[len(mine) :]: v for key, v in state.items() if key.startswith(mine)})

    def clear_adjoints(self) -> None:
        """Set every adjoint to zero, before a backward sweep."""
        for stepper in self._steppers.values():
            stepper.clear_adjoints()

    def close(self) -> None:
        """Free all memory."""
        for stepper in self._steppers.values():
            stepper.close()
