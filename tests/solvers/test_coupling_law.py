"""The law of a particle at a body, and distances of shapes: against their definitions and central differences."""

import numpy as np
import pytest

from taichi_sim.runtime import ti
from taichi_sim.solvers.coupling.distance import (
    BOX,
    CAPSULE,
    CYLINDER,
    PLANE,
    SPHERE,
    shape_distance,
    shape_distance_adjoint,
)  # fmt: skip
from taichi_sim.solvers.coupling.law import meet, meet_adjoint, meet_slope
from taichi_sim.solvers.coupling.samples import BEYOND, sampled_distance

A1 = ti.types.ndarray(ndim=1)


@ti.kernel
def run_law(given: A1, bar: A1, out: A1, slope: A1, back: A1):
    for i in range(1):
        u = ti.Vector([given[0], given[1], given[2]])
        n = ti.Vector([given[3], given[4], given[5]])
        m, alpha, b, mu, vs = given[6], given[7], given[8], given[9], given[10]
        y = ti.Vector([bar[0], bar[1], bar[2]])
        impulse = meet(u, n, m, alpha, b, mu, vs)
        G = meet_slope(u, n, m, alpha, b, mu, vs)
        ub, nb, mb, ab, bb, fb, vb = meet_adjoint(u, n, m, alpha, b, mu, vs, y)
        for a in range(3):
            out[i * 3 + a] = impulse[a]
            back[a], back[3 + a] = ub[a], nb[a]
            for c in range(3):
                slope[3 * a + c] = G[a, c]
        back[6], back[7], back[8], back[9], back[10] = mb, ab, bb, fb, vb


class Law:
    """Runs the law on rows (u, n, m, alpha, b, mu, vs)."""

    def __init__(self):
        self.arrays = [ti.ndarray(ti.f64, n) for n in (11, 3, 3, 9, 11)]

    def __call__(self, row, bar=(0.0, 0.0, 0.0)):
        given, weights, out, slope, back = self.arrays
        given.from_numpy(np.asarray(row, float))
        weights.from_numpy(np.asarray(bar, float))
        run_law(given, weights, out, slope, back)
        return out.to_numpy(), slope.to_numpy().reshape(3, 3), back.to_numpy()


def unit(rng, dim):
    n = np.zeros(3)
    n[:dim] = rng.normal(size=dim)
    return n / np.linalg.norm(n)


def states():
    """Rows: sliding, sticking, at rest, just before touch, compliant, light and heavy; both in plane and in space."""
    rng = np.random.default_rng(3)
    for i in range(60):
        dim = 2 + i % 2
        n = unit(rng, dim)
        t = np.cross(n, unit(rng, 3)) if dim == 3 else np.array([-n[1], n[0], 0.0])
        slip = (0.0, 1e-9, 1e-3, 0.1, 2.0)[i % 5]
        closing = (0.5, 1e-3, -0.2, 0.02)[i % 4]
        alpha = (1.0, 0.3)[i // 2 % 2]
        mu = (0.3, 0.0, 1.2)[i % 3]
        yield [*(slip * t - closing * n), *n, 10 ** rng.uniform(-4, 1), alpha, (0.1, 0.0, -0.01)[i % 3], mu,
               10 ** rng.uniform(-3, 0)]  # fmt: skip


def test_law_is_coulombs(f64):
    """Afterwards the particle separates at ``b``, and friction obeys ρ(s') mu gn with the speed s' it then has."""
    law = Law()
    met = 0
    for row in states():
        u, n, (m, _alpha, b, mu, vs) = np.array(row[:3]), np.array(row[3:6]), row[6:]
        row[7] = 1.0
        impulse, _G, _back = law(row)
        after = u + impulse / m
        if b - u @ n <= 0:
            assert not impulse.any()
            continue
        met += 1
        assert after @ n == pytest.approx(b, abs=1e-12)
        vt, gn = after - (after @ n) * n, impulse @ n
        x = min(1.0, np.linalg.norm(vt) / vs)
        bound = mu * gn * (2 * x - x * x)
        friction = impulse - gn * n
        assert np.linalg.norm(friction) == pytest.approx(bound, rel=1e-6, abs=1e-9 * m)
        assert friction @ vt <= 1e-12
    assert met > 30


def test_law_adjoint(f64):
    law, rng = Law(), np.random.default_rng(0)
    for row in states():
        row = np.array(row)
        bar = rng.normal(size=3)
        value, G, back = law(row, bar)
        if not value.any():
            assert not back.any()
            continue
        scale = np.linalg.norm(G) * np.linalg.norm(bar)
        assert np.abs(back[:3] + G.T @ bar).max() <= 1e-12 * scale
        for i in range(11):
            best = np.inf
            for h in (1e-4, 1e-5, 1e-6, 1e-7):
                step = np.zeros(11)
                step[i] = h * max(abs(row[i]), 1e-2)

                def central(s, step=step, i=i, row=row, bar=bar):
                    ends = [law(row + q * s * step)[0] @ bar for q in (1, -1)]
                    return (ends[0] - ends[1]) / (2 * s * step[i])

                truth = (4 * central(0.5) - central(1.0)) / 3
                best = min(best, abs(truth - back[i]) / max(abs(back[i]), abs(truth), 1e-3 * np.abs(back).max()))
            assert best < 1e-6, (row, i, back[i])


@ti.kernel
def run_shape(kind: ti.i32, given: A1, bar: A1, out: A1, back: A1):
    for i in range(1):
        size = ti.Vector([given[0], given[1], given[2], given[3]])
        y = ti.Vector([given[4], given[5], given[6]])
        phi, n, bend = shape_distance(kind, size, y)
        y_bar = bar[0] * n + bend.transpose() @ ti.Vector([bar[1], bar[2], bar[3]])
        size_bar = shape_distance_adjoint(kind, size, y, y_bar, bar[0])
        out[i] = phi
        for a in range(3):
            out[1 + a] = n[a]
            back[4 + a] = y_bar[a]
        for a in range(4):
            back[a] = size_bar[a]


class Shape:
    def __init__(self, kind):
        self.kind = kind
        self.arrays = [ti.ndarray(ti.f64, n) for n in (7, 4, 4, 7)]

    def __call__(self, row, bar=(0.0, 0.0, 0.0, 0.0)):
        given, weights, out, back = self.arrays
        given.from_numpy(np.asarray(row, float))
        weights.from_numpy(np.asarray(bar, float))
        run_shape(self.kind, given, weights, out, back)
        return out.to_numpy(), back.to_numpy()


SIZES = {
    SPHERE: [0.3, 0, 0, 0], BOX: [0.3, 0.2, 0.25, 0.05], CAPSULE: [0.2, 0.3, 0, 0], CYLINDER: [0.3, 0.2, 0.04, 0],
    PLANE: [0, 0, 0, 0],
}  # fmt: skip


@pytest.mark.parametrize("kind", SIZES)
def test_shapes(f64, kind):
    """The closest point lies on the surface, at the distance, along the normal; the adjoint is the derivative."""
    shape, rng = Shape(kind), np.random.default_rng(kind)
    for i in range(40):
        y = rng.uniform(-0.6, 0.6, 3) * (1.0 if i % 4 else 0.35)  # every fourth deep inside
        if i % 5 == 0:
            y[2] = 0.0
        row = np.array([*SIZES[kind], *y])
        out, _ = shape(row)
        phi, n = out[0], out[1:]
        assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-12)
        on, _ = shape([*SIZES[kind], *(y - phi * n)])
        assert on[0] == pytest.approx(0.0, abs=1e-9 if phi > -1e-3 else 1e-6 + 0.1 * (kind == BOX) * abs(phi))
        bar = rng.normal(size=4)
        _, back = shape(row, bar)
        for c in range(7):
            if c < 4 and SIZES[kind][c] == 0:
                continue
            best = np.inf
            for h in (1e-5, 1e-6):
                step = np.zeros(7)
                step[c] = h
                truth = (shape(row + step)[0] - shape(row - step)[0]) @ bar / (2 * h)
                best = min(best, abs(truth - back[c]) / max(1.0, abs(back[c])))
            assert best < 1e-7, (y, c, back[c])


