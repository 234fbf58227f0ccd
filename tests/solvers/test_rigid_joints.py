"""Joints: trees of every kind against central differences, pendulums of the literature, drives, limits, loops."""

import numpy as np
import pytest
from assembly import Assembly
from rigid_case import (
    INPUTS,
    JOINT_INPUTS,
    JOINT_PARAMETERS,
    JOINT_STATE,
    PARAMETERS,
    STATE,
    Rollout,
    build,
    run,
)

from taichi_sim.solvers.rigid import colliders
from taichi_sim.solvers.rigid.arrays import footprint
from taichi_sim.solvers.rigid.mechanism import Mechanism
from taichi_sim.solvers.rigid.twist import BEFORE, EARLY

LAWS = (
    "armature", "joint_damping", "joint_stiffness", "joint_rest", "joint_lower", "joint_upper", "limit_stiffness",
    "limit_damping", "joint_friction", "joint_stiction", "drive_stiffness", "drive_damping", "drive_limit",
)  # fmt: skip
SMALL = {"rotation": 1e-6, "stiction": 1e-3, "joint_stiction": 1e-3, "coordinate": 1e-5}


def moments(rng, dim):
    """A full positive definite inertia."""
    if dim == 2:
        return [rng.uniform(0.05, 0.1)]
    A = rng.normal(0, 0.1, (3, 3))
    I = A @ A.T + 0.05 * np.eye(3)
    return [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]


def tree(dim, envs=1, steps=20, contact=False, loop=(), h=5e-3):
    """A floating base with two branches, and a branch on the world; every kind of joint; masses off centre.

    Bodies are numbered against the tree, so that order matters. Laws of every kind act along every joint.
    """
    rng = np.random.default_rng(7)
    a = Assembly(dim)
    a.values |= {"friction": 0.3, "stiffness": 2e3, "damping": 2.0, "stiction": 0.05, "dt": h}
    a.gravity[:] = rng.normal(0, 5, dim)

    def body(place):
        attitude = rng.normal(0, 1, 1 if dim == 2 else 4)
        state = {"rotation": attitude, "velocity": rng.normal(0, 0.5, dim)}
        state["spin"] = rng.normal(0, 1, 1 if dim == 2 else 3)
        b = a.body(rng.uniform(0.5, 1.5), moments(rng, dim), np.asarray(place, float)[:dim], **state)
        if contact:
            a.add(b, colliders.ball(0.1, dim), rng.normal(0, 0.03, dim))
        return b

    places = [[0.9, 0.1, 0.3], [0.5, -0.2, 0.1], [0, 0, 0], [-0.4, 0.3, 0], [-0.8, 0.2, 0.2], [1.5, 0, 0], [2, 0.3, 0]]
    leaf, elbow, base, ball, slide, hung, fixed = (body(p) for p in places)
    law = dict(
        armature=0.02, damping=0.3, stiffness=2.0, rest=0.1, lower=-0.15, upper=0.2, limit_stiffness=200.0,
        limit_damping=0.5, friction=0.6, stiction=0.3, kp=5.0, kd=0.4, limit=30.0,
    )  # fmt: skip
    simple = {k: law[k] for k in ("armature", "damping", "friction", "stiction")}

    def axis():
        return rng.normal(0, 1, dim)

    a.joint("hinge", elbow, leaf, [0.7, 0, 0.2][:dim], axis(), 0.3, 0.5, **law)
    a.joint("ball", base, ball, [-0.2, 0.1, 0][:dim], None, [0.3, -0.2, 0.1] if dim == 3 else 0.1, 0.4, **simple)
    a.joint("hinge", base, elbow, [0.2, -0.1, 0][:dim], axis(), -0.2, -1.0, **law | {"limit": 0.3})
    a.joint("prismatic", ball, slide, [-0.6, 0.2, 0][:dim], axis(), 0.1, 0.5, **law)
    a.joint("prismatic", -1, hung, [1.4, 0, 0][:dim], axis(), 0.05, 0.1, **law)
    a.joint("fixed", hung, fixed, [1.8, 0.1, 0.1][:dim])
    if "weld" in loop:
        a.closure("fixed", slide, hung, [0.3, 0.1, 0.2][:dim], None, 300.0, 20.0)
    if "hinge" in loop:
        a.closure("hinge", leaf, -1, [0.9, 0.1, 0.2][:dim], axis(), 500.0, 30.0)
    if "ball" in loop:
        a.closure("ball", base, fixed, [0.5, 0.1, 0.2][:dim], None, 400.0)
    if contact:
        a.wall([0.2, *[0.1] * (dim - 2), 1.0], -0.35)
        a.sphere(0.5, 0.1, [0.95, 0.15, 0.35][:dim] if dim == 3 else [0.85, 0.2])
    solver = build(a, steps, envs, frames=2)
    view = solver.store.view
    view("centre")[...] = rng.normal(0, 0.05, view("centre").shape)
    for name in ("joint_lower", "joint_upper", "drive_limit"):  # perturbed in proportion to the largest
        view(name)[...] = np.clip(view(name), -1.0, 1.0)
    for name in (*INPUTS, *JOINT_INPUTS):
        view(name)[...] = rng.normal(0, 0.5, view(name).shape)
    for name in ("coordinate", "rate", "velocity"):
        if envs > 1:
            view(name)[0] *= 1.0 + rng.normal(0, 0.2, view(name)[0].shape)
    return solver


