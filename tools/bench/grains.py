"""Grains beside the same law in NumPy with SciPy's k-d tree: ``python tools/bench/grains.py --help``.

A slightly pressed bed of 100 000 spheres with about five contacts each, springs of friction included. Both compute the
same steps; how far they are apart is printed too.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from taichi_sim import runtime
from taichi_sim.solvers.particles.arrays import COMPLIANT, ParticlesPlan, rooms
from taichi_sim.solvers.particles.contact import KAPPA
from taichi_sim.solvers.particles.solver import ParticlesSolver

STIFFNESS, DAMPING, FRICTION, STEP, GRAVITY = 1e4, 5.0, 0.5, 1e-4, 9.8
SEGMENT = 10


@dataclass
class Bed:
    """Spheres above a floor at y = 0: positions, velocities, spins (n, 3), radii and masses (n,)."""

    x: np.ndarray
    v: np.ndarray
    spin: np.ndarray
    radius: np.ndarray
    mass: np.ndarray


def bed(grains: int) -> Bed:
    """A cubic lattice, jittered and pressed together by 3 percent of a diameter."""
    side = round(grains ** (1 / 3))
    rng = np.random.default_rng(0)
    x = 0.01 + 0.0194 * np.indices((side,) * 3).reshape(3, -1).T
    x = x + rng.uniform(-1e-4, 1e-4, x.shape)
    radius = 0.01 * rng.uniform(0.95, 1.0, len(x))
    still = np.zeros_like(x)
    return Bed(x, rng.normal(0, 0.02, x.shape), still, radius, 2500 * 4 / 3 * np.pi * radius**3)


class Reference:
    """The law of ``taichi_sim.solvers.particles.contact`` (linear, without rolling), pair by pair in NumPy."""

    def __init__(self, b: Bed) -> None:
        self.b = b
        self.keys, self.stretch = np.zeros(0, np.int64), np.zeros((0, 3))

    def step(self) -> None:
        b = self.b
        n = len(b.x)
        pairs = cKDTree(b.x).query_pairs(2 * b.radius.max(), output_type="ndarray")
        away = b.x[pairs[:, 0]] - b.x[pairs[:, 1]]
        near = np.einsum("ij,ij->i", away, away) < (b.radius[pairs[:, 0]] + b.radius[pairs[:, 1]]) ** 2
        i, j = pairs[near].T
        low = np.flatnonzero(b.x[:, 1] < b.radius)
        floor = b.x[low] * [0, 1, 0]
        i, j = np.append(i, low), np.append(j, np.full(len(low), n))  # the floor is the last, without radius
        e = np.concatenate([away[near], floor])
        v, spin = (np.vstack([a, np.zeros(3)]) for a in (b.v, b.spin))
        radius = np.append(b.radius, 0.0)
        K = np.where(j == n, STIFFNESS, 0.5 * STIFFNESS)
        keys = i * (n + 1) + j
        order = np.argsort(keys)
        i, j, e, K, keys = i[order], j[order], e[order], K[order], keys[order]

        length = np.linalg.norm(e, axis=1)
        direction = e / length[:, None]
        depth = radius[i] + radius[j] - length
        share = (radius[i] / (radius[i] + radius[j]))[:, None]
        u = v[i] - v[j]
        normal = np.einsum("ij,ij->i", u, direction)
        q = np.maximum(0, 1 - DAMPING * normal)
        u = u - np.cross(share * spin[i] + (1 - share) * spin[j], e)
        u = u - np.einsum("ij,ij->i", u, direction)[:, None] * direction
        kept = np.zeros_like(e)
        if len(self.keys):
            place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            known = self.keys[place] == keys
            kept[known] = self.stretch[place[known]]
        kept -= np.einsum("ij,ij->i", kept, direction)[:, None] * direction
        lag = (DAMPING * depth)[:, None] * u
        g = kept + STEP * u + lag
        longest = FRICTION * depth * q / KAPPA
        z = np.minimum(1, longest / np.maximum(np.linalg.norm(g, axis=1), 1e-300))[:, None] * g
        self.keys, self.stretch = keys, z - lag
        tangential = -KAPPA * K[:, None] * z
        force = (K * depth * q)[:, None] * direction + tangential
        couple = -np.cross(e, tangential)
        F, T = np.zeros((n + 1, 3)), np.zeros((n + 1, 3))
        for d in range(3):
            F[:, d] = np.bincount(i, force[:, d], n + 1) - np.bincount(j, force[:, d], n + 1)
            T[:, d] = np.bincount(i, (share * couple)[:, d], n + 1) + np.bincount(
                j, ((1 - share) * couple)[:, d], n + 1
            )
        b.v = b.v + STEP * (F[:-1] / b.mass[:, None] - [0, GRAVITY, 0])
        b.spin = b.spin + STEP * T[:-1] / (0.4 * b.mass * b.radius**2)[:, None]
        b.x = b.x + STEP * b.v


def ours(b: Bed, precision: str, threads: int | None) -> ParticlesSolver:
    """The solver with the bed in slot 0."""
    neighbours, contacts = rooms(3, b.radius, 1)
    plan = ParticlesPlan(
        3, 1, len(b.x), walls=(COMPLIANT,), grains=True, neighbours=neighbours, contacts=contacts, partitions=32
    )
    solver = ParticlesSolver(runtime.start(precision, threads=threads), plan, SEGMENT, 1, SEGMENT + 1)
    for name, value in {
        "mass": b.mass, "radius": b.radius, "surface": [[STIFFNESS, DAMPING, FRICTION, 0.0]], "step": [[STEP, 0.0]],
        "gravity": [[0.0, -GRAVITY, 0.0]], "wall_normal": [[0.0, 1.0, 0.0]], "wall": [[0.0, FRICTION]],
    }.items():  # fmt: skip
        solver.store.write(name, np.asarray(value, dtype=float))
    solver.write_first_slot(solver.at_rest(b.x, b.v))
    return solver


def _time(work: Callable[[], None], repeats: int) -> np.ndarray:
    """Least seconds on the clock, and of all cores together."""
    best = np.full(2, np.inf)
    for _ in range(repeats):
        start = time.perf_counter(), time.process_time()
        work()
        best = np.minimum(best, [time.perf_counter() - start[0], time.process_time() - start[1]])
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description="Times grains beside NumPy and SciPy.")
    parser.add_argument("--grains", type=int, default=100_000, help="number of spheres (default 100000)")
    parser.add_argument("--repeats", type=int, default=5, help="runs of ten steps, the best counts (default 5)")
    parser.add_argument("--precision", choices=("f32", "f64"), default="f32")
    parser.add_argument("--threads", type=int, default=None, help="default: all cores")
    given = parser.parse_args()
    b = bed(given.grains)
    n = len(b.x)
    solver = ours(b, given.precision, given.threads)

    def forward() -> None:
        solver.begin(0)
        solver.forward(0, SEGMENT, True)

    def both() -> None:
        forward()
        solver.backward(0, SEGMENT)

    both()
    solver.clear_adjoints()
    solver.store.view("d_x")[...] = 1.0
    reference = Reference(b)
    rows = {
        "forward": _time(forward, given.repeats),
        "forward and backward": _time(both, given.repeats),
        "NumPy and SciPy": _time(lambda: [reference.step() for _ in range(SEGMENT)] and None, 1),
    }
    touching = float((solver.store.view("partner")[SEGMENT] >= 0).sum()) / n
    apart = float(np.abs(solver.store.view("x")[SEGMENT] - reference.b.x).max())
    print(f"{n} spheres, {touching:.1f} contacts each, {given.precision}: ns a grain and step, clock and all cores")
    for name, seconds in rows.items():
        print(f"  {name:22}" + "".join(f"{1e9 * s / SEGMENT / n:9.0f}" for s in seconds))
    print(f"  positions differ by {apart:.1e} m")
    return 0


if __name__ == "__main__":
    sys.exit(main())
