"""Final states as Taichi arrays for a user's own loss, and what that loss leaves in their gradients carried back."""

from collections.abc import Iterable

import numpy as np

from taichi_sim.compile import observe
from taichi_sim.compile.sensors import numbers_of
from taichi_sim.core.given import text
from taichi_sim.runtime import ti
from taichi_sim.simulation.backwards import Backwards
from taichi_sim.simulation.turns import exclusive
from taichi_sim.timeline.tape import off_tape

#: What of points there are arrays of, and its name in the state.
KEYS = {"position": "x", "velocity": "v", "deformation": "F"}


class UserArrays(Backwards):
    """The part of :class:`Simulation` that joins a ``ti.ad.Tape``."""

    @exclusive
    def array(self, path: str) -> ti.Ndarray:
        """Final-frame ``position``, ``velocity`` or ``deformation`` of a body, or ``sensors.NAME.value``, as a Taichi
        ndarray with a gradient.

        :meth:`Simulation.run` fills it and zeroes its gradient; inside a ``ti.ad.Tape`` what a loss leaves in ``.grad``
        is carried back, and :meth:`Simulation.gradient` gives the result.
        """
        self._alive()
        if text("an observable", path) not in self._user_arrays:
            quantity, particles = observe.select(self.model, path)
            if path.startswith("sensors."):
                read = numbers_of(quantity, particles, self.dim)
                with off_tape():
                    shape = read if self.envs == 1 else (self.envs, *read)
                    self._user_arrays[path] = ti.ndarray(self._runtime.real, shape, needs_grad=True)
                    self._fill_user_arrays([path])
                return self._user_arrays[path]
            if path.split(".")[-1] not in KEYS:
                raise ValueError(
                    f"{path!r}: of {quantity.doc} there is no array, only of position, velocity, deformation, and of "
                    "sensors"
                )
            shape = (len(particles),) if self.envs == 1 else (self.envs, len(particles))
            real, dim = self._runtime.real, self.dim
            element = ti.types.matrix(dim, dim, real) if path.endswith("deformation") else ti.types.vector(dim, real)
            with off_tape():
                self._user_arrays[path] = ti.ndarray(element, shape, needs_grad=True)
                self._fill_user_arrays([path])
        return self._user_arrays[path]

    def _fill_user_arrays(self, paths: "Iterable[str] | None" = None) -> None:
        if self._untaken():  # of a tape without a run: the gradients of the tape before are not its own
            self._gradients = {}
        with off_tape():
            for path in self._user_arrays if paths is None else paths:
                array = self._user_arrays[path]
                if self._final is not None and path.startswith("sensors."):
                    read = np.asarray(self._drop(self._value(path)), self._number())
                    array.from_numpy(np.ascontiguousarray(read).reshape(array.shape))
                elif self._final is not None:
                    _, particles = observe.select(self.model, path)
                    key = KEYS[path.split(".")[-1]]
                    array.from_numpy(np.ascontiguousarray(self._drop(self._final[key][:, particles])))
                array.grad.fill(0)
                self._taken.pop(path, None)

    @exclusive
    def _backward_from_arrays(self) -> None:
        self._tape = None
        if self._final is None:
            raise RuntimeError(
                "what the ti.ad.Tape recorded is gone: run() has to be the last use of the simulation in it"
            )
        self._taken = {}
        seeds = {k: np.zeros(self._final[k].shape) for k in ("x", "v", "F")}
        for path, array in self._user_arrays.items():
            bar = self._taken[path] = array.grad.to_numpy().astype(np.float64)
            if path.startswith("sensors."):
                self._add_seeds(seeds, path, bar[None] if self.envs == 1 else bar)
                continue
            _, particles = observe.select(self.model, path)
            key = KEYS[path.split(".")[-1]]
            seeds[key][:, particles] += bar[None] if self.envs == 1 else bar
        self._gradients = self._sweep([], seeds)

    def _number(self) -> type:
        return np.float64 if self.precision == "f64" else np.float32

    def _untaken(self) -> bool:
        """Whether a loss left something in an array's gradient that was not carried back."""
        if not self._runtime.alive:
            return False
        for path, array in self._user_arrays.items():
            with off_tape():
                bar = array.grad.to_numpy()
            if bar.any() and not np.array_equal(bar, self._taken.get(path, [])):
                return True
        return False
