"""From a memory budget to a schedule: how long a segment is stored whole, and how many snapshots are kept.

A rollout of ``n`` segments with ``s`` snapshots is replayed by the binomial schedule of Griewank and Walther (Revolve,
ACM TOMS 2000), as built by the package ``checkpoint-schedules``.
"""

import re
from dataclasses import dataclass

from checkpoint_schedules import Forward, MultistageCheckpointSchedule

from taichi_sim.core.memory import size_text

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}

#: Snapshots on disk where memory has room for few. Writing and reading one costs about as much as running a segment.
DISK_SNAPSHOTS = 64


def parse_memory(size: str | int | float) -> int:
    """Bytes of a size such as ``"500MB"``, ``"2 GiB"`` or a number of bytes.

    Raises ``ValueError`` for anything else, and for a size that is not positive.
    """
    given = size
    if isinstance(size, str):
        found = re.fullmatch(r"\s*(-?[0-9]*\.?[0-9]+)\s*([a-zA-Z]*)\s*", size)
        if not found or found[2].lower() not in _UNITS:
            raise ValueError(f"memory = {size!r}: write a size such as '500MB' or '2GB'")
        size = float(found[1]) * _UNITS[found[2].lower()]
    if isinstance(size, bool) or not isinstance(size, int | float) or not 1 <= size < float("inf"):
        raise ValueError(f"memory = {given!r}: must be above 0, a size such as '500MB'")
    return int(size)


@dataclass(frozen=True)
class Costs:
    """Bytes of one rollout: ``fixed`` whatever the schedule, ``stored`` per substep of a segment (state and active
    grid), ``snapshot`` per snapshot."""

    fixed: int
    stored: int
    snapshot: int


@dataclass(frozen=True)
class Schedule:
    """``substeps`` in segments of ``segment``; ``in_memory`` and ``on_disk`` snapshots between them."""

    substeps: int
    segment: int
    in_memory: int
    on_disk: int
    replayed: int
    bytes: int

    @property
    def segments(self) -> int:
        """Number of segments; the last one may be shorter."""
        return -(-self.substeps // self.segment)

    @property
    def factor(self) -> float:
        """Forward substeps of a gradient for each substep of the rollout (1: everything is stored)."""
        return self.replayed / self.segments

    def plan(self) -> MultistageCheckpointSchedule:
        """A fresh sequence of actions."""
        return MultistageCheckpointSchedule(self.segments, self.in_memory, self.on_disk)

    def __str__(self) -> str:
        kept = (
            "everything stored"
            if self.segments == 1
            else f"{self.segments} segments of {self.segment}, {self.in_memory} snapshots in memory"
            + (f", {self.on_disk} on disk" if self.on_disk else "")
        )
        return f"{self.substeps} substeps: {kept}; {self.factor:.2f} forward passes; {size_text(self.bytes)}"


def _replayed(segments: int, in_memory: int, on_disk: int) -> int:
    """Segments run forwards by one gradient."""
    plan = MultistageCheckpointSchedule(segments, in_memory, on_disk)
    return sum(action.n1 - action.n0 for action in plan if isinstance(action, Forward))


def _estimate(segments: int, snapshots: int) -> int:
    """Close to :func:`_replayed`, without building the schedule: ``r n - C(s + r, r - 1) + n``."""
    if segments == 1:
        return 1
    if snapshots < 1:
        return segments * (segments + 1) // 2
    rounds, reach = 0, 1
    while reach < segments:
        rounds += 1
        reach = reach * (snapshots + rounds) // rounds
    below = reach * rounds // (snapshots + 1)  # C(s + r, r - 1)
    return rounds * segments - below + segments


def make_schedule(
    substeps: int, costs: Costs, memory: int, every: int, segment: int | None = None, longest: int | None = None
) -> Schedule:
    """The schedule with the fewest replayed substeps that fits into ``memory`` bytes.

    Segments are multiples of ``every`` (the sort interval) unless ``segment`` is given, and no longer than ``longest``
    (what arrays can address). Where few snapshots fit beside a segment, more go to disk. Raises ``ValueError`` naming
    the least memory that works.
    """
    if segment is not None:
        if isinstance(segment, bool) or not isinstance(segment, int) or segment < 1:
            raise ValueError(f"segment must be a whole number of substeps of at least 1, got {segment!r}")
        lengths = [min(segment, substeps)]
    else:
        most = min(substeps, longest or substeps)
        lengths = sorted({min(most, every * max(1, round(1.25**k))) for k in range(60)})
    best: tuple[float, int, Schedule] | None = None
    for length in lengths:
        segments = -(-substeps // length)
        base = costs.fixed + (length + 1) * costs.stored
        room = (memory - base) // costs.snapshot if memory > base else -1
        if room < 0 and length > lengths[0]:
            break
        in_memory = int(max(0, min(segments - 1, room)))
        for on_disk in (0, min(segments - 1 - in_memory, DISK_SNAPSHOTS)):
            if segments > 1 and in_memory + on_disk == 0:
                continue
            replayed = _estimate(segments, in_memory + on_disk) + on_disk
            found = Schedule(substeps, length, in_memory, on_disk, replayed, base + in_memory * costs.snapshot)
            cost = replayed / segments
            if best is None or (cost, segments) < best[:2]:
                best = (cost, segments, found)
    assert best is not None
    chosen = best[2]
    if chosen.bytes > memory:
        raise ValueError(
            f"memory = {size_text(memory)} is too little for this scene: it needs at least "
            f"{size_text(chosen.bytes, up=True)} (a larger domain.spacing or fewer particles needs less)"
        )
    replayed = _replayed(chosen.segments, chosen.in_memory, chosen.on_disk)
    return Schedule(chosen.substeps, chosen.segment, chosen.in_memory, chosen.on_disk, replayed, chosen.bytes)
