"""Adjoints of coupled substeps against central differences, in f64."""

from dataclasses import replace

import numpy as np
import pytest
from assembly import Assembly
from coupling_case import Case
from test_coupling import fall, squeezed

from taichi_sim.solvers.coupling.colliders import Colliders
from taichi_sim.timeline.schedule import Schedule
from taichi_sim.timeline.timeline import Timeline

#: Where particles touch a surface by default, m, in cases whose particles are .025 m apart.
TOUCH = 0.5 * 0.025


def touching(offset=TOUCH, **more):
    """A tilted box in a block. Differences of 1e-5 m stay on one side of the corner of the law, a gap of 0."""
    skin = {"friction": 0.4, "stiction": 0.02, "offset": offset}
    case = fall(**{"steps": 3, "skin": skin} | more)
    case.start["rigid/position"][..., 1] = 0.59075 + offset
    rng = np.random.default_rng(2)
    case.start["mpm/v"][...] = 0.1 * rng.normal(size=case.start["mpm/v"].shape)
    case.start["mpm/C"][...] = rng.normal(size=case.start["mpm/C"].shape)
    case.seed(np.random.default_rng(1))
    return case


def test_substeps_at_any_mass(f64):
    """Three substeps: bodies of .01 to 10 times the contact mass, sliding and sticking, hard and compliant."""
    case = touching()
    rigid, skin = case.rigid.store.view, case.coupling.store.view
    case.run()
    contact_mass = case.coupling.store.view("span")[0, 0, 1] * case.particle_mass
    for i, ratio in enumerate((0.01, 0.1, 1.0, 10.0)):
        rigid("mass")[...] = ratio * contact_mass
        rigid("inertia")[...] = rigid("mass")[:, None] * 0.2**2 / 6
        skin("skin_compliance")[...] = (0.0, 0.5)[i % 2] * 5e-4**2 / case.particle_mass
        skin("skin_stiction")[...] = (0.02, 1.0)[i // 2]
        case.start["rigid/velocity"][0] = [(0.0, 0.5)[i % 2], -0.6]
        case.check(tolerance=1e-6, steps=(1e-2, 1e-3, 1e-4, 1e-5))


def test_bodies_that_touch_each_other(f64):
    """A box on the block, a disc on the box, a wall collider; 200 substeps, all parameters."""
    a, c = Assembly(2), Colliders(2)
    a.values |= {"stiffness": 200.0, "stiction": 0.05, "damping": 0.5}
    a.gravity[:] = [0.2, -1.0]
    a.box(0.03, [0.1, 0.06], [0.5, 0.563], rotation=[0.05], velocity=[0.2, -0.3], spin=[0.3])
    a.sphere(0.02, 0.05, [0.52, 0.68], velocity=[0.0, -0.4])
    c.box(0, [0.1, 0.06], edge=0.02)
    c.sphere(1, 0.05)
    c.plane(-1, [0.2, 1.0], [0.5, 0.2575])
    case = Case(a, c, [((0.3, 0.29375), (0.7, 0.49375))], steps=200, dt=5e-4, spacing=0.05, envs=2,
                skin={"friction": 0.4, "stiction": 0.1, "offset": TOUCH})  # fmt: skip
    case.start["rigid/velocity"][2:] *= 1.1
    case.seed(np.random.default_rng(1))
    case.run()
    assert (case.rigid.store.view("taped_count")[:200, :, 0] > 0).any()
    errors = case.check(tolerance=2e-5, steps=(1e-3, 1e-4, 1e-5, 1e-6, 1e-7))  # some cross the edge of a contact
    assert np.median(list(errors.values())) < 1e-7


def test_particles_between_two_bodies(f64):
    case = squeezed(steps=20, skin={"offset": TOUCH})
    case.start["rigid/position"][:] = [[0.5 - 0.066, 0.49], [0.5 + 0.067, 0.52]]
    case.start["rigid/spin"][:, 0] = [0.5, -0.3]
    case.seed(np.random.default_rng(3))
    case.run()
    total = case.coupling.store.view("span")[19, 0].sum()
    assert (case.coupling.pool.view("record")[:total, 2] == 2).any()
    case.check(tolerance=1e-6, steps=(1e-3, 1e-4, 1e-5, 1e-6))


def test_flush_bodies_are_at_a_corner_of_the_law(f64):
    """A gap is closed within a step, but penetration taken back slowly: at a gap of 0 the slope by it is ``1/h`` on one
    side and ``skin_rate`` on the other. Each is the gradient beside it; a central difference is between the two."""
    a, c = Assembly(2), Colliders(2)
    a.box(0.04, [0.1, 0.1], [0.5, 0.6], velocity=[0.1, -0.3])
    c.box(0, [0.1, 0.1], edge=0.02)
    case = Case(a, c, [((0.3, 0.3), (0.7, 0.5))], steps=1, dt=5e-4, skin={"friction": 0.4, "offset": TOUCH})
    case.seed(np.random.default_rng(1))
    height = case.start["rigid/position"]

    def lifted(by, look):
        height[0, 1] = 0.6 + by
        return look()

    def slope():
        return case.gradient()["rigid/position"][0, 1]

    deep, apart = lifted(-1e-9, slope), lifted(1e-9, slope)
    assert abs(apart) > 10 * abs(deep)
    for side, gradient in ((-1.0, deep), (1.0, apart)):
        steps = [side * 1e-6, side * 5e-7, 0.0]
        far, near, at = (lifted(by, case.loss) for by in steps)
        one_sided = 2 * (near - at) / steps[1] - (far - at) / steps[0]
        assert one_sided == pytest.approx(gradient, rel=1e-5)


def test_grids_not_stored(f64):
    """Where grids of a segment were not kept they are scattered again, with velocities after contact."""
    found = []
    for room in (100_000, 0):
        case = touching(steps=40, segment_room=room)
        found.append(case.gradient(cuts=(13,)))
    for name, values in found[0].items():
        assert np.abs(found[1][name] - values).max() <= 1e-11 * max(1.0, np.abs(values).max()), name


@pytest.mark.parametrize("segment", [7, 20])
def test_gradients_do_not_depend_on_checkpoints(f64, segment):
    """ACCEPTANCE F4, with what enters in the middle of the rollout."""
    found = []
    for length in (60, segment):
        case = touching(steps=60, slots=60)
        plan = Schedule(60, length, 3, 0, 1, 0)
        timeline = Timeline(case.stepper, replace(plan, in_memory=max(1, min(3, plan.segments - 1))), [25, 60])
        seen = []
        timeline.run(case.start, lambda t, k, s=case.stepper, out=seen: out.append(s.read_slot(k)), record=True)
        case.stepper.clear_adjoints()
        n = case.plan.particles

        def seed(t, k, case=case, n=n):
            case.mpm.add_adjoint("v", np.ones((1, n, 2)) * t)
            case.mpm.add_adjoint("x", np.ones((1, n, 2)))
            case.rigid.store.view("d_position")[...] += 1.0
            case.rigid.store.view("d_velocity")[...] += 0.3 * t

        timeline.backward(seed)
        found.append((seen, case.collect()))
        timeline.close()
    (states, gradient), (again, other) = found
    for mine, theirs in zip(states, again, strict=True):
        assert all(np.array_equal(mine[n], theirs[n]) for n in mine)
    for name, values in gradient.items():
        assert np.abs(other[name] - values).max() <= 1e-12 * max(1.0, np.abs(values).max()), name


def space(steps):
    """All shapes in space, touching matter that lies on a tilted plane; a sphere that hits the box."""
    a, c = Assembly(3), Colliders(3)
    a.gravity[:] = [0.3, 0.1, -2.0]
    a.values |= {"stiffness": 50.0, "stiction": 0.05, "damping": 0.5}
    turn = np.array([1.0, 0.1, -0.05, 0.08])
    moments = [1e-5, 2e-5, 2e-5, 1e-6, 0, 0]
    a.box(0.01, [0.06, 0.05, 0.04], [0.3, 0.3, 0.295], rotation=turn, velocity=[0.3, -0.1, -1.0], spin=[0.5, 1.0, -0.4])
    a.sphere(0.02, 0.05, [0.31, 0.29, 0.389], velocity=[0, 0.0, -1.5], spin=[0, 1.0, 0])
    a.body(0.01, moments, [0.42, 0.42, 0.28], velocity=[-0.2, 0, -1.0], spin=[1.0, 0, 0])
    a.body(0.01, moments, [0.18, 0.42, 0.28], velocity=[0.2, 0, -1.0], spin=[1.0, 0, 0], rotation=turn)
    c.box(0, [0.06, 0.05, 0.04], edge=0.01)
    c.sphere(1, 0.05)
    c.capsule(2, 0.03, 0.05, place=[0.005, 0, 0.0])
    c.cylinder(3, 0.04, 0.05, axes=np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1.0]]), edge=0.01)
    c.plane(-1, [0.1, 0, 1.0], [0.3, 0.3, 0.17])
    return Case(a, c, [((0.15, 0.15, 0.15), (0.45, 0.45, 0.25))], steps=steps, dt=1e-3, spacing=0.05, cells=12,
                skin={"friction": 0.4, "stiction": 0.05})  # fmt: skip


@pytest.mark.slow
def test_in_space(f64):
    case = space(20)
    case.seed(np.random.default_rng(0))
    case.run()
    total = case.coupling.store.view("span")[19, 0].sum()
    record = case.coupling.pool.view("record")[:total]
    kinds = [case.coupling.plan.colliders[i][0] for i in np.unique(record[:, 1])]
    assert set(kinds) >= {1, 2, 3, 4} and (record[:, 2] == 2).any()
    assert (case.rigid.store.view("taped_count")[:20, 0, 0] > 0).any()
    case.check(tolerance=1e-5)