EVERYTHING = (
    *STATE, *JOINT_STATE, *INPUTS, *JOINT_INPUTS, *JOINT_PARAMETERS, *(n for n in PARAMETERS if n != "stiction"),
)  # fmt: skip


@pytest.mark.parametrize("dim", [2, 3])
def test_gradients(f64, dim):
    """Every state, parameter and input of a tree with limits, drives, dry friction, loops and contact, in two
    environments, against central differences."""
    solver = tree(dim, 2, steps=14, contact=True, loop=("weld", "hinge", "ball"))
    rollout = Rollout(solver, 14)
    rollout.value()
    assert solver.store.view("taped_count")[:14, :, 0].sum() > 8  # contacts are there
    rollout.check(EVERYTHING, 1e-7, SMALL)


def test_gradients_of_synchronous_velocities(f64):
    """A tree nothing acts on but gravity: velocities of links are those of the time of their poses."""
    solver = tree(2, 2, steps=6)
    for name in ("joint_damping", "joint_stiffness", "joint_friction", "drive_stiffness", "drive_damping"):
        solver.store.view(name)[...] = 0.0
    solver.store.view("joint_lower")[...], solver.store.view("joint_upper")[...] = -9.0, 9.0
    names = (
        *STATE,
        *JOINT_STATE,
        "mass",
        "inertia",
        "centre",
        "gravity",
        "dt",
        "joint_force",
        "parent_anchor",
        "mount",
    )
    rollout = Rollout(solver, 6, synchronous=True)
    rollout.check(names, 1e-7, SMALL)
    late, early = solver.synchronous_velocity(6)[0], solver.store.view("velocity")[6]
    assert np.abs(late - early).max() > 1e-3


@pytest.mark.parametrize("dim", [2, 3])
def test_mechanism_agrees(f64, dim):
    """Poses, velocities, mass matrix and inverse dynamics on the host are those of the kernels."""
    solver = tree(dim, 2, steps=1)
    view, envs = solver.store.view, solver.plan.envs
    for name in (*LAWS[1:], "joint_force", "force", "torque"):
        if name != "joint_stiction":
            view(name)[...] = 0.0
    run(solver, 1)
    solver._links("place", 0)
    solver._links("ready", 0, 0)
    n, nb = solver.plan.freedoms, solver.plan.bodies
    for env in range(envs):
        mechanism = Mechanism(solver, env)
        posture = mechanism.posture(solver, 0)
        bodies = slice(env * nb, (env + 1) * nb)
        assert posture.position == pytest.approx(view("position")[0, bodies], abs=1e-13)
        assert posture.rotation == pytest.approx(view("rotation")[0, bodies], abs=1e-13)
        v = view("reduced")[env * n : (env + 1) * n, BEFORE]
        for b in range(nb):
            both = np.append(view("velocity")[0, env * nb + b], view("spin")[0, env * nb + b])
            assert mechanism.jacobian(posture, b) @ v == pytest.approx(both, abs=1e-12)
        M = view("mass_matrix")[env * n * n : (env + 1) * n * n].reshape(n, n)
        assert mechanism.mass_matrix(posture) == pytest.approx(M, abs=1e-12)
        a = view("reduced")[env * n : (env + 1) * n, EARLY]
        assert mechanism.inverse_dynamics(posture, v, a) == pytest.approx(np.zeros(n), abs=1e-11)
        assert mechanism.inverse_dynamics(posture, v, 0 * a) == pytest.approx(-M @ a, abs=1e-11)


