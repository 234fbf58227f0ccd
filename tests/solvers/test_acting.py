"""Forces of chambers and tendons, and their hand-written adjoints, in every way they may stand."""

import numpy as np
import pytest
from acting_case import Case, case, solid

from taichi_sim.core import verify
from taichi_sim.solvers.acting.arrays import CHAMBER, TENDON, ActingPlan

DIMS = pytest.mark.parametrize("dim", [2, 3])


def checked(one: Case, names: tuple[str, ...], seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    bar = rng.normal(size=one.values["v"].shape)
    gradient = one.gradient(bar)
    rows = []
    for name in names:
        rows += verify.check(
            lambda x, name=name: float(np.sum(bar * one.velocities(**{name: x}))), one.values[name], gradient[name],
            rng, wrt=name, full=name in ("x", "trait", "drive"),
        )  # fmt: skip
    assert all(row.ok for row in rows), verify.GradientReport(rows)


@DIMS
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_adjoints(f64, dim: int, seed: int) -> None:
    plan, values = case(dim, 2, np.random.default_rng(seed))
    one = Case(f64, plan, values)
    checked(one, ("x", "weight", "offset", "mass", "dt", "trait", "drive"))


def alone(f64, dim: int, y: np.ndarray, unit: tuple[int, int, int], faces: np.ndarray, trait, drive) -> Case:
    """Anchors that are particles, of mass 1 kg, and one unit."""
    n = len(y)
    links = np.column_stack([np.arange(n), np.arange(n)])
    plan = ActingPlan(dim, 1, n, n, np.arange(n), links, faces, np.array([unit]))
    values = {
        "weight": np.ones(n), "offset": np.zeros((n, dim)), "mass": np.ones(n), "dt": np.ones(1), "x": y,
        "v": np.zeros((n, dim)), "trait": np.array([trait], float),
        "drive": np.tile(np.array([[drive]], float), (2, 1, 1)),
    }  # fmt: skip
    return Case(f64, plan, values)


def chamber(f64, dim: int, trait=(0.0, 1.0, 0.0), drive=(1.0, 0.0), seed=0) -> Case:
    corners, faces = solid(dim)
    y = corners + np.random.default_rng(seed).normal(0, 0.1, corners.shape) + 7.0
    return alone(f64, dim, y, (CHAMBER, 0, len(faces)), faces, trait, drive)


def volume(y: np.ndarray, faces: np.ndarray) -> float:
    corner = y[faces] - y.mean(axis=0)
    return float(np.sum(np.linalg.det(corner)) / (2 if y.shape[1] == 2 else 6))


@DIMS
def test_pressure_is_the_gradient_of_the_work(f64, dim: int) -> None:
    """The force is p ∂V/∂x; it adds up to nothing, and so do its moments, wherever the chamber is."""
    one = chamber(f64, dim, drive=(250.0, 0.0))
    force, y, faces = one.force()[0], one.values["x"], solid(dim)[1]
    way = np.random.default_rng(4).normal(size=y.shape)
    h = 1e-4
    slope = (volume(y + h * way, faces) - volume(y - h * way, faces)) / (2 * h)
    assert np.isclose(np.sum(force * way), 250.0 * slope, rtol=1e-6)
    scale = np.abs(force).max()
    assert np.abs(force.sum(axis=0)).max() < 1e-12 * scale
    moment = np.einsum("ni,nj->ij", y, force)
    assert np.abs(moment - moment.T).max() < 1e-11 * scale


@DIMS
def test_air_is_an_ideal_gas(f64, dim: int) -> None:
    """(p + p0) V = p0 V0 + added air; nothing added at V0 is no pressure; adjoints hold when it is nearly flat, too."""
    one = chamber(f64, dim, drive=(0.0, 40.0))
    V = volume(one.values["x"], solid(dim)[1])
    one.values["trait"] = np.array([[100.0, V, 0.0]])
    unit = chamber(f64, dim, drive=(1.0, 0.0)).force()
    assert np.allclose(one.force(), 40.0 / V * unit, rtol=1e-12)
    one.values["drive"][:] = 0.0
    assert np.abs(one.force()).max() < 1e-10
    one.values["x"] = 7.0 + 0.5 * (one.values["x"] - 7.0)
    assert np.allclose(one.force(), 100.0 * (2.0**dim - 1.0) * unit * 0.5 ** (dim - 1), rtol=1e-6)
    for squeezed in (1.0, 0.5, 0.1):
        one.values["x"] = 7.0 + squeezed * (one.values["x"] - 7.0)
        checked(one, ("x", "trait", "drive"))


@DIMS
def test_an_evacuated_chamber_ends_at_ambient_pressure(f64, dim: int) -> None:
    """Air taken out beyond all there is leaves a vacuum: −p0, whatever the volume."""
    one = chamber(f64, dim, trait=(100.0, 1.0, 0.0), drive=(0.0, -500.0))
    unit = chamber(f64, dim, drive=(1.0, 0.0)).force()
    assert np.allclose(one.force(), -100.0 * unit)
    checked(one, ("x", "trait", "drive"))


def cable(f64, y, trait, drive) -> Case:
    y = np.asarray(y, float)
    return alone(f64, y.shape[1], y, (TENDON, 0, len(y)), np.zeros((0, y.shape[1]), int), trait, drive)


def test_a_tendon_loses_tension_at_its_turns(f64) -> None:
    """A quarter turn about one point: exp(−μ π/2) of the tension goes on (the corner is smoothed by 0.02 rad)."""
    force = cable(f64, [[0, 0], [1, 0], [1, 1]], (0, 0, 0.3), (5.0, 0.0)).force()[0]
    assert np.allclose(force[0], [5.0, 0.0])
    assert np.isclose(-force[2, 1], 5.0 * np.exp(-0.3 * np.pi / 2), rtol=0.3 * 0.02)
    assert np.allclose(force.sum(axis=0), 0.0, atol=1e-14)
    no_friction = cable(f64, [[0, 0], [1, 0], [1, 1]], (0, 0, 0.0), (5.0, 0.0)).force()[0]
    assert np.allclose(no_friction[2], [0.0, -5.0])


def test_a_tendon_does_not_push(f64) -> None:
    slack = cable(f64, [[0, 0], [1, 0]], (50.0, 2.0, 0.0), (0.0, 0.0))
    assert not slack.force().any() and not slack.gradient(np.ones((2, 2)))["x"].any()
    taut = cable(f64, [[0, 0], [1, 0]], (50.0, 2.0, 0.0), (0.0, 1.5))
    assert np.isclose(taut.force()[0, 0, 0], 25.0)
    assert not cable(f64, [[0, 0], [1, 0]], (0, 0, 0.0), (-3.0, 0.0)).force().any()


@pytest.mark.parametrize(
    "y",
    [
        [[0, 0], [1, 0], [2, 0], [3, 0]],
        [[0, 0], [1, 0], [1.001, 0.001], [2, 0.4]],
        [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1.0]],
        [[0, 0], [1, 0], [1, 0.01], [0.2, 0.1]],
    ],
    ids=["straight", "points nearly together", "corners in space", "nearly folded"],
)
def test_adjoints_in_awkward_places(f64, y) -> None:
    one = cable(f64, y, (3.0, 0.2, 0.4), (1.0, 0.1))
    checked(one, ("x", "trait", "drive"))


def test_coincident_and_folded_points_are_finite(f64) -> None:
    for y in ([[0, 0], [0, 0], [1, 0]], [[0, 0], [1, 0], [0, 0]], [[0, 0], [0, 0], [0, 0]]):
        one = cable(f64, y, (3.0, 0.2, 0.4), (1.0, 0.1))
        assert np.isfinite(one.force()).all()
        assert all(np.isfinite(g).all() for g in one.gradient(np.ones((3, 2))).values())


def test_velocities_come_back_to_the_bit(f64) -> None:
    plan, values = case(2, 2, np.random.default_rng(0))
    one = Case(f64, plan, values)
    after = one.velocities()
    assert np.array_equal(one.host.view("v")[0], values["v"]) and not np.array_equal(after, values["v"])
    order = np.concatenate([np.random.default_rng(e).permutation(12) for e in range(2)])
    shuffled = {n: values[n].reshape(2, 12, 2)[np.arange(2).repeat(12), order] for n in ("x", "v")}
    one.acting.sort(order)
    assert np.array_equal(one.velocities(**shuffled), after.reshape(2, 12, 2)[np.arange(2).repeat(12), order])
