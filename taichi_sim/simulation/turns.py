"""One use of a simulation at a time: threads take turns, and a use from inside another one is refused."""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from taichi_sim.runtime import launch_lock


class Used(Protocol):
    """What :func:`exclusive` needs: the name of the use under way, or ``""``."""

    _use: str


Of = TypeVar("Of", bound=Used)
Given = ParamSpec("Given")
Result = TypeVar("Result")


def exclusive(method: Callable[Concatenate[Of, Given], Result]) -> Callable[Concatenate[Of, Given], Result]:
    """A public method that runs, changes or closes a simulation.

    Another thread waits until it is done; the same thread (a ``progress``, a function of an objective) gets a
    ``RuntimeError``, for it would start a rollout in the arrays of the one under way. The lock is the one every launch
    takes anyway: a lock of each simulation's own could be held by a thread that waits for a launch of this one.
    """
    name = f"{method.__name__.strip('_')}()"

    @functools.wraps(method)
    def use(self: Of, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        with launch_lock:
            if self._use:
                raise RuntimeError(
                    f"{name} inside {self._use}: the simulation is in the middle of a rollout; in a progress or an "
                    f"objective's function read sim.recorded, and call {name} after {self._use}"
                )
            self._use = name
            try:
                return method(self, *args, **kwargs)
            finally:
                self._use = ""

    return use


def waiting(method: Callable[Concatenate[Of, Given], Result]) -> Callable[Concatenate[Of, Given], Result]:
    """A public method that only reads: another thread waits, the same one may read in the middle of a use."""

    @functools.wraps(method)
    def read(self: Of, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        with launch_lock:
            return method(self, *args, **kwargs)

    return read
