"""Before and after in one frame."""

import numpy as np
import pytest

from taichi_sim.viz.caption import write
from taichi_sim.viz.compose import side_by_side


def flat(value: int, width: int = 80, height: int = 60) -> np.ndarray:
    return np.full((height, width, 3), value, np.uint8)


def test_columns_stand_side_by_side_and_the_shorter_one_waits():
    frames = list(side_by_side([[flat(10), flat(20)], (flat(v) for v in (100, 110, 120, 130))], gap=6))
    assert len(frames) == 4 and frames[0].shape == (60, 166, 3)
    assert [(f[5, 5, 0], f[5, 83, 0], f[5, 120, 0]) for f in frames] == [
        (10, 255, 100),
        (20, 255, 110),
        (20, 255, 120),
        (20, 255, 130),
    ]


def test_labels_are_on_the_picture_and_leave_the_frames_alone():
    left = flat(200)
    frame = next(side_by_side([[left], [flat(200)]], ["before", "after"]))
    assert frame.shape == (60, 164, 3)
    assert (frame[:30] == np.where(np.arange(164)[None, :, None] // 4 == 20, 255, 200)).all()
    assert (frame[40:, :80] < 60).any() and (frame[40:, 84:] < 60).any()
    assert (left == 200).all()


def test_what_does_not_fit_is_named():
    for columns, labels, words in (
        ([], [], "at least one"),
        ([[flat(1)]], ["a", "b"], "1 columns but 2 labels"),
        ([[flat(1)], [flat(1, height=50)]], [], "column 1 is 50 px high"),
        ([[flat(1)], []], [], "column 1 has no frames"),
        ([[flat(1) / 2]], [], "uint8"),
    ):
        with pytest.raises(ValueError, match=words):
            list(side_by_side(columns, labels))
    assert list(side_by_side([[], []])) == []


def test_captions_are_cut_to_fit_and_small_frames_survive():
    frame = flat(90, 320, 240)
    written = write(frame, "word " * 200 + "\nsecond", legend=True, note="grid 0.1 m")
    assert written.shape == frame.shape and (frame == 90).all()
    assert (written[:, -1] == 90).all() or (written != frame).any()
    for size in ((16, 16), (40, 20)):
        assert write(flat(90, *size), "caption\ntwo", True, "note").shape == (size[1], size[0], 3)
