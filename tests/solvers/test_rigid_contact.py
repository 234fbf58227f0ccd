"""Contact with walls: slide, incline, rolling, rest; and gradients of everything through contact."""

import numpy as np
import pytest
from assembly import Assembly
from rigid_case import PARAMETERS, STATE, Rollout, build, run

from taichi_sim import runtime
from taichi_sim.solvers.rigid.solver import RigidSolver, RigidTrouble

G = 9.81


def slide(dim, steps=1000, mu=0.4, h=1e-3):
    """A box at rest in its own weight's dent, pushed off at 3 m/s."""
    a = Assembly(dim)
    a.values |= {"friction": mu, "dt": h}
    a.gravity[-1] = -G
    a.wall([0.0] * (dim - 1) + [1.0], 0.0)
    sink = G / (a.values["stiffness"] * 2 ** (dim - 1))
    a.box(1.0, [0.1] * dim, [0.0] * (dim - 1) + [0.1 - sink], velocity=[3.0] + [0.0] * (dim - 1))
    return build(a, steps)


@pytest.mark.parametrize("dim", [2, 3])
def test_slide_stops(f64, dim):
    """ACCEPTANCE B2 and D3: v²/2μg = 1.146789 m after .764526 s; dd/dμ -2.866972, dd/dv .764526."""
    solver = slide(dim)
    run(solver, 1000)
    x, v = (solver.store.view(n)[:, 0, 0] for n in ("position", "velocity"))
    assert x[1000] == pytest.approx(1.146789, rel=2e-3)
    assert np.argmax(v < 1e-3) * 1e-3 == pytest.approx(0.764526, abs=2e-3)
    solver.clear_adjoints()
    solver.store.view("d_position")[0, 0] = 1.0
    solver.backward(0, 1000)
    assert solver.store.reduced_adjoint("friction")[0] == pytest.approx(-2.866972, rel=2e-3)
    assert solver.store.view("d_velocity")[0, 0] == pytest.approx(0.764526, rel=1e-3)


def incline(dim, slope, mu, sphere=False, hollow=False):
    a = Assembly(dim)
    a.values |= {"friction": mu}
    a.gravity[0], a.gravity[-1] = G * np.sin(slope), -G * np.cos(slope)
    a.wall([0.0] * (dim - 1) + [1.0], 0.0)
    sink = G * np.cos(slope) / a.values["stiffness"]
    place = [0.0] * (dim - 1) + [0.1 - (sink if sphere else sink / 2 ** (dim - 1))]
    if sphere:
        b = a.sphere(1.0, 0.1, place)
        if hollow:
            a.bodies[b].inertia[:3] = 2 / 3 * 0.1**2
    else:
        a.box(1.0, [0.1] * dim, place)
    solver = build(a, 1000)
    run(solver, 1000)
    return np.array(solver.store.view("velocity")[:, 0, 0])


def test_incline(f64):
    """ACCEPTANCE B3: sticks iff tan θ ≤ μ, creep below 1e-4 m/s; else g (sin θ - μ cos θ), .5 %."""
    slope = np.arctan(0.4)
    assert np.abs(incline(2, slope, 0.41)[200:]).max() < 1e-4
    v = incline(2, slope, 0.3)
    assert v[1000] - v[500] == pytest.approx(0.5 * G * (np.sin(slope) - 0.3 * np.cos(slope)), rel=5e-3)


@pytest.mark.parametrize(("dim", "hollow", "share"), [(2, False, 2 / 3), (3, False, 5 / 7), (3, True, 3 / 5)])
def test_rolling(f64, dim, hollow, share):
    """ACCEPTANCE B4: 5/7 g sin θ for a solid sphere, 3/5 for a hollow one, 2/3 for a cylinder, .5 %."""
    slope = np.radians(20)
    v = incline(dim, slope, 0.5, sphere=True, hollow=hollow)
    assert v[1000] - v[500] == pytest.approx(0.5 * share * G * np.sin(slope), rel=5e-3)


