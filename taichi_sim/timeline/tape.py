"""Joining a user's ``ti.ad.Tape``: the only place that registers with Taichi's own differentiation."""

import contextlib
from collections.abc import Callable, Iterator

from taichi_sim.runtime import impl, launch_lock, ti


def recording() -> bool:
    """Whether a ``ti.ad.Tape`` of the user is open."""
    return impl.get_runtime().target_tape is not None


def open_tape() -> object | None:
    """The ``ti.ad.Tape`` that is open, to tell it from another one."""
    return impl.get_runtime().target_tape


def on_tape(forward: Callable[[], None], backward: Callable[[], None]) -> None:
    """Run ``forward`` so that an open tape calls ``backward`` when it plays back.

    Registered once and never nested: Taichi registers replaced functions that call each other twice, silently.
    """
    if not recording():
        forward()
        return

    @ti.ad.grad_replaced
    def run() -> None:
        forward()

    @ti.ad.grad_for(run)
    def run_backward() -> None:
        backward()

    run()


@contextlib.contextmanager
def off_tape() -> Iterator[None]:
    """What is launched in here an open tape of the user does not see.

    Otherwise it would differentiate our own kernels too: filling an array, say, whose gradient would be lost. Taichi
    has one tape a process, so another Python thread waits here.
    """
    with launch_lock:
        state = impl.get_runtime()
        before, state.grad_replaced = state.grad_replaced, True
        try:
            yield
        finally:
            state.grad_replaced = before