def pendulum(count, steps, positions, h=1e-3):
    """Point masses of 1 kg on rods of 1 m, one under the other."""
    a = Assembly(2)
    a.gravity[-1] = -9.81
    a.values["dt"] = h
    for i in range(count):
        b = a.body(1.0, [1e-12], [0.0, -1.0 - i])
        a.joint("hinge", b - 1, b, [0.0, -float(i)], position=positions[i])
    return build(a, steps)


def test_double_pendulum(f64):
    """ACCEPTANCE B8 and D5: 1e-3 and 1e-2 at dt 1e-3; here 4e-6 and 1e-5 at t = 5, the absolute angles."""
    solver = pendulum(2, 5000, [np.pi / 6, 0.0])
    run(solver, 5000)
    q = solver.store.view("coordinate")
    truth = {
        1000: [(-0.254551, -0.546283), (0.069531, -1.112144)],
        2000: [(0.035682, -0.041835), (0.122953, -0.354858)],
        5000: [(0.269393, 0.524999), (-0.205889, 0.958243)],
    }
    for k, (angles, slopes) in truth.items():
        assert np.cumsum(q[k]) == pytest.approx(angles, abs=4e-6)
        for seed, slope in zip(([1.0, 0.0], [1.0, 1.0]), slopes, strict=True):
            solver.clear_adjoints()
            solver.store.view("d_coordinate")[...] = seed
            solver.backward(0, k)
            d = solver.store.view("d_coordinate")
            assert d[0] - d[1] == pytest.approx(slope, abs=1e-5)  # the first angle alone: the second joint turns back


@pytest.mark.parametrize(("degrees", "ratio"), [(30, 1.017409), (90, 1.180341), (170, 2.439363)])
def test_pendulum_periods(f64, degrees, ratio):
    """ACCEPTANCE B9: 1e-3; here 1e-5."""
    solver = pendulum(1, 1600, [np.radians(degrees)])
    run(solver, 1600)
    q = solver.store.view("coordinate")[:, 0]
    k = np.argmax(q < 0)
    quarter = (k - 1 + q[k - 1] / (q[k - 1] - q[k])) * 1e-3
    assert 4 * quarter / (2 * np.pi * np.sqrt(1 / 9.81)) == pytest.approx(ratio, rel=1e-5)


def test_driven_pendulum(f64):
    """ACCEPTANCE D7: signs and 1 % of what semi-implicit Euler gives; this step is second order, so near the truth."""
    a = Assembly(2)
    a.gravity[-1] = -9.81
    b = a.body(188.35 / 9.81, [15.8 - 188.35 / 9.81 * 0.25], [0.0, -0.5])
    a.gravity[-1] = -2 * 9.81  # mgl = 188.35 at half a metre
    a.joint("hinge", -1, b, [0.0, 0.0])
    solver = build(a, 4000)
    solver.store.view("joint_force")[...] = 65.0
    run(solver, 4000)
    found = []
    for k in (500, 1000, 2000, 4000):
        solver.clear_adjoints()
        solver.store.view("d_coordinate")[0] = 1.0
        solver.backward(0, k)
        found.append(solver.store.reduced_adjoint("inertia")[0, 0])
    print("dq/dI", found)
    assert found == pytest.approx([-0.01879, 0.00607, -0.02616, -0.09815], rel=5e-4, abs=1e-5)
    assert found == pytest.approx([-0.01880, 0.00613, -0.02629, -0.09837], rel=0.012)


