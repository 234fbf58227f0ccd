"""The law of contact beside central differences, exact and similar, also where it has corners."""

import numpy as np
import pytest

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.law import impulse, impulse_adjoint, impulse_slope

A1 = ti.types.ndarray(ndim=1)


@ti.kernel
def evaluate(x: A1, bar: A1, out: A1, slope: A1, adjoint: A1, way: ti.i32):
    for _ in range(1):
        v = ti.Vector([x[0], x[1], x[2]])
        n = ti.Vector([x[3], x[4], x[5]])
        z = ti.Vector([bar[0], bar[1], bar[2]])
        g, _gn = impulse(v, n, x[6], x[7], x[8], x[9], x[10], way, 0.0)
        G = impulse_slope(v, n, x[6], x[7], x[8], x[9], x[10], way, 0.0)
        v_bar, n_bar, K_bar, b_bar, mu_bar, d_bar, vs_bar = impulse_adjoint(
            v, n, x[6], x[7], x[8], x[9], x[10], way, z)  # fmt: skip
        for i in ti.static(range(3)):
            out[i] = g[i]
            adjoint[i] = v_bar[i]
            adjoint[3 + i] = n_bar[i]
            for j in ti.static(range(3)):
                slope[3 * i + j] = G[i, j]
        adjoint[6], adjoint[7], adjoint[8], adjoint[9], adjoint[10] = K_bar, b_bar, mu_bar, d_bar, vs_bar


@pytest.mark.parametrize("way", [0, 2])
@pytest.mark.parametrize("vt", [0.0, 1e-4, 0.03, 0.7])
def test_law(f64, way, vt):
    """At rest, near it, below and above the stiction speed (0.05 m/s)."""
    arrays = [ti.ndarray(ti.f64, n) for n in (11, 3, 3, 9, 11)]
    n = np.array([0.36, 0.48, 0.8])
    x = np.array([*(vt * np.array([0.8, -0.6, 0.0]) - 0.3 * n), *n, 5.0, 0.2, 0.4, 0.7, 0.05])
    bar = np.array([0.3, -0.8, 0.5])

    def at(values):
        arrays[0].from_numpy(values)
        arrays[1].from_numpy(bar)
        evaluate(*arrays, way)
        return [a.to_numpy() for a in arrays[2:]]

    _, slope, adjoint = at(x)
    step = 1e-7
    jacobian = np.array([(at(x + step * e)[0] - at(x - step * e)[0]) / (2 * step) for e in np.eye(11)]).T
    assert np.abs(jacobian[:, :3] + slope.reshape(3, 3)).max() < 2e-5 * max(1.0, np.abs(slope).max())
    mine = np.array([*adjoint[:3], *adjoint[3:]])
    assert np.abs(bar @ jacobian - mine).max() < 2e-5 * max(1.0, np.abs(mine).max())
    if way == 2:
        G = slope.reshape(3, 3)
        assert np.abs(G - G.T).max() < 1e-12 and np.linalg.eigvalsh(G).min() > -1e-12
