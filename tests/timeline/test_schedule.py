"""From a budget of memory to a schedule: sizes as people write them, never over budget, as little replay as fits."""

import re
import time
from itertools import pairwise

import pytest
from checkpoint_schedules import Forward
from hypothesis import given, settings
from hypothesis import strategies as st

from taichi_sim.core.memory import size_text
from taichi_sim.timeline.schedule import DISK_SNAPSHOTS, Costs, Schedule, make_schedule, parse_memory

COSTS = Costs(fixed=1_000_000, stored=20_000, snapshot=30_000)


@pytest.mark.parametrize(
    ("size", "count"),
    [
        ("500MB", 500_000_000), ("2 GiB", 2 * 2**30), ("1.5gb", 1_500_000_000), (" .5 kB ", 500), ("64", 64),
        ("10b", 10), (1234, 1234), (12.7, 12), ("1KiB", 1024), ("3MiB", 3 * 2**20),
    ],
)  # fmt: skip
def test_sizes(size, count):
    assert parse_memory(size) == count


@pytest.mark.parametrize(
    "size", ["", "MB", "5 XB", "-5MB", "1e3MB", "5MB5", "five", 0, -1, 0.5, "0MB", True, None, [1], float("nan")]
)
def test_sizes_that_are_none(size):
    with pytest.raises(ValueError, match=r"memory = .*such as '500MB'"):
        parse_memory(size)


def test_an_endless_size_is_refused():
    with pytest.raises(ValueError, match=r"memory = inf"):
        parse_memory(float("inf"))


def used(schedule: Schedule, costs: Costs) -> int:
    return costs.fixed + (schedule.segment + 1) * costs.stored + schedule.in_memory * costs.snapshot


@settings(max_examples=80, deadline=None)
@given(
    substeps=st.integers(1, 3_000),
    every=st.integers(1, 40),
    stored=st.integers(1, 10**5),
    snapshot=st.integers(1, 10**5),
    memory=st.integers(10**5, 3 * 10**8),
)
def test_never_over_budget_and_complete(substeps, every, stored, snapshot, memory):
    costs = Costs(fixed=10**5, stored=stored, snapshot=snapshot)
    shortest = min(substeps, every)
    least = costs.fixed + (shortest + 1) * stored
    if memory < least:
        with pytest.raises(ValueError, match=re.escape(f"at least {size_text(least, up=True)}")):
            make_schedule(substeps, costs, memory, every)
        return
    schedule = make_schedule(substeps, costs, memory, every)
    assert schedule.bytes == used(schedule, costs) <= memory
    assert schedule.segment % every == 0 or schedule.segment == substeps
    assert (schedule.segments - 1) * schedule.segment < substeps <= schedule.segments * schedule.segment
    assert schedule.factor >= 1
    assert schedule.in_memory + schedule.on_disk <= max(0, schedule.segments - 1)
    run = sum(a.n1 - a.n0 for a in schedule.plan() if isinstance(a, Forward))
    assert run == schedule.replayed
    if costs.fixed + (substeps + 1) * stored < memory:
        assert schedule.segments == 1 and schedule.factor == 1


def test_everything_is_stored_where_it_fits():
    whole = COSTS.fixed + 1001 * COSTS.stored
    schedule = make_schedule(1000, COSTS, whole + 1, every=10)
    assert (schedule.segments, schedule.in_memory, schedule.on_disk, schedule.factor) == (1, 0, 0, 1.0)
    assert "everything stored" in str(schedule) and "1000 substeps" in str(schedule)
    less = make_schedule(1000, COSTS, whole - 1, every=10)
    assert less.segments > 1
    assert f"{less.segments} segments of {less.segment}" in str(less)
    assert f"{less.factor:.2f} forward passes" in str(less) and less.factor < 2


def test_less_memory_means_more_replay():
    work = []
    for k in range(40):
        try:
            schedule = make_schedule(20_000, COSTS, int(1e8 * 0.8**k), every=10)
        except ValueError:
            break
        work.append(schedule.factor + schedule.on_disk / schedule.segments)
    assert 15 < len(work) < 40
    assert all(more >= less * (1 - 1e-3) for less, more in pairwise(work))
    assert work[0] < 2 < 2.5 < work[-1] < 4


def test_the_least_memory_it_names_is_enough():
    with pytest.raises(ValueError, match=r"memory = 1\.0 MB is too little for this scene: it needs at least 1\.\d MB"):
        make_schedule(20_000, COSTS, parse_memory("1MB"), every=10)
    schedule = make_schedule(20_000, COSTS, parse_memory("2MB"), every=10)
    assert schedule.bytes <= 2_000_000
    tight = COSTS.fixed + 11 * COSTS.stored
    on_disk = make_schedule(20_000, COSTS, tight, every=10)
    assert on_disk.in_memory == 0 and on_disk.on_disk == DISK_SNAPSHOTS and "on disk" in str(on_disk)
    with pytest.raises(ValueError):
        make_schedule(20_000, COSTS, tight - 1, every=10)


def test_a_given_segment_is_kept():
    for segment in (1, 7, 64, 1000, 5000):
        schedule = make_schedule(1000, COSTS, 10**9, every=10, segment=segment)
        assert schedule.segment == min(segment, 1000)
    for wrong in (0, -3, 2.5, "7", True):
        with pytest.raises(ValueError, match=r"segment must be a whole number"):
            make_schedule(1000, COSTS, 10**9, every=10, segment=wrong)  # type: ignore[arg-type]


def test_no_longer_than_the_arrays_can_address():
    assert make_schedule(1000, COSTS, 10**9, every=10, longest=250).segment == 250
    assert make_schedule(1000, COSTS, 10**9, every=10, longest=5000).segment == 1000
    assert make_schedule(1000, COSTS, 10**9, every=10, longest=4).segment == 4


@pytest.mark.parametrize("memory", ["500MB", "20MB", "4MB", "1300kB"])
def test_a_hundred_thousand_substeps_are_planned_in_no_time(memory):
    start = time.process_time()
    schedule = make_schedule(100_000, COSTS, parse_memory(memory), every=10)
    assert time.process_time() - start < 2.0
    assert schedule.factor < 5  # a budget for 2 snapshots in memory gives 94 without those on disk
