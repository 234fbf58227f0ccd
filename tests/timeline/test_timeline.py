"""The timeline on a stepper made of NumPy: a nonlinear map whose derivative is known, whatever the schedule."""

import gc
import tempfile
from pathlib import Path

import numpy as np
import pytest
from checkpoint_schedules import StorageType

from taichi_sim.timeline.schedule import Costs, make_schedule
from taichi_sim.timeline.snapshots import Snapshots
from taichi_sim.timeline.timeline import UNRECORDED, Timeline

SUBSTEPS = 103
EVENTS = (0, 1, 20, 40, 41, 64, 102, 103)


class Map:
    """``x ← x + a sin(x) + b t`` on three numbers, slots as a solver has them; refuses what a timeline must not ask."""

    def __init__(self, slots: int, a: float = 0.07, b: float = 0.001) -> None:
        self.x = np.full((slots, 3), np.nan)
        self.a, self.b = a, b
        self.bar, self.a_bar = np.zeros(3), 0.0
        self.forward_steps = 0
        self.recorded: list[tuple[int, int]] = []

    def begin(self, start: int) -> None:
        self.start, self.at, self.recorded = start, 0, []
        self.x[:] = np.nan

    def forward(self, k0: int, k1: int, record: bool) -> None:
        assert k0 == self.at and k0 < k1 < len(self.x)
        for k in range(k0, k1):
            self.x[k + 1] = self.x[k] + self.a * np.sin(self.x[k]) + self.b * (self.start + k)
        self.forward_steps += k1 - k0
        self.at = k1
        if record:
            self.recorded.append((k0, k1))

    def backward(self, k0: int, k1: int) -> None:
        assert self.recorded.pop() == (k0, k1), "only what was recorded, in reverse"
        for k in range(k1 - 1, k0 - 1, -1):
            self.a_bar += float(self.bar @ np.sin(self.x[k]))
            self.bar = self.bar * (1 + self.a * np.cos(self.x[k]))

    def read_slot(self, k: int) -> dict[str, np.ndarray]:
        return {"x": self.x[k].copy()}

    def write_first_slot(self, state: dict[str, np.ndarray]) -> None:
        self.x[0] = state["x"]


START = np.array([0.3, -1.0, 2.0])


class Rollout:
    """A run with the loss ``Σ_events |x|² w(t)``, and its gradient by one backward sweep."""

    def __init__(self, segment: int, memory: int, substeps: int = SUBSTEPS, events=EVENTS) -> None:
        schedule = make_schedule(substeps, Costs(0, 8, 1000), memory, 1, segment)
        self.map = Map(schedule.segment + 1)
        self.timeline = Timeline(self.map, schedule, events)
        self.visited: list[tuple[int, int]] = []

    @staticmethod
    def weight(t: int) -> float:
        return 0.1 + np.cos(t)

    def run(self, record: bool) -> float:
        self.loss, self.visited = 0.0, []

        def look(t: int, k: int) -> None:
            self.visited.append((t, k))
            self.loss += self.weight(t) * float(self.map.x[k] @ self.map.x[k])

        self.timeline.run({"x": START.copy()}, look, record)
        return self.loss

    def gradient(self) -> tuple[np.ndarray, float]:
        self.map.bar, self.map.a_bar, self.seen = np.zeros(3), 0.0, []

        def enter(t: int, k: int) -> None:
            self.seen.append(t)
            self.map.bar = self.map.bar + 2 * self.weight(t) * self.map.x[k]

        self.timeline.backward(enter)
        return self.map.bar, self.map.a_bar


def reference(a: float, start: np.ndarray, substeps: int = SUBSTEPS, events=EVENTS) -> float:
    x, loss = start.astype(np.longdouble), np.longdouble(0)
    for t in range(substeps + 1):
        if t in events:
            loss += Rollout.weight(t) * np.sum(x * x)
        x = x + np.longdouble(a) * np.sin(x) + np.longdouble(0.001) * t
    return loss


def test_the_gradient_is_right():
    rollout = Rollout(SUBSTEPS, 10**6)
    assert rollout.run(True) == pytest.approx(float(reference(0.07, START)), rel=1e-12)
    bar, a_bar = rollout.gradient()
    h = 1e-6
    for i, unit in enumerate(np.eye(3)):
        difference = (reference(0.07, START + h * unit) - reference(0.07, START - h * unit)) / (2 * h)
        assert bar[i] == pytest.approx(float(difference), rel=1e-9)
    difference = (reference(0.07 + h, START) - reference(0.07 - h, START)) / (2 * h)
    assert a_bar == pytest.approx(float(difference), rel=1e-8)


ONE_SNAPSHOT, FIVE, ON_DISK = 2000, 6000, 900  # a snapshot costs 1000, 102 slots less than 1000


