"""Any shape against any: gradients of what contact does to all poses and sizes, and momentum."""

import numpy as np
import pytest
from assembly import WORLD, Assembly
from rigid_case import PARAMETERS, STATE, Rollout, build, run
from shape_case import PLANE, SPACE, add, fixed

from taichi_sim.compile.rigid.mesh_collider import solid_mesh
from taichi_sim.scene.mesh import solid
from taichi_sim.solvers.rigid.closest import (
    LINE_LINE,
    PARTS,
    POINT_GRID,
    POINT_LINE,
    POINT_PLANE,
    POINT_POINT,
    POINT_RIM,
    RIM_PLANE,
)  # fmt: skip
from taichi_sim.solvers.rigid.colliders import box, capsule, polygon

STEPS = 12
SMALL = {"rotation": 1e-6, "stiction": 1e-3, "gravity": 1e-2}


def collide(dim, pair, seed=0, held=False):
    """Two bodies that fly into each other off centre, turning, in any attitude; h 1/148, soft."""
    rng = np.random.default_rng(seed)
    a = Assembly(dim)
    a.values |= {"friction": 0.4, "stiffness": 2e3, "damping": 2.0, "stiction": 0.05, "dt": 1 / 148}
    for b, kind in enumerate(pair):
        sign = 2 * b - 1
        place = np.array([sign * 0.12, *(sign * rng.uniform(-0.04, 0.04, dim - 1))])
        state = {
            "velocity": np.array([-sign * 1.5, *rng.normal(0, 0.1, dim - 1)]),
            "spin": rng.normal(0, 1.5, 1 if dim == 2 else 3),
            "rotation": rng.normal(0, 1, 1 if dim == 2 else 4),
        }
        if held and b == 0:
            fixed(a, kind, place)
        else:
            add(a, kind, 0.5 + b, place, **state)
    return build(a, STEPS, also=SPACE if dim == 3 else PLANE)


def kinds(solver):
    """Kinds of contacts that pushed."""
    view, found = solver.store.view, set()
    for k in range(STEPS):
        if np.abs(view("velocity")[k + 1] - view("velocity")[k]).max() > 0:
            found |= set((view("taped")[k, : view("taped_count")[k, 0, 0], 0] % PARTS).tolist())
    return found


PAIRS = [
    "cs", "cc", "cb", "bb", "ys", "yc", "yb", "yy", "ls", "mc", "lb", "my", "lm", "sl",
]  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS)
def test_gradients(f64, pair):
    solver = collide(3, pair, seed=3)
    rollout = Rollout(solver, STEPS)
    rollout.value()
    assert solver.store.view("touching").max() == 1.0
    print(pair, kinds(solver))
    names = (n for n in PARAMETERS if not n.startswith("grid") or set(pair) & set("lm"))
    rollout.check((*STATE, *names), 1e-6, SMALL, 1e-3)


@pytest.mark.parametrize("pair", ["cc", "cp", "pp", "pb", "cs", "ps", "cb"])
def test_gradients_in_the_plane(f64, pair):
    solver = collide(2, pair, seed=3)
    rollout = Rollout(solver, STEPS)
    rollout.value()
    assert solver.store.view("touching").max() == 1.0
    rollout.check((*STATE, *(n for n in PARAMETERS if not n.startswith("grid"))), 1e-6, SMALL, 1e-3)


@pytest.mark.parametrize("pair", ["by", "sb", "cl"])
def test_gradients_beside_what_is_held(f64, pair):
    """What is held gives gradients through its pose, takes none through its velocity, and does not move."""
    solver = collide(3, pair, seed=3, held=True)
    rollout = Rollout(solver, STEPS)
    rollout.value()
    for name in STATE:
        values = solver.store.view(name)
        assert np.array_equal(values[STEPS][0], values[0][0])
    rollout.check((*STATE, *(n for n in PARAMETERS if not n.startswith("grid"))), 1e-6, SMALL, 1e-3)
    assert np.abs(rollout.gradient()["position"][0]).max() > 0.0


def test_every_kind_of_contact_is_among_them(f64):
    found = set()
    for pair in PAIRS:
        solver = collide(3, pair, seed=3)
        run(solver, STEPS)
        found |= kinds(solver)
    assert found >= {LINE_LINE, POINT_GRID, POINT_LINE, POINT_PLANE, POINT_POINT, POINT_RIM, RIM_PLANE}


def matrices(q):
    w, x, y, z = (q / np.linalg.norm(q, axis=1)[:, None]).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)


