"""A horizon that grows: far from an answer a whole rollout may be chaotic where its first frames are not.

Stages of a curriculum end at growing frames, the last one at the end of the rollout. Evaluations are shared out
equally (what a stage leaves goes to those after it, so that the last one gets its share at least); a stage starts from
the best design of the one before, and only its own evaluations are compared with each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

__all__ = ["LEAST", "Stage", "checked_curriculum", "horizons"]

#: Evaluations a stage needs: its start, and a step.
LEAST = 2


@dataclass(frozen=True)
class Stage:
    """Evaluations of one horizon: ``first`` is the index of the first one of all, ``evaluations`` how many there are.

    ``horizon`` in frames, 0 for a whole rollout where there is no curriculum. ``best_iteration`` is an index into all
    evaluations, ``best_loss`` the loss there, over the stage's horizon.
    """

    horizon: int
    first: int
    evaluations: int
    best_iteration: int
    best_loss: float


def checked_curriculum(curriculum: Sequence[Any] | None, iterations: int) -> tuple[int, ...]:
    """Ends of the stages in frames, the whole rollout left out. ``ValueError`` for what is not increasing whole numbers
    above 0, or too few ``iterations`` for so many stages."""
    if curriculum is None:
        return ()
    mistake = f"curriculum = {curriculum!r}: must be increasing whole numbers of frames, for example [25, 40, 70]"
    if isinstance(curriculum, str) or not isinstance(curriculum, Sequence):
        raise ValueError(mistake)
    ends = tuple(curriculum)
    if any(isinstance(end, bool) or not isinstance(end, int) or end < 1 for end in ends):
        raise ValueError(mistake)
    if any(a >= b for a, b in pairwise(ends)):
        raise ValueError(mistake)
    if ends and iterations < LEAST * (len(ends) + 1):
        raise ValueError(
            f"iterations = {iterations}: {len(ends) + 1} stages (the whole rollout is one) need at least "
            f"{LEAST * (len(ends) + 1)}, a start and a step each"
        )
    return ends


def horizons(ends: Sequence[int], frames: int) -> list[int]:
    """Horizon of every stage of a rollout of so many ``frames``; [0], all of it, without a curriculum.

    Raises ``ValueError`` for a stage that ends after the rollout.
    """
    if not ends:
        return [0]
    if ends[-1] > frames:
        raise ValueError(f"curriculum: a stage of {ends[-1]} frames is longer than the rollout, {frames} frames")
    return [*(end for end in ends if end < frames), frames]