def tumble(dim, envs=1, steps=40, round=False):
    """A box or a sphere thrown flat onto a floor with a wall, h 1/148."""
    rng = np.random.default_rng(2)
    a = Assembly(dim)
    a.values |= {"friction": 0.3, "stiffness": 2e3, "damping": 2.0, "stiction": 0.05, "dt": 1 / 148}
    a.gravity[-1] = -G
    a.wall([0.05, *[0.1] * (dim - 2), 1.0], 0.0)
    a.wall([-1.0, *[0.1] * (dim - 2), 0.1], -0.6)
    state = {
        "velocity": [2.0, *[0.4] * (dim - 2), -1.0],
        "spin": rng.normal(0, 3, 1 if dim == 2 else 3),
        "rotation": 0.3 if dim == 2 else rng.normal(0, 1, 4),
    }
    place = [0.0] * (dim - 1) + [0.25]
    b = a.sphere(0.8, 0.1, place, **state) if round else a.box(0.8, [0.1, 0.12, 0.15][:dim], place, **state)
    if dim == 3:
        a.bodies[b].inertia[3:] = [1e-3, -5e-4, 2e-4]
    solver = build(a, steps, envs)
    solver.store.view("centre")[...] = 0.01
    if envs > 1:
        solver.store.view("velocity")[0, 1:] *= 1.1
    return solver


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("round", [False, True])
def test_gradients(f64, dim, round):
    """Every parameter and the initial state, with contact in a good part of the steps."""
    solver = tumble(dim, 2, round=round)
    rollout = Rollout(solver, 40)
    rollout.value()
    assert (solver.store.view("taped_count")[:40, :, 1] > 0).sum() > 10
    small = {"rotation": 1e-6, "stiction": 1e-3, "force": 1e-2}
    rollout.check((*STATE, *PARAMETERS, "force", "torque"), 1e-7, small)


def test_awkward_states_are_finite(f64):
    """At rest, exactly touching, sliding speed exactly zero: finite values and gradients."""
    for height in (0.1, 0.1 - G / 2e5, 0.1 + 1e-9):
        a = Assembly(2)
        a.gravity[-1] = -G
        a.wall([0.0, 1.0], 0.0)
        a.box(1.0, [0.1, 0.1], [0.0, height])
        solver = build(a, 50)
        rollout = Rollout(solver, 50)
        gradient = rollout.gradient()
        assert all(np.all(np.isfinite(g)) for g in gradient.values())
        assert np.abs(solver.store.view("velocity")[50]).max() < 1e-2


def test_forward_is_the_same_in_pieces(f64):
    solver = tumble(3)
    run(solver, 40)
    whole = {n: v.copy() for n, v in solver.read_slot(40).items()}
    solver.begin(0)
    solver.forward(0, 17, False)
    state = solver.read_slot(17)
    solver.begin(17)
    solver.write_first_slot(state)
    solver.forward(0, 23, True)
    again = solver.read_slot(23)
    assert all(np.array_equal(whole[n], again[n]) for n in whole)


def test_an_infinite_force_is_reported(f64):
    solver = tumble(2)
    solver.store.view("force")[...] = np.inf
    with pytest.raises(RigidTrouble, match=r"environment 0: .* use a smaller step"):
        run(solver, 40)


@pytest.mark.parametrize(
    ("mass", "inertia", "message"),
    [(0.0, [1.0], "body 0: mass must be above 0 kg"), (1.0, [-1.0], "body 0: inertia must be positive definite")],
)
def test_bodies_without_mass_or_inertia_are_refused(mass, inertia, message):
    with pytest.raises(ValueError, match=message):
        Assembly(2).body(mass, inertia, [0.0, 0.0])


def test_too_many_contacts_are_reported(f64):
    a = Assembly(2)
    a.gravity[-1] = -G
    a.wall([0.0, 1.0], 0.0)
    a.box(1.0, [0.1, 0.1], [0.0, 0.1])
    solver = RigidSolver(runtime.current(), a.plan(capacity=1), 5, 1, 6)
    a.fill(solver)
    with pytest.raises(RigidTrouble, match=r"step 0, environment 0: more than 1 contacts"):
        run(solver, 5)
