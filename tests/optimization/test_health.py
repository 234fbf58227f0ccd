from taichi_sim.optimization.health import history_notes


def test_quiet_when_all_is_well():
    assert history_notes([3.0, None, 2.0, 2.5, 1.0, 0.5], [1.0, None, 2.0, 5.0, 1.0, 0.1]) == []


def test_erratic_gradients_are_named():
    (note,) = history_notes([3.0, 2.0, 2.5, 1.0, 1.0], [1.0, 2.0, 5e7, 1.0, 0.1])
    assert "evaluation 2" in note and "1e7" in note


def test_converging_gradients_are_not_erratic():
    assert history_notes([3.0, 2.0, 1.0, 0.5, 0.1, 0.0], [1e5, 1.0, 1e-3, 1e-5, 1e-7, 1e-9]) == []


def test_no_progress_is_named():
    (note,) = history_notes([1.0, 2.0, None, 3.0], [1.0, 1.0, None, 1.0])
    assert "the start is returned" in note
    assert history_notes([1.0], [1.0]) == []
