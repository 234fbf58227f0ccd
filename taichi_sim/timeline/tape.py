"""Joining a user's ``ti.ad.Tape``: the only place that registers with Taichi's own differentiation."""

from collections.abc import Callable

from taichi_sim.runtime import impl, ti


def recording() -> bool:
    """Whether a ``ti.ad.Tape`` of the user is open."""
    return impl.get_runtime().target_tape is not None


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