def test_a_free_chain_keeps_energy_and_momentum(f64):
    """Floating, with a ball, a hinge and a slide, no gravity: 2 s at h 1e-3."""
    a = Assembly(3)
    rng = np.random.default_rng(3)
    for i in range(4):
        a.body(1.0 + 0.3 * i, moments(rng, 3), [0.6 * i, 0, 0], velocity=[0.1, 0.2, -0.1], spin=[0.3, 1.0, -0.5])
    a.joint("ball", 0, 1, [0.3, 0, 0], velocity=[0.5, -1.0, 0.7])
    a.joint("hinge", 1, 2, [0.9, 0, 0], [1, 2, 0], velocity=2.0)
    a.joint("prismatic", 2, 3, [1.5, 0, 0], [0, 1, 1], velocity=0.3)
    solver = build(a, 2000)
    run(solver, 2000)
    kept = []
    for k in (0, 700, 2000):
        v, w = solver.synchronous_velocity(k)
        x, m = solver.store.view("position")[k], solver.store.view("mass")
        I = solver.store.view("inertia_world")
        spin = np.einsum("bij,bj->bi", I, w)
        kept.append([0.5 * np.sum(m * np.sum(v * v, 1)) + 0.5 * np.sum(w * spin), *(m @ v),
                     *(m @ np.cross(x, v) + spin.sum(0))])  # fmt: skip
    assert np.abs(np.array(kept) - kept[0]).max() < 2e-5 * np.abs(kept[0]).max()


def arm(steps=2000, **law):
    """A bar of 1 kg and 1 m, level, hinged to the world at its end; weight 9.81 N at half a metre."""
    a = Assembly(2)
    a.gravity[-1] = -9.81
    b = a.body(1.0, [1 / 12], [0.5, 0.0])
    a.joint("hinge", -1, b, [0.0, 0.0], **law)
    return build(a, steps)


def test_a_drive_holds_and_saturates(f64):
    """Holds where kp (target - q) is the weight's moment; beyond its limit it gives just that."""
    solver = arm(kp=200.0, kd=10.0, position=-0.5)
    assert solver.store.view("position")[0, 0] == pytest.approx([0.5 * np.cos(0.5), -0.5 * np.sin(0.5)])
    run(solver, 2000)
    q = solver.store.view("coordinate")[2000, 0]
    assert 200.0 * -q == pytest.approx(4.905 * np.cos(q), rel=1e-6)
    weak = arm(1, kp=200.0, limit=1.0)
    weak.store.view("target")[...] = 0.5
    run(weak, 1)
    assert weak.store.view("rate")[1, 0] == pytest.approx(0.5e-3 * (1.0 - 4.905) / (1 / 3), rel=1e-9)


def test_limits_springs_and_dry_friction_hold(f64):
    solver = arm(lower=-0.2)
    run(solver, 2000)
    q = solver.store.view("coordinate")[2000, 0]
    assert 1e4 * (-0.2 - q) == pytest.approx(4.905 * np.cos(q), rel=1e-3)
    solver = arm(friction=5.0)
    run(solver, 1000)
    assert np.abs(solver.store.view("rate")[500:]).max() < 1e-3
    solver = arm(friction=4.0)
    run(solver, 1000)
    assert solver.store.view("coordinate")[1000, 0] < -0.5
    solver = arm(stiffness=1e9, rest=0.0)  # h² k/I = 3000: stable however stiff
    run(solver, 500)
    assert np.abs(solver.store.view("coordinate")[:500]).max() < 1e-6


def test_a_spring_keeps_its_energy(f64):
    """h ω = .2: no loss in 30 periods."""
    a = Assembly(2)
    b = a.body(1.0, [1.0], [0.0, 0.0])
    a.values["dt"] = 1e-2
    a.joint("prismatic", -1, b, [0.0, 0.0], [1.0, 0.0], position=0.1, stiffness=400.0)
    solver = build(a, 1000)
    run(solver, 1000)
    x = np.abs(solver.store.view("coordinate")[:, 0])
    assert x[900:].max() == pytest.approx(0.1, rel=6e-3) and x[:100].max() == pytest.approx(0.1, rel=6e-3)


