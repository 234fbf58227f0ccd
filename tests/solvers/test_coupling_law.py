"""The law of a particle at a body: against its definition and central differences."""

import numpy as np
import pytest

from taichi_sim.runtime import ti
from taichi_sim.solvers.coupling.law import meet, meet_adjoint, meet_slope

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
