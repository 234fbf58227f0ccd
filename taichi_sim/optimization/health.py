"""What the history of an optimisation says about its gradients."""

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["history_notes"]

#: The largest gradient norm over the median one above which gradients are called erratic.
ERRATIC = 1e3


def history_notes(losses: Sequence[float | None], grad_norms: Sequence[float | None]) -> list[str]:
    """Sentences on gradients that help little: erratic sizes, or a loss that no step lowered.

    Both have one entry per evaluation, ``None`` where it was rejected.
    """
    notes = []
    sizes = np.array([g for g in grad_norms if g is not None and g > 0])
    if sizes.size >= 5:
        ratio = float(sizes.max() / np.median(sizes))
        if ratio > ERRATIC:
            at = next(i for i, g in enumerate(grad_norms) if g == sizes.max())
            notes.append(
                f"the gradient norm at evaluation {at} is 1e{math.log10(ratio):.0f} times the median: the rollout "
                "amplifies small changes; a shorter duration or more damping makes gradients useful again"
            )
    good = [value for value in losses if value is not None]
    if len(good) > 1 and min(good) == good[0]:
        notes.append("no step lowered the loss; the start is returned (a smaller lr may help)")
    return notes