@pytest.mark.parametrize("kind", ["ball", "fixed"])
def test_a_loop_stays_closed(f64, kind):
    """A parallelogram of four bars, closed by a pin: opposite cranks stay parallel; a weld holds a cantilever."""
    a = Assembly(2)
    a.gravity[-1] = -9.81
    if kind == "ball":
        left, top, right = a.body(1.0, [0.1], [0, 0.5]), a.body(1.0, [0.1], [0.5, 1]), a.body(1.0, [0.1], [1, 0.5])
        a.joint("hinge", -1, left, [0, 0], velocity=-1.0)
        a.joint("hinge", left, top, [0, 1], velocity=1.0)
        a.joint("hinge", -1, right, [1, 0], velocity=-1.0)
        a.closure("ball", top, right, [1, 1], stiffness=1e7)
        solver = build(a, 1000)
        run(solver, 1000)
        turn = solver.store.view("rotation")[1000, :, 0]
        assert abs(turn[0]) > 1.0 and turn[2] == pytest.approx(turn[0], abs=1e-4) and abs(turn[1]) < 1e-4
    else:
        bar = a.body(1.0, [1 / 12], [0.5, 0.0])
        a.closure("fixed", bar, -1, [0.0, 0.0], stiffness=1e6, turning=1e5)
        solver = build(a, 1000)
        run(solver, 1000)
        assert solver.store.view("rotation")[1000, 0, 0] == pytest.approx(-4.905 / 1e5, rel=1e-3)


def test_forward_is_the_same_in_pieces(f64):
    """Slots hold all there is: also poses of links, which follow from coordinates."""
    solver = tree(2, 2, steps=14, contact=True, loop=("weld", "hinge", "ball"))
    run(solver, 14)
    whole = solver.read_slot(14)
    solver.begin(0)
    solver.forward(0, 5, False)
    state = solver.read_slot(5)
    solver.begin(5)
    solver.write_first_slot(state)
    solver.forward(0, 9, True)
    again = solver.read_slot(9)
    assert all(np.array_equal(whole[n], again[n]) for n in whole)


def test_backward_is_the_same_in_pieces(f64):
    solver = tree(2, 2, steps=14, contact=True, loop=("weld", "hinge", "ball"))
    rollout = Rollout(solver, 14)
    whole = rollout.gradient()
    solver.clear_adjoints()
    for n, w in rollout.weights.items():
        solver.store.write(f"d_{n}", w)
    solver.backward(5, 14)
    solver.backward(0, 5)
    solver.backward(0, 0)
    for n in JOINT_STATE:
        assert solver.store.view(f"d_{n}") == pytest.approx(whole[n], rel=1e-12)
    for n in ("parent_anchor", "mass", "dt", "friction"):
        assert solver.store.reduced_adjoint(n) == pytest.approx(whole[n], rel=1e-12)


def test_what_cannot_be_built_is_refused():
    a = Assembly(2)
    for _ in range(3):
        a.body(1.0, [1.0], [0.0, 0.0])
    with pytest.raises(ValueError, match="elbow: a prismatic joint needs an axis"):
        a.joint("prismatic", 0, 1, [0, 0], name="elbow")
    with pytest.raises(ValueError, match="hinged"):
        a.joint("hinged", 0, 1, [0, 0])
    with pytest.raises(ValueError, match="elbow: damping must not be negative, got -1"):
        a.joint("hinge", 0, 1, [0, 0], damping=-1.0, name="elbow")
    with pytest.raises(ValueError, match="elbow: there is no body 7"):
        a.joint("hinge", 0, 7, [0, 0], name="elbow")
    a.joint("hinge", 0, 1, [0, 0], name="a")
    a.joint("hinge", 1, 2, [0, 0], name="b")
    a.joint("hinge", 2, 0, [0, 0], name="c")
    with pytest.raises(ValueError, match=r"body \d hangs on itself in a loop"):
        a.plan()
    a.joints.pop()
    a.joint("hinge", -1, 2, [0, 0], name="d")
    with pytest.raises(ValueError, match="d: body 2 already hangs on b; close the loop"):
        a.plan()


def test_memory_is_known_beforehand(f32):
    solver = tree(3, 3, contact=True, loop=("hinge",))
    assert solver.store.bytes == footprint(solver.plan, 2, 21)


def test_single_precision(f32):
    solver = pendulum(2, 1000, [np.pi / 6, 0.0])
    run(solver, 1000)
    assert np.cumsum(solver.store.view("coordinate")[1000]) == pytest.approx([-0.254551, -0.546283], abs=1e-4)
