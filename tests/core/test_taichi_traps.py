"""What Taichi 1.7.4 gets wrong, silently: each test holds a trap the product walks around, and the way around it.

A test that fails here after a change of Taichi means that a trap is gone, not that something broke.
"""

import subprocess
import sys

import numpy as np
import pytest

from taichi_sim.runtime import ti

A0 = ti.types.ndarray(ndim=0)
A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)


def scalar(value: float = 0.0) -> ti.ScalarField:
    field = ti.field(ti.f64, shape=(), needs_grad=True)
    field[None] = value
    return field


# ---- autodiff ----


@ti.kernel
def return_map(stiffness: A1, energy: A1):
    for i in stiffness:
        plastic, total = 0.0, 0.0
        for k in range(10):
            trial = stiffness[i] * (0.1 * k - plastic)
            plastic = plastic + ti.max(trial - 0.2, 0.0) / (stiffness[i] + 0.5)
            total = total + 0.5 * stiffness[i] * (0.1 * k - plastic) ** 2
        energy[0] += total


def test_state_carried_through_a_loop_has_a_wrong_gradient(f64):
    stiffness = ti.ndarray(ti.f64, 1, needs_grad=True)
    energy = ti.ndarray(ti.f64, 1, needs_grad=True)

    def value(x: float) -> float:
        stiffness.fill(x)
        energy.fill(0.0)
        return_map(stiffness, energy)
        return energy[0]

    h = 1e-6
    truth = (value(1.3 + h) - value(1.3 - h)) / (2 * h)
    value(1.3)
    stiffness.grad.fill(0.0)
    energy.grad.fill(1.0)
    return_map.grad(stiffness, energy)
    assert truth == pytest.approx(-0.12356528, rel=1e-6)
    assert abs(stiffness.grad[0] - truth) > 0.05 * abs(truth)


@ti.kernel
def weighted_nodes(x: A1, grid: A2, out: A1):
    for p in x:
        base = ti.cast(x[p] * 4 - 0.5, ti.i32)
        fx = x[p] * 4 - ti.cast(base, ti.f64)
        sum = ti.Vector.zero(ti.f64, 2)
        for i in range(3):
            for j in range(3):
                sum += (1 + i - fx[0]) * (2 + j - fx[1]) * grid[base[0] + i, base[1] + j]
        out[0] += sum.sum()


def test_a_load_indexed_by_a_runtime_loop_has_a_wrong_gradient(f64):
    x = ti.ndarray(ti.math.vec2, 1, needs_grad=True)
    grid = ti.ndarray(ti.math.vec2, (8, 8), needs_grad=True)
    out = ti.ndarray(ti.f64, 1, needs_grad=True)
    i, j = np.meshgrid(np.arange(8.0), np.arange(8.0), indexing="ij")
    grid.from_numpy(np.stack([1 + i**2 + j, 2 - i * j], axis=-1))

    def value(first: float) -> float:
        x.from_numpy(np.array([[first, 0.61]]))
        out.fill(0.0)
        weighted_nodes(x, grid, out)
        return out[0]

    truth = (value(0.47 + 1e-6) - value(0.47 - 1e-6)) / 2e-6
    value(0.47)
    for array in (x, grid):
        array.grad.fill(0.0)
    out.grad.fill(1.0)
    weighted_nodes.grad(x, grid, out)
    assert truth == pytest.approx(-294.24, abs=0.01)
    assert abs(x.grad.to_numpy()[0, 0] - truth) > 200


LONG_LOOP = """
import taichi as ti
ti.init(arch=ti.cpu, default_fp=ti.f64, offline_cache=False, log_level=ti.CRITICAL)
x, y = (ti.field(ti.f64, (), needs_grad=True) for _ in range(2))
@ti.kernel
def power(n: ti.i32):
    for _ in range(1):
        product = 1.0
        for k in range(n):
            product = product * x[None]
        y[None] += product
x[None] = 1.01
def gradient(n):
    y[None], x.grad[None], y.grad[None] = 0.0, 0.0, 1.0
    power(n)
    power.grad(n)
    return x.grad[None]
assert abs(gradient(20) - 20 * 1.01**19) < 1e-9
print("short", flush=True)
found, truth = gradient(20000), 20000 * 1.01**19999
print("long", abs(found / truth - 1) < 1e-6)
"""