@pytest.mark.parametrize("memory", [10**6, FIVE, ONE_SNAPSHOT, ON_DISK])
@pytest.mark.parametrize("segment", [1, 7, 20, 64, 103, 1000])
def test_loss_and_gradient_do_not_depend_on_the_schedule(segment, memory):
    base = Rollout(SUBSTEPS, 10**6)
    loss, (bar, a_bar) = base.run(True), base.gradient()
    rollout = Rollout(segment, memory)
    schedule = rollout.timeline.schedule
    assert rollout.run(True) == loss
    assert [t for t, _ in rollout.visited] == list(EVENTS)
    assert all(t == k + max(0, t - 1) // schedule.segment * schedule.segment for t, k in rollout.visited)
    found_bar, found_a_bar = rollout.gradient()
    assert rollout.seen == list(reversed(EVENTS))
    assert np.array_equal(found_bar, bar) and found_a_bar == pytest.approx(a_bar, rel=1e-14)
    assert [t for t, _ in rollout.visited] == list(EVENTS), "replays do not look"
    assert rollout.map.forward_steps == rollout.timeline.substeps_run
    assert rollout.timeline.substeps_run <= schedule.replayed * schedule.segment
    rollout.timeline.close()


@pytest.mark.parametrize("memory", [10**6, ON_DISK])
def test_again_gives_the_same_bits(memory):
    rollout = Rollout(10, memory)
    found = [(rollout.run(True), *rollout.gradient()) for _ in range(2)]
    assert found[0][0] == found[1][0] and np.array_equal(found[0][1], found[1][1]) and found[0][2] == found[1][2]
    rollout.timeline.close()


@pytest.mark.parametrize("segment", [1, 7, 103])
def test_recording_changes_nothing(segment):
    rollout = Rollout(segment, 10**6)
    loss = rollout.run(True)
    assert rollout.run(False) == loss
    assert [t for t, _ in rollout.visited] == list(EVENTS)
    assert max(k for _, k in rollout.visited) <= min(segment, UNRECORDED)
    assert rollout.timeline.schedule.segment == segment, "the schedule is as it was"
    assert rollout.map.recorded == []
    assert rollout.timeline.snapshots._memory == {}, "nothing is kept of the recorded run"


def test_a_run_that_fails_leaves_the_schedule_alone():
    rollout = Rollout(103, 10**6)

    def fail(t: int, k: int) -> None:
        raise RuntimeError("look")

    with pytest.raises(RuntimeError, match=r"look"):
        rollout.timeline.run({"x": START.copy()}, fail, False)
    assert rollout.timeline.schedule.segment == 103
    assert rollout.run(True) == Rollout(103, 10**6).run(True)


def test_a_sweep_needs_a_recorded_run_of_its_own():
    rollout = Rollout(20, 10**6)
    with pytest.raises(RuntimeError, match=r"nothing was recorded"):
        rollout.gradient()
    rollout.run(True)
    rollout.gradient()
    with pytest.raises(RuntimeError, match=r"nothing was recorded"):
        rollout.gradient()
    rollout.run(True)
    rollout.run(False)
    with pytest.raises(RuntimeError, match=r"nothing was recorded"):
        rollout.gradient()


def test_events_may_be_none_or_given_twice_in_any_order():
    rollout = Rollout(20, 10**6, events=(103, 5, 5))
    rollout.run(True)
    rollout.gradient()
    assert [t for t, _ in rollout.visited] == [5, 103] and rollout.seen == [103, 5]
    rollout.timeline.events = []
    assert rollout.run(True) == 0.0
    assert rollout.gradient()[0].tolist() == [0.0, 0.0, 0.0]


def test_a_single_substep():
    rollout = Rollout(1, 10**6, substeps=1, events=(0, 1))
    rollout.run(True)
    rollout.gradient()
    assert [t for t, _ in rollout.visited] == [0, 1] and rollout.seen == [1, 0]


def test_snapshots_stay_within_the_schedule(monkeypatch):
    most = {"memory": 0, "disk": 0}
    save = Snapshots.save

    def watched(self, segment, state, storage):
        save(self, segment, state, storage)
        most["memory"] = max(most["memory"], len(self._memory))
        most["disk"] = max(most["disk"], len(self._disk))

    monkeypatch.setattr(Snapshots, "save", watched)
    rollout = Rollout(5, FIVE)
    schedule = rollout.timeline.schedule
    rollout.run(True)
    rollout.gradient()
    assert most["memory"] == schedule.in_memory > 0
    assert most["disk"] <= schedule.on_disk
    rollout.timeline.close()


def folders(where: Path) -> list[Path]:
    return sorted(where.iterdir())


def test_snapshots_on_disk_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rollout = Rollout(5, ON_DISK)
    assert rollout.timeline.schedule.on_disk > 0
    rollout.run(True)
    (folder,) = folders(tmp_path)
    assert folders(folder)
    rollout.gradient()
    rollout.run(True)  # half way: files are there
    rollout.timeline.close()
    rollout.timeline.close()
    assert folders(tmp_path) == []
    monkeypatch.undo()


def test_they_are_removed_with_a_timeline_nobody_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rollout = Rollout(5, ON_DISK)
    rollout.run(True)
    assert folders(tmp_path)
    del rollout
    gc.collect()
    assert folders(tmp_path) == []


def test_a_snapshot_is_what_was_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    snapshots = Snapshots()
    state = {"x": np.linspace(0, 1, 7).reshape(7, 1), "id": np.arange(7, dtype=np.int32)}
    snapshots.save(3, state, StorageType.RAM)
    snapshots.save(4, state, StorageType.DISK)
    for segment in (3, 4):
        for keep in (True, False):
            found = snapshots.load(segment, keep)
            assert all(np.array_equal(found[k], state[k]) and found[k].dtype == state[k].dtype for k in state)
        with pytest.raises(KeyError):
            snapshots.load(segment, True)
    snapshots.save(5, state, StorageType.DISK)
    snapshots.clear()
    assert list(tmp_path.rglob("*.npz")) == []
    snapshots.close()
    monkeypatch.undo()
