"""Rollouts come back as they were written, and other tools read them."""

import csv
import os

import numpy as np
import pytest
import trimesh

from taichi_sim.io.rollout import Rollout, read_rollout, write_rollout


def some(dim: int = 3) -> Rollout:
    rng = np.random.default_rng(3)
    position = rng.normal(size=(5, 7, dim)).astype(np.float32)
    return Rollout(
        np.arange(5) * 0.016,
        position,
        {"torso": slice(0, 4), "ball": slice(4, 7)},
        rng.normal(size=(4, 2)),
        ["front", "back"],
        velocity=position * 2,
        colors=rng.uniform(size=(7, 3)),
        lower=np.zeros(dim),
        upper=np.ones(dim),
        scene="crawler",
    )


@pytest.mark.parametrize("dim", [2, 3])
def test_npz_round_trip_is_exact(tmp_path, dim):
    rollout = some(dim)
    back = read_rollout(write_rollout(tmp_path / "r.npz", rollout))
    for name in ("times", "position", "velocity", "activation", "lower", "upper"):
        assert (getattr(back, name) == getattr(rollout, name)).all()
    assert np.allclose(back.colors, rollout.colors, atol=1e-7)
    assert back.bodies == rollout.bodies and list(back.actuators) == ["front", "back"] and back.scene == "crawler"
    with np.load(tmp_path / "r.npz", allow_pickle=False) as plain:  # what the documentation promises
        assert plain["position"].dtype == np.float32 and plain["body_start"].tolist() == [0, 4, 7]
        assert int(plain["format"]) == 1
    assert os.listdir(tmp_path) == ["r.npz"]


def test_ply_frames_are_read_by_trimesh(tmp_path):
    rollout = some()
    write_rollout(tmp_path / "clouds", rollout, "ply")
    assert sorted(os.listdir(tmp_path / "clouds")) == [f"{k:04d}.ply" for k in range(5)]
    cloud = trimesh.load(tmp_path / "clouds" / "0002.ply")
    assert np.allclose(cloud.vertices, rollout.position[2], atol=0)
    assert np.abs(cloud.colors[:, :3] - 255 * rollout.colors).max() <= 0.51
    head = (tmp_path / "clouds" / "0002.ply").read_bytes().split(b"end_header")[0].decode()
    assert "comment body 1 ball" in head and "comment time 0.032" in head


def test_csv_frames_are_exact(tmp_path):
    rollout = some(2)
    write_rollout(tmp_path / "clouds", rollout, "csv")
    with open(tmp_path / "clouds" / "0004.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [r["body"] for r in rows] == ["torso"] * 4 + ["ball"] * 3
    assert (np.float32([[r["x"], r["y"]] for r in rows]) == rollout.position[4]).all()
    assert (np.float32([[r["vx"], r["vy"]] for r in rows]) == rollout.velocity[4]).all()


def test_what_does_not_fit_is_named(tmp_path):
    position, times = np.zeros((3, 4, 2)), np.arange(3.0)
    for change, words in (
        ({"times": np.arange(4.0)}, "times"),
        ({"position": np.zeros((3, 4, 4))}, "position"),
        ({"bodies": {"a": slice(0, 3)}}, "bodies hold 3"),
        ({"bodies": {"a": slice(0, 2), "b": slice(3, 4)}}, "body 'b' must start at particle 2"),
        ({"activation": np.zeros((3, 1)), "actuators": ["a"]}, r"activation must have shape \(2, 1\)"),
        ({"colors": np.zeros((3, 3))}, "colors"),
    ):
        with pytest.raises(ValueError, match=words):
            Rollout(**{"times": times, "position": position, "bodies": {"a": slice(0, 4)}, **change})
    good = Rollout(times, position, {"a": slice(0, 4)})
    for path, kind in (("r.txt", None), ("folder", None), ("folder", "obj"), ("r.npz", "ply")):
        with pytest.raises(ValueError, match="allowed"):
            write_rollout(tmp_path / path, good, kind)
    (tmp_path / "r.npz").write_text("no zip")
    with pytest.raises(ValueError, match="rollout"):
        read_rollout(tmp_path / "r.npz")