def test_a_long_accumulating_loop_kills_the_process_or_lies(tmp_path):
    """The stack of a loop's values holds some thirty; beyond it the process dies, or the gradient is nonsense."""
    program = tmp_path / "long_loop.py"
    program.write_text(LONG_LOOP)
    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120)
    assert "short" in run.stdout, run.stderr
    assert run.returncode != 0 or "long False" in run.stdout


def test_overwriting_state_inside_a_tape_has_a_wrong_gradient(f64):
    x, loss = scalar(), scalar()

    @ti.kernel
    def square():
        for _ in range(1):
            x[None] = x[None] * x[None]

    @ti.kernel
    def measure():
        loss[None] += x[None]

    x[None] = 2.0
    with ti.ad.Tape(loss):
        square()
        square()
        measure()
    assert loss[None] == 16.0
    assert x.grad[None] == 1024.0  # truth: d x⁴/dx = 32


def test_atomic_max_is_differentiated_as_a_sum(f64):
    loss = scalar()
    a = ti.field(ti.f64, shape=4, needs_grad=True)
    a.from_numpy(np.array([-1.0, 0.0, 1.0, 2.0]))

    @ti.kernel
    def largest():
        for i in a:
            ti.atomic_max(loss[None], a[i] * a[i])

    with ti.ad.Tape(loss):
        largest()
    assert loss[None] == 4.0
    assert a.grad.to_numpy().tolist() == [-2.0, 0.0, 2.0, 4.0]  # truth: [0, 0, 0, 4]


def test_a_field_without_gradient_cuts_the_chain(f64):
    x, loss = scalar(), scalar()
    middle = ti.field(ti.f64, shape=())

    @ti.kernel
    def first():
        middle[None] = 3.0 * x[None]

    @ti.kernel
    def second():
        loss[None] += middle[None]

    x[None] = 1.0
    with ti.ad.Tape(loss):
        first()
        second()
    assert loss[None] == 3.0
    assert x.grad[None] == 0.0  # truth: 3, and no warning


def test_grad_twice_adds_up_and_a_tape_zeroes_the_loss(f64):
    x, loss = scalar(2.0), scalar()

    @ti.kernel
    def cube():
        loss[None] += x[None] ** 3

    loss.grad[None] = 1.0
    cube.grad()
    assert x.grad[None] == 12.0
    cube.grad()
    assert x.grad[None] == 24.0
    loss[None] = 100.0
    with ti.ad.Tape(loss):
        cube()
    assert loss[None] == 8.0


def test_a_tape_with_an_array_as_loss_keeps_old_gradients(f64):
    x, loss = ti.ndarray(ti.f64, 1, needs_grad=True), ti.ndarray(ti.f64, 1, needs_grad=True)
    x.fill(2.0)

    @ti.kernel
    def square(a: A1, b: A1):
        for i in a:
            b[0] += a[i] * a[i]

    for expected in (4.0, 8.0):  # truth: 4 both times
        with ti.ad.Tape(loss):
            square(x, loss)
        assert x.grad[0] == expected


def test_replaced_gradients_that_call_each_other_count_twice(f64):
    x, y, z, loss = (scalar() for _ in range(4))

    @ti.kernel
    def double():
        y[None] += 2 * x[None]

    @ti.kernel
    def triple():
        z[None] += 3 * y[None]

    @ti.kernel
    def measure():
        loss[None] += z[None]

    @ti.ad.grad_replaced
    def inner():
        double()

    @ti.ad.grad_for(inner)
    def inner_backward():
        double.grad()

    @ti.ad.grad_replaced
    def outer():
        inner()
        triple()

    @ti.ad.grad_for(outer)
    def outer_backward():
        triple.grad()
        double.grad()

    x[None] = 1.0
    with ti.ad.Tape(loss):
        outer()
        measure()
    assert x.grad[None] == 18.0  # truth: 6


