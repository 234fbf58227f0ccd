"""The timeline: executes a schedule on whatever can step. The only place gradients travel through time."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from checkpoint_schedules import Copy, EndForward, EndReverse, Forward, Move, Reverse, StorageType

from taichi_sim.timeline.schedule import Schedule
from taichi_sim.timeline.snapshots import Snapshots

#: Substeps of a segment when nothing is recorded.
UNRECORDED = 40

#: Called with the absolute substep and the slot that holds its state.
Event = Callable[[int, int], None]

#: The same on the way back. What it returns, if anything, is called when the adjoint is that of the slot before: what
#: is seen of a substep depends on the states at both its ends.
Entry = Callable[[int, int], Callable[[], None] | None]


class Stepper(Protocol):
    """What the timeline needs of a solver: substeps within a segment, and the state between segments."""

    def begin(self, start: int) -> None: ...
    def forward(self, k0: int, k1: int, record: bool) -> None: ...
    def backward(self, k0: int, k1: int) -> None: ...
    def read_slot(self, k: int) -> dict[str, np.ndarray]: ...
    def write_first_slot(self, state: dict[str, np.ndarray]) -> None: ...


class Timeline:
    """Runs ``stepper`` through ``schedule``.

    ``events`` are the absolute substeps at which the state is looked at (frames). Forward runs visit them once in
    order, replays skip them; the backward sweep visits them in reverse, before the adjoint passes through them. Where
    ``apart``, the substep to each event is run by itself, so that something may enter at its beginning.
    """

    def __init__(self, stepper: Stepper, schedule: Schedule, events: Sequence[int]) -> None:
        self.stepper = stepper
        self.schedule = schedule
        self.events = sorted(set(events))
        self.apart = False
        self.snapshots = Snapshots()
        self.substeps_run = 0
        self._recorded = False
        self._actions = iter(())

    def run(self, start: dict[str, np.ndarray], on_event: Event, record: bool) -> None:
        """Run all substeps from the state ``start``; with ``record``, :meth:`backward` may follow."""
        self.substeps_run = 0
        self._recorded = False
        self.snapshots.clear()
        self._state = start
        if not record:
            self._unrecorded(on_event)
            return
        self._actions = iter(self.schedule.plan())
        self._follow(EndForward, on_event, None)
        self._recorded = True

    def _unrecorded(self, on_event: Event) -> None:
        """All substeps in short segments, which stay in the cache."""
        whole, self.schedule = self.schedule, replace(self.schedule, segment=min(self.schedule.segment, UNRECORDED))
        try:
            for segment in range(self.schedule.segments):
                self._segment(segment, False, on_event)
        finally:
            self.schedule = whole

    def backward(self, on_event: Entry) -> None:
        """Carry the adjoint from the end to the beginning; ``on_event`` adds what enters at each event, and, where
        substeps to events were run ``apart``, what it returns adds what enters before the last substep to it.

        Raises ``RuntimeError`` where the last run was not recorded, or was swept already.
        """
        if not self._recorded:
            raise RuntimeError(
                "nothing was recorded to differentiate: only the last run is, and only once (call run() once in a tape)"
            )
        self._recorded = False
        self._follow(EndReverse, None, on_event)

    def _follow(self, stop: type, measure: Event | None, on_adjoint: Entry | None) -> None:
        for action in self._actions:
            if isinstance(action, Forward):
                if action.write_ics:
                    self.snapshots.save(action.n0, self._state, action.storage)
                for segment in range(action.n0, action.n1):
                    self._segment(segment, action.write_adj_deps, measure)
            elif isinstance(action, Reverse):
                for segment in range(action.n1 - 1, action.n0 - 1, -1):
                    self._reverse(segment, on_adjoint)
            elif isinstance(action, Copy | Move):
                state = self.snapshots.load(action.n, keep=isinstance(action, Copy))
                if action.to_storage == StorageType.WORK:
                    self._state = state
            if isinstance(action, stop):
                return

    def _bounds(self, segment: int) -> tuple[int, int]:
        start = segment * self.schedule.segment
        return start, min(start + self.schedule.segment, self.schedule.substeps)

    def _marks(self, segment: int) -> list[int]:
        """Events within a segment: after its start (or at substep 0), up to its end."""
        start, end = self._bounds(segment)
        return [t for t in self.events if start < t <= end or t == start == 0]

    def _segment(self, segment: int, record: bool, measure: Event | None) -> None:
        start, end = self._bounds(segment)
        self.stepper.begin(start)
        self.stepper.write_first_slot(self._state)
        k = 0
        for t in self._marks(segment):
            for stop in (t - start - 1, t - start) if self.apart else (t - start,):
                if stop > k:
                    self.stepper.forward(k, stop, record)
                    k = stop
            if measure is not None:
                measure(t, k)
        if end - start > k:
            self.stepper.forward(k, end - start, record)
        self.substeps_run += end - start
        self._state = self.stepper.read_slot(end - start)

    def _reverse(self, segment: int, on_adjoint: Entry | None) -> None:
        start, end = self._bounds(segment)
        k = end - start
        for t in reversed(self._marks(segment)):
            if k > t - start:
                self.stepper.backward(t - start, k)
                k = t - start
            early = on_adjoint(t, k) if on_adjoint is not None else None
            if early is not None and k > 0:
                self.stepper.backward(k - 1, k)
                k -= 1
                early()
        if k > 0:
            self.stepper.backward(0, k)

    def close(self) -> None:
        """Free the snapshots."""
        self.snapshots.close()
