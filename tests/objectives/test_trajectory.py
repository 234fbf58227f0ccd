"""Trajectory: markers on particles, interpolation, gaps, files, mistakes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taichi_sim import Body, Domain, Material, Objective, Scene, Simulation
from taichi_sim.objectives.objective import Frame, objectives

KIND = objectives.get("trajectory")
BEAM = Path(__file__).parents[3] / "shared" / "data" / "soft_beam" / "beam_gravity_V2_a.csv"
GRID = np.stack(np.meshgrid(np.arange(6) * 0.1, np.arange(5) * 0.1, indexing="ij"), axis=-1).reshape(-1, 2)


def at(time: float, position: np.ndarray, rest: np.ndarray = GRID) -> Frame:
    return Frame(time, 0, position, np.zeros_like(position), rest, np.zeros(0), 0.01, np.ones(len(position)))


def line(markers: np.ndarray, times: np.ndarray, speed: np.ndarray) -> np.ndarray:
    return markers[None] + times[:, None, None] * speed


MARKERS = np.array([[0.21, 0.13], [0.62, 0.4]])  # the second stands off the body
TIMES = np.linspace(0, 1, 11)
SPEED = np.array([0.3, -0.2])
GIVEN = {"markers": MARKERS, "times": TIMES, "data": line(MARKERS, TIMES, SPEED)}


@pytest.mark.parametrize("time", [0.0, 0.13, 0.5, 1.0])
@pytest.mark.parametrize("how", [{"count": 1}, {"count": 4}, {"radius": 0.15}])
def test_a_body_that_follows_the_data_has_no_residual(time: float, how: dict) -> None:
    found = KIND.evaluate({**GIVEN, **how}, at(time, GRID + time * SPEED))
    assert found.value < 1e-30 and np.abs(found.position).max() < 1e-14


def test_value_is_the_mean_squared_distance() -> None:
    found = KIND.evaluate(GIVEN, at(0.25, GRID + 0.25 * SPEED + [0.03, 0.04]))
    assert found.value == pytest.approx(0.05**2)
    assert np.allclose(found.position.sum(axis=0), 2 * np.array([0.03, 0.04]))


def test_gaps_do_not_count() -> None:
    data = GIVEN["data"].copy()
    data[3, 0, 1] = np.nan  # t = 0.3: the first marker is not seen there, nor between 0.2 and 0.4
    moved = GRID.copy()  # both markers are off by t * SPEED
    for time, seen in [(0.2, 2), (0.25, 1), (0.3, 1), (0.39, 1), (0.4, 2)]:
        found = KIND.evaluate({**GIVEN, "data": data}, at(time, moved))
        assert found.value == pytest.approx(time**2 * np.sum(SPEED**2))  # the mean over those seen
        assert (np.abs(found.parameters["markers"]).sum(axis=1) > 0).sum() == seen
    data[:] = np.nan
    found = KIND.evaluate({**GIVEN, "data": data}, at(0.3, moved))
    assert found.value == 0.0 and not found.position.any() and not found.parameters["data"].any()


def test_no_data_outside_their_times() -> None:
    for time in (-0.5, 1.2):
        found = KIND.evaluate(GIVEN, at(time, GRID + 7.0))
        assert found.value == 0.0 and not found.position.any()
    # the clocks differ by rounding: the last sample still counts
    assert KIND.evaluate(GIVEN, at(1.0 + 1e-9, GRID + SPEED + [0.1, 0.0])).value == pytest.approx(0.01)


def test_one_sample_is_enough() -> None:
    one = {"markers": MARKERS, "times": [0.5], "data": MARKERS[None] + 0.1}
    assert KIND.evaluate(one, at(0.5, GRID)).value == pytest.approx(0.02)
    assert KIND.evaluate(one, at(0.6, GRID)).value == 0.0


def test_carriers_follow_the_rest_positions_not_an_earlier_choice() -> None:
    found = []
    for rest in (GRID, GRID[::-1].copy(), GRID):
        position = np.where(rest[:, :1] < 0.25, rest, rest + 1.0)
        found.append(KIND.evaluate({**GIVEN, "count": 1}, at(0.0, position, rest)))
    assert found[0].value == found[1].value == found[2].value > 0
    assert np.array_equal(found[0].position[::-1], found[1].position)
    assert np.array_equal(found[0].position, found[2].position)


def test_files(tmp_path) -> None:
    table = np.column_stack([TIMES, GIVEN["data"].reshape(11, -1)])
    np.save(tmp_path / "motion.npy", table)
    rows = [",".join(map(repr, map(float, row))) for row in table]
    rows[4] = ",".join([*rows[4].split(",")[:1], "", *rows[4].split(",")[2:4], "nan"])
    (tmp_path / "motion.csv").write_text("\n".join(["time,ax,ay,bx,by", *rows]))
    frame = at(0.6, GRID)
    expected = KIND.evaluate(GIVEN, frame).value
    for name in ("motion.npy", "motion.csv"):
        prepared = KIND.prepare({"markers": MARKERS, "file": name}, tmp_path)
        assert KIND.evaluate(prepared, frame).value == expected
    assert np.isnan(prepared["data"][4]).sum() == 2 and KIND.evaluate(prepared, at(0.4, GRID)).value == 0.0


@pytest.mark.skipif(not BEAM.is_file(), reason="recorded motion (shared/data) is not here")
def test_recorded_beam() -> None:
    markers = np.genfromtxt(BEAM, delimiter=",")[71, 1:].reshape(6, 3)  # t = 0, at the release
    prepared = KIND.prepare({"markers": markers, "file": str(BEAM), "count": 8})
    rest = np.random.default_rng(0).uniform([-0.1, 0, 0], [0, 0.03, 0.03], size=(2000, 3))
    assert KIND.evaluate(prepared, at(0.0, rest, rest)).value == 0.0
    sag = KIND.evaluate(prepared, at(0.065, rest, rest)).value  # half a period later the tip is 6.4 mm below
    assert 1e-6 < sag < 1e-3


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"data": GIVEN["data"][:-1]}, r"data has shape \(10, 2, 2\); 11 times and 2 markers need \(11, 2, 2\)"),
        ({"data": GIVEN["data"][:, :1]}, "data has shape"),
        ({"times": TIMES[::-1]}, "times must be finite and increase"),
        ({"count": 31}, "count = 31 must be from 1 to the number of particles, 30"),
        ({"radius": 0.01}, r"no particle so near markers\[0\]"),
        ({"markers": np.zeros((0, 2))}, "markers is empty"),
        ({"markers": np.zeros((2, 3))}, "data has shape"),
        ({"file": "x.csv"}, "one of the two"),
        ({"data": ()}, "one of the two"),
    ],
)
def test_mistakes_are_named(changed: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"objective 'trajectory': .*{sentence}"):
        KIND.evaluate({**GIVEN, **changed}, at(0.5, GRID))


def test_wrong_columns_are_named(tmp_path) -> None:
    np.save(tmp_path / "motion.npy", np.zeros((5, 4)))
    with pytest.raises(ValueError, match="2 markers need 5 columns"):
        KIND.prepare({"markers": MARKERS, "file": "motion.npy"}, tmp_path)


def test_of_particles_equally_near_rounding_does_not_choose() -> None:
    middle = np.array([[0.2, 0.2]])  # on a particle: the three further ones are any of four
    (plain,) = KIND.choose(KIND.prepare({**GIVEN, "markers": middle, "data": GIVEN["data"][:, :1], "count": 4}), GRID)
    assert len(plain) == 4 and 12 in plain
    for shift in np.random.default_rng(0).normal(size=(20, 2)) * 1e-9:
        given = {**GIVEN, "markers": middle + shift, "data": GIVEN["data"][:, :1], "count": 4}
        assert np.array_equal(KIND.choose(KIND.prepare(given), GRID)[0], plain)


def test_what_was_chosen_stays() -> None:
    chosen = KIND.choose(KIND.prepare(GIVEN), GRID)
    turned = GRID[::-1].copy()
    frame = replace(at(0.5, turned * 1.1, turned), chosen=chosen)
    touched = np.flatnonzero(KIND.evaluate(GIVEN, frame).position.any(axis=1))
    assert np.array_equal(touched, np.unique(np.concatenate(chosen)))


def test_the_loss_is_smooth_in_where_the_body_is() -> None:
    """Markers on and between particles of a lattice: which of them are the four nearest is up to the last bit."""
    markers = np.array([[0.5125, 0.4], [0.5625, 0.4375]])
    scene = Scene(
        dim=2, duration=0.04, frame_dt=0.01, domain=Domain(upper=[1.0, 1.0], cells=20),
        materials={"soft": Material(law="neo_hookean", density=1000.0, youngs_modulus=1e4)},
        bodies={
            "box": Body(
                shape={"kind": "box", "lower": [0.4, 0.3], "upper": [0.6, 0.5]}, material="soft", seeding="lattice",
                angular_velocity=5.0,
            )
        },
        objectives={
            "t": Objective(
                kind="trajectory", body="box", markers=markers, times=[0.0, 0.04], data=[markers, markers + 0.02]
            )
        },
    )  # fmt: skip
    with Simulation(scene, precision="f64", threads=1) as sim:
        report = sim.check_gradients(wrt=["bodies.box.position", "objectives.t.markers"], full=True)
        assert report.ok, report
        losses = []
        for shift in (-1e-7, 0.0, 1e-7):
            sim.set("bodies.box.position", [shift, shift])
            sim.run()
            losses.append(float(sim.observe("loss")))
        assert abs(losses[0] + losses[2] - 2 * losses[1]) < 1e-12 and np.ptp(losses) < 1e-7, losses
