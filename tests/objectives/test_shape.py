"""Shape: known distances, files, mistakes."""

import numpy as np
import pytest

from taichi_sim.objectives.objective import Frame, objectives

SHAPE = objectives.get("shape")


def at(position: np.ndarray) -> Frame:
    n = len(position)
    return Frame(1.0, 10, position, np.zeros_like(position), position, np.zeros(0), 0.1, np.ones(n))


def test_chamfer_and_nearest_by_hand() -> None:
    frame = at(np.array([[0.0, 0.0], [1.0, 0.0]]))
    target = [[0.0, 1.0], [1.0, 0.0], [5.0, 0.0]]
    nearest = SHAPE.evaluate({"target": target, "mode": "nearest"}, frame)
    assert nearest.value == pytest.approx((1.0 + 0.0) / 2)  # (0,0) is 1 from both (0,1) and (1,0)
    chamfer = SHAPE.evaluate({"target": target}, frame)
    assert chamfer.value == pytest.approx(0.5 + (1.0 + 0.0 + 16.0) / 3)


def test_same_points_are_at_no_distance() -> None:
    points = np.random.default_rng(0).normal(size=(50, 3))
    found = SHAPE.evaluate({"target": points[::-1]}, at(points))
    assert found.value == 0.0 and not found.position.any() and not found.parameters["target"].any()


def test_against_all_pairs() -> None:
    rng = np.random.default_rng(1)
    points, target = rng.normal(size=(40, 3)), rng.normal(size=(30, 3))
    squared = ((points[:, None] - target) ** 2).sum(axis=2)
    found = SHAPE.evaluate({"target": target}, at(points))
    assert found.value == pytest.approx(squared.min(axis=1).mean() + squared.min(axis=0).mean(), rel=1e-14)
    # moving both sets together changes nothing
    assert np.allclose(found.position.sum(axis=0) + found.parameters["target"].sum(axis=0), 0, atol=1e-15)


def test_target_from_files(tmp_path) -> None:
    target = np.random.default_rng(2).normal(size=(7, 2))
    np.save(tmp_path / "target.npy", target)
    np.savetxt(tmp_path / "target.csv", target, delimiter=",", header="x,y", comments="")
    frame = at(np.random.default_rng(3).normal(size=(5, 2)))
    expected = SHAPE.evaluate({"target": target}, frame).value
    for name in ("target.npy", "target.csv"):
        prepared = SHAPE.prepare({"file": name}, tmp_path)
        assert SHAPE.evaluate(prepared, frame).value == expected
        assert SHAPE.evaluate({"file": str(tmp_path / name)}, frame).value == expected


def test_a_changed_file_is_read_again(tmp_path) -> None:
    import os

    path = tmp_path / "target.csv"
    for k, point in enumerate(("0.0,0.0", "3.0,0.0")):
        path.write_text(point)
        os.utime(path, ns=(k, k))
        assert SHAPE.evaluate({"file": str(path)}, at(np.zeros((1, 2)))).value == 2 * (3.0 * k) ** 2


def test_mistakes_are_named(tmp_path) -> None:
    frame = at(np.zeros((1, 2)))
    (tmp_path / "text.csv").write_text("1,2\n3,x\n")
    (tmp_path / "ragged.csv").write_text("1,2\n3\n")
    (tmp_path / "empty.csv").write_text("# nothing\n")
    (tmp_path / "gap.csv").write_text("1,2\n3,\n")
    for params, sentence in [
        ({}, "give target .*, or a file"),
        ({"target": [[0, 0]], "file": "a.npy"}, "one of the two"),
        ({"target": [[0, 0, 0]]}, "target has 3 components, the scene has 2"),
        ({"target": [0, 0]}, "target must be an array of shape"),
        ({"target": [[np.nan, 0]]}, "target must be finite"),
        ({"target": [[0, 0]], "mode": "champfer"}, "did you mean 'chamfer'"),
        ({"file": str(tmp_path / "none.csv")}, "there is no file .*none.csv"),
        ({"file": str(tmp_path / "text.csv")}, "text.csv could not be read .*x"),
        ({"file": str(tmp_path / "ragged.csv")}, "rows differ in length"),
        ({"file": str(tmp_path / "empty.csv")}, "holds no numbers"),
        ({"file": str(tmp_path / "gap.csv")}, "target must be finite"),
    ]:
        with pytest.raises(ValueError, match=f"objective 'shape': .*{sentence}"):
            SHAPE.evaluate(params, frame)