def test_norm_at_zero_has_no_gradient(f64):
    loss = scalar()
    v = ti.Vector.field(2, ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def norm():
        loss[None] += v[None].norm()

    with ti.ad.Tape(loss):
        norm()
    assert np.isnan(v.grad.to_numpy()).all()


def test_svd_of_3_by_3_has_no_reverse_mode(f64):
    loss = scalar()
    m = ti.Matrix.field(3, 3, ti.f64, shape=(1,), needs_grad=True)
    m.from_numpy(np.diag([3.0, 2.0, 1.0])[None])

    @ti.kernel
    def stretch():
        for i in m:
            _U, S, _V = ti.svd(m[i])
            loss[None] += S[0, 0]

    with pytest.raises(RuntimeError), ti.ad.Tape(loss):
        stretch()


# ---- plain kernels ----


def test_vectors_of_python_integers_truncate(f64):
    @ti.kernel
    def add() -> ti.f64:
        v = ti.Vector([0, 0])
        v += ti.Vector([0.7, 1.6])
        return v.sum()

    @ti.kernel
    def add_to_reals() -> ti.f64:
        v = ti.Vector([0.0, 0.0])
        v += ti.Vector([0.7, 1.6])
        return v.sum()

    assert add() == 1.0
    assert add_to_reals() == pytest.approx(2.3)


def test_integer_literals_beyond_32_bits_need_a_type(f64):
    @ti.kernel
    def literal() -> ti.i64:
        return 1099511627776

    @ti.kernel
    def typed() -> ti.i64:
        return ti.i64(1099511627776)

    with pytest.raises(ti.TaichiTypeError, match=r"exceeded the range"):
        literal()
    assert typed() == 2**40


@ti.func
def follow(v, head, links: ti.template()):
    """Adds one for every link of a list; assigns to its own argument."""
    c = head
    while c >= 0:
        v = v + 1.0
        c = links[c]
    return v


@ti.func
def follow_a_copy(v, head, links: ti.template()):
    out = v
    c = head
    while c >= 0:
        out = out + 1.0
        c = links[c]
    return out


@ti.kernel
def by_element(values: A1, push: A1, heads: A1, links: A1, out: A1):
    for i in values:
        v = ti.Vector.zero(ti.f64, 2)
        for d in ti.static(range(2)):
            v[d] = values[i][d]
        v = v + push[0]  # lost
        v = follow(v, heads[i], links)
        for d in ti.static(range(2)):
            out[i][d] = v[d]


@ti.kernel
def whole(values: A1, push: A1, heads: A1, links: A1, out: A1):
    for i in values:
        v = ti.Vector([values[i][d] for d in ti.static(range(2))])
        v = v + push[0]
        out[i] = follow_a_copy(v, heads[i], links)


def test_a_vector_written_by_element_loses_its_next_assignment_before_a_loop(f64):
    values, push, out = (ti.ndarray(ti.math.vec2, n) for n in (2, 1, 2))
    heads, links = (ti.ndarray(ti.i32, 2) for _ in range(2))
    values.from_numpy(np.array([[1.0, 1.0], [1.0, 1.0]]))
    push.from_numpy(np.array([[0.0, -9.0]]))
    heads.from_numpy(np.array([-1, 1], np.int32))  # an empty list, and one of a single link
    links.from_numpy(np.array([-1, -1], np.int32))
    whole(values, push, heads, links, out)
    assert out.to_numpy().tolist() == [[1.0, -8.0], [2.0, -7.0]]
    by_element(values, push, heads, links, out)
    assert out.to_numpy()[0].tolist() == [1.0, 1.0]  # truth: [1, -8]