@pytest.mark.parametrize("pair", ["cc", "cb", "bb", "yb", "lm", "yy"])
def test_momentum(f64, pair):
    """Momentum is exact; energy does not grow."""
    for seed in range(4):
        solver = collide(3, pair, seed)
        run(solver, STEPS)
        view = solver.store.view
        m, I = view("mass"), view("inertia")
        full = np.array([[[i[0], i[3], i[4]], [i[3], i[1], i[5]], [i[4], i[5], i[2]]] for i in I])
        before, after = (view("velocity")[k] for k in (0, STEPS))
        assert np.abs(m @ (after - before)).max() < 1e-12
        energies = []
        for k in (0, STEPS):
            R, (v, w) = matrices(view("rotation")[k]), solver.synchronous_velocity(k)
            turning = np.einsum("bi,bij,bj->", np.einsum("bji,bj->bi", R, w), full, np.einsum("bji,bj->bi", R, w))
            energies.append(0.5 * (m @ (v * v).sum(axis=1) + turning))
        assert energies[1] < energies[0] * (1 + 1e-6)


def test_shapes_of_the_world_are_those_of_a_held_body(f64):
    ends = []
    for world in (True, False):
        a = Assembly(3)
        a.gravity[-1] = -9.81
        where = WORLD if world else fixed(a, "s", [0.0, 0.0, -5.0])
        at = np.zeros(3) if world else np.array([0.0, 0.0, 5.0])
        a.add(where, box([0.3, 0.3, 0.1]), at)
        a.add(where, capsule(0.05, 0.2, 3), at + np.array([0.0, 0.0, 0.15]))
        add(a, "b", 1.0, [0.05, 0.02, 0.35])
        solver = build(a, 300, also=SPACE)
        run(solver, 300)
        ends.append(np.array(solver.store.view("position")[300, -1]))
    assert np.abs(ends[0] - ends[1]).max() < 1e-9


def test_bodies_that_ignore_each_other_pass(f64):
    a = Assembly(3)
    for x in (-0.3, 0.3):
        a.sphere(1.0, 0.1, [x, 0.0, 0.0], velocity=[-10 * x, 0.0, 0.0])
    a.ignore(0, 1)
    solver = build(a, 200, also=SPACE)
    run(solver, 200)
    assert solver.store.view("position")[200, 0, 0] == pytest.approx(0.3)


def test_no_pair_is_missed_among_many(f64):
    """200 spheres of all sizes at rest: what the sweep finds is what looking at all pairs finds."""
    rng = np.random.default_rng(7)
    a = Assembly(3)
    a.values["dt"] = 1e-3
    grid = np.stack(np.meshgrid(range(6), range(6), range(6), indexing="ij"), -1).reshape(-1, 3)[:200]
    x = 0.1 * grid + rng.uniform(-0.0008, 0.0008, (200, 3))
    radius = np.where(rng.uniform(size=200) < 0.7, 0.0492, 0.03)
    for place, r in zip(x, radius, strict=True):
        a.sphere(1.0, r, place)
    solver = build(a, 2, also=SPACE)
    run(solver, 2)
    view = solver.store.view
    taped = view("taped")[1, : view("taped_count")[1, 0, 0]]
    found = {(max(i, j), min(i, j)) for _code, i, j, _surface in taped.tolist()}
    apart = np.linalg.norm(x[:, None] - x[None], axis=2) - radius[:, None] - radius[None]
    near = {(i, j) for i, j in np.argwhere(apart <= 1e-3).tolist() if i > j}
    assert len(near) > 30 and found == near and len(taped) == len(near)


def test_a_mesh_too_thin_for_its_lattice_is_refused():
    import trimesh

    plate = trimesh.creation.box((1.0, 1.0, 0.01))
    with pytest.raises(ValueError, match=r"mesh: 0.01 m thin, samples 0.0208 m apart"):
        solid_mesh(solid(np.array(plate.vertices), np.array(plate.faces)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: polygon([[0, 0], [1, 0], [0.2, 0.2], [0, 1]]), "must be convex"),
        (lambda: polygon([[0, 0], [0, 1], [1, 0]]), "counterclockwise"),
        (lambda: capsule(0.0, 1.0, 3), "radius and half length of a capsule must be above 0 m, got 0.0"),
        (lambda: box([0.1, -1.0]), "half width of a box must be above 0 m"),
    ],
)
def test_shapes_that_are_none_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_balls_of_any_size_lie_on_a_mesh(f64):
    """On top of a ball of triangles, between whose vertices they sink by no more than it is flat there: a small ball,
    by the lattice of distances, and one that is larger than the lattice reaches, by places on the mesh."""
    for radius in (0.03, 0.3):
        a = Assembly(3)
        a.values |= {"dt": 1e-3, "damping": 50.0}
        a.gravity[-1] = -9.81
        fixed(a, "m", [0.0, 0.0, 0.0])
        a.sphere(1.0, radius, [1e-4, 0.0, 0.1 + radius + 1e-3])
        solver = build(a, 60, also=0)
        run(solver, 60)
        gap = np.linalg.norm(solver.store.view("position")[60, 1]) - radius - 0.1
        assert -6e-3 < gap < 1e-3
        assert solver.store.view("touching")[60, 1] == 1.0
        Rollout(solver, 60).check(("position", "velocity", "radius", "point", "friction", "dt"), 1e-5, SMALL, 1e-3)
