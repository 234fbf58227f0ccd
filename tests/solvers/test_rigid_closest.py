"""Closest places of features: against their definition, and the adjoint against central differences."""

import numpy as np
import pytest

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.closest import (
    LINE_LINE,
    POINT_LINE,
    POINT_PLANE,
    POINT_POINT,
    POINT_RIM,
    RIM_PLANE,
    closest,
    closest_adjoint,
)

A2 = ti.types.ndarray(ndim=2)
KINDS = {
    "point-plane": POINT_PLANE, "point-point": POINT_POINT, "point-line": POINT_LINE, "point-rim": POINT_RIM,
    "rim-plane": RIM_PLANE, "line-line": LINE_LINE,
}  # fmt: skip


@ti.func
def three(x: ti.template(), r, at: ti.template()):
    return ti.Vector([x[r, at], x[r, at + 1], x[r, at + 2]])


@ti.kernel
def both_ways(kind: ti.template(), part: ti.i32, given: A2, bar: A2, out: A2, back: A2):
    for r in range(given.shape[0]):
        P, a1, b0, b1 = three(given, r, 0), three(given, r, 3), three(given, r, 6), three(given, r, 9)
        n, way, gap = closest(ti.static((kind,)), kind, part, P, a1, b0, b1, given[r, 12], given[r, 13])
        Pb, a1b, b0b, b1b, rab, rbb, _n = closest_adjoint(
            ti.static((kind,)), kind, part, P, a1, b0, b1, given[r, 12], given[r, 13], three(bar, r, 0),
            three(bar, r, 3), bar[r, 6],
        )  # fmt: skip
        for a in range(3):
            out[r, a], out[r, 3 + a] = n[a], way[a]
            back[r, a], back[r, 3 + a], back[r, 6 + a], back[r, 9 + a] = Pb[a], a1b[a], b0b[a], b1b[a]
        out[r, 6] = gap
        back[r, 12], back[r, 13] = rab, rbb


def evaluate(kind, given, bar=None, part=0):
    """Rows (n, 14) → normal, way and gap (n, 7), adjoint (n, 14) for rows ``bar`` (n, 7)."""
    given = np.atleast_2d(given)
    bar = np.zeros((len(given), 7)) if bar is None else np.atleast_2d(bar)
    arrays = [ti.ndarray(ti.f64, (len(given), n)) for n in (14, 7, 7, 14)]
    for array, values in zip(arrays, (given, bar), strict=False):
        array.from_numpy(values)
    both_ways(kind, part, *arrays)
    return arrays[2].to_numpy(), arrays[3].to_numpy()


def states(kind):
    """Random ones; and where features touch exactly, cross, are nearly parallel, or a circle lies nearly flat."""
    rng = np.random.default_rng(kind)
    for i in range(40):
        x = rng.normal(0, 1, 14)
        x[12:] = rng.uniform(0.1, 0.5, 2)
        if kind in (POINT_PLANE, RIM_PLANE):
            x[6:9] /= np.linalg.norm(x[6:9])
        n = x[6:9] / np.linalg.norm(x[6:9])
        if i % 4 == 1:  # gap 0
            x[:3] = {
                POINT_PLANE: n * (x[12] + x[13]), POINT_POINT: x[6:9] + n * (x[12] + x[13]),
                POINT_LINE: x[6:9] + 0.3 * x[9:12], LINE_LINE: x[6:9] + 0.3 * x[9:12] - 0.2 * x[3:6],
            }.get(kind, x[:3])  # fmt: skip
        if i % 4 == 1 and kind == POINT_LINE:
            across = np.cross(x[9:12], [0.3, 0.2, 0.1])
            x[:3] += across / np.linalg.norm(across) * (x[12] + x[13])
        if i % 4 == 2 and kind == LINE_LINE:  # nearly parallel
            x[3:6] = x[9:12] + 0.02 * rng.normal(0, 1, 3)
        if i % 4 == 2 and kind == RIM_PLANE:  # lies flat within its tolerance, or nearly
            x[3:6] = n + (0.1 if i % 8 == 2 else 1e-5) * rng.normal(0, 1, 3)
        yield x, rng.normal(0, 1, 7)


@pytest.mark.parametrize("name", KINDS)
def test_adjoint(f64, name):
    kind = KINDS[name]
    x, bar = (np.array(rows) for rows in zip(*states(kind), strict=True))
    directions = np.eye(14)[None, :, :]

    for part in {RIM_PLANE: (0, 2), LINE_LINE: (0, 1)}.get(kind, (0,)):

        def central(h, part=part):
            ends = [evaluate(kind, (x[:, None] + s * h * directions).reshape(-1, 14), part=part)[0] for s in (1, -1)]
            return ((ends[0] - ends[1]).reshape(len(x), 14, 7) @ bar[:, :, None])[..., 0] / (2 * h)

        _, back = evaluate(kind, x, bar, part)
        errors = [np.abs((4 * central(h / 2) - central(h)) / 3 - back) for h in (1e-3, 1e-4, 1e-5)]
        scale = np.maximum(1.0, np.abs(back).max(axis=1))[:, None]
        assert (np.min(errors, axis=0) / scale).max() < 1e-8, (name, part)


def test_definitions(f64):
    """Gap and places, against searches over the features themselves."""
    t = np.linspace(-20, 20, 400001)
    for x, _bar in states(LINE_LINE):
        P, a1, b0, b1 = x[:3], x[3:6], x[6:9], x[9:12]
        out = evaluate(LINE_LINE, x)[0][0]
        n, way, gap = out[:3], out[3:6], out[6]
        assert abs(n @ a1) < 1e-9 and abs(n @ b1) < 1e-9 and np.linalg.norm(np.cross(way, a1)) < 1e-9 * (1 + way @ way)
        rest = P + way - n * (gap + x[12] + x[13]) - b0  # from the other line's start to its closest place
        assert np.linalg.norm(np.cross(rest, b1)) < 1e-9 * (1 + np.linalg.norm(rest)) * np.linalg.norm(b1)
    for x, _bar in states(POINT_RIM):
        u = x[9:12] / np.linalg.norm(x[9:12])
        e = np.cross(u, [0.3, 0.5, -0.4])
        e /= np.linalg.norm(e)
        circle = x[6:9] + x[13] * (np.cos(t)[:, None] * e + np.sin(t)[:, None] * np.cross(u, e))
        out = evaluate(POINT_RIM, x)[0][0]
        assert out[6] + x[12] == pytest.approx(np.linalg.norm(x[:3] - circle, axis=1).min(), abs=1e-7)
    for x, _bar in states(RIM_PLANE):
        u = x[3:6] / np.linalg.norm(x[3:6])
        lowest = x[6:9] @ x[:3] - x[12] * np.sqrt(max(0.0, 1 - (u @ x[6:9]) ** 2)) - x[13]
        out = evaluate(RIM_PLANE, x)[0][0]
        assert out[6] == pytest.approx(lowest, abs=1e-4 if abs(u @ x[6:9]) > 0.999999 else 1e-12)


def test_coincident_centres_and_parallel_lines_are_finite(f64):
    x = np.zeros(14)
    x[3:6] = x[9:12] = [1.0, 2.0, 3.0]
    x[12:] = 0.1
    for kind in (POINT_POINT, POINT_LINE, POINT_RIM, LINE_LINE):
        out, back = evaluate(kind, x, np.ones(7))
        assert np.isfinite(out).all() and np.isfinite(back).all()
