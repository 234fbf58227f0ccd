"""What the history of an optimisation says about its gradients."""

import math
from collections.abc import Sequence

__all__ = ["history_notes"]

#: A gradient this many times longer than all before it is called erratic.
ERRATIC = 1e3


def history_notes(
    losses: Sequence[float | None], grad_norms: Sequence[float | None], first: int = 0, horizon: int = 0
) -> list[str]:
    """Sentences on gradients that help little: erratic sizes, or a loss that no step lowered.

    Both have one entry per evaluation, ``None`` where it was rejected; ``first`` is the number of the first one, and
    ``horizon`` that of their stage of a curriculum, in frames.
    """
    stage = f"stage of {horizon} frames: " if horizon else ""
    notes = []
    largest = 0.0
    for at, size in enumerate(grad_norms):
        if size and largest and size > ERRATIC * largest:
            notes.append(
                f"{stage}the gradient norm at evaluation {first + at} is 1e{math.log10(size / largest):.0f} times that "
                "of all before: the rollout amplifies small changes; a shorter duration or more damping makes "
                "gradients useful again"
            )
            break
        largest = max(largest, size or 0.0)
    good = [value for value in losses if value is not None]
    if len(good) > 1 and min(good) == good[0]:
        notes.append(f"{stage}no step lowered the loss; the start is returned (a smaller lr may help)")
    return notes