def test_at_the_centre_nothing_is_nan(f64):
    for kind, size in SIZES.items():
        out, back = Shape(kind)([*size, 0.0, 0.0, 0.0], (1.0, 1.0, 1.0, 1.0))
        assert np.isfinite(out).all() and np.isfinite(back).all() and out[0] <= 0


@ti.kernel
def run_samples(dim: ti.template(), n: ti.i32, given: A1, sample: A1, out: A1):
    for i in range(1):
        y = ti.Vector([given[0], given[1], given[2]])
        depth = 1
        if ti.static(dim == 3):
            depth = n
        phi, g, normal, bend = sampled_distance(dim, 5, ti.Vector([n, n, depth]), 0.1, y, sample)
        out[i] = phi
        for a in range(3):
            out[1 + a] = g[a]
            out[4 + a] = normal[a]
            for c in range(3):
                out[7 + 3 * a + c] = bend[a, c]


@pytest.mark.parametrize("dim", [2, 3])
def test_samples(f64, dim):
    n = 12
    axes = np.meshgrid(*[0.1 * np.arange(n)] * dim, indexing="ij")
    centre = np.array([0.52, 0.57, 0.61])[:dim]
    values = np.linalg.norm(np.stack(axes, -1) - centre, axis=-1) - 0.3
    sample, given, out = (ti.ndarray(ti.f64, c) for c in (5 + values.size, 3, 16))
    sample.from_numpy(np.concatenate([np.zeros(5), values.ravel()]))

    def at(y):
        given.from_numpy(np.append(y, [0.0] * (3 - dim)))
        run_samples(dim, n, given, sample, out)
        return out.to_numpy()

    rng = np.random.default_rng(1)
    for _ in range(20):
        away = unit(rng, dim)[:dim]
        y = centre + away * rng.uniform(0.25, 0.4)
        here = at(y)
        r = np.linalg.norm(y - centre)
        assert here[0] == pytest.approx(r - 0.3, abs=1.1 * 0.1**2 / 8 * (dim - 1) / r)  # dx²/8 times the curvature
        assert here[4 : 4 + dim] @ away > 0.999
        for c in range(dim):
            step = np.eye(dim)[c] * 1e-6
            truth = (at(y + step) - at(y - step)) / 2e-6
            assert truth[0] == pytest.approx(here[1 + c], abs=1e-8)
            assert np.allclose(truth[4:7], here[7 + c : 16 : 3], atol=1e-6)
    assert at(np.full(dim, 3.0))[0] == BEYOND
