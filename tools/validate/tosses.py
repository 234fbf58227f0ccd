"""Cube tosses: friction and restitution identified by gradient from recorded motion, and held against other tosses.

``python tools/validate/tosses.py tosses_dev_000_284.npz [--substeps 1] [--friction 0.5] [--restitution 0.4]``

Data: Pfrommer, Halm and Posa, "ContactNets" (2020), github.com/DAIRLab/contact-nets: a cube of .1048 m and .37 kg on a
table, 148 frames/s; arrays ``state`` (frames, 13: position, quaternion w x y z, velocity, spin in body axes) and
``offsets`` of the tosses in it. Half width .0513 m and g 9.61 m/s² fit the recording. Every 7th toss is used: the first
half to identify, the second to test. All tosses run at once, each in an environment of its own.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from taichi_sim import runtime
from taichi_sim.solvers.rigid.arrays import EventPlan
from taichi_sim.solvers.rigid.assembly import Assembly
from taichi_sim.solvers.rigid.solver import RigidSolver

WIDTH, HALF, MASS, GRAVITY, FRAME = 0.1048, 0.0513, 0.37, 9.61, 1.0 / 148.0


def matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrix of a unit quaternion w x y z."""
    w, v = q[0], q[1:]
    skew = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    return np.eye(3) + 2.0 * (w * skew + skew @ skew)


class Tosses:
    """A set of recorded tosses, and the solver that repeats them."""

    def __init__(self, recorded: list[np.ndarray], substeps: int, rebounds: bool) -> None:
        self.recorded, self.substeps = recorded, substeps
        self.frames = max(len(r) for r in recorded) - 1
        a = Assembly(3)
        a.values |= {"dt": FRAME / substeps}
        a.gravity[:] = 0.0, 0.0, -GRAVITY
        a.wall([0.0, 0.0, 1.0], 0.0)
        cube = a.box(MASS, [HALF] * 3, [0.0, 0.0, 1.0])
        a.bodies[cube].inertia[:3] = 0.00081 * (HALF / 0.0524) ** 2
        plan = a.plan(len(recorded), events=EventPlan() if rebounds else None)
        self.steps = self.frames * substeps
        self.solver = RigidSolver(runtime.current(), plan, self.steps, 1, self.steps + 1)
        a.fill(self.solver)
        first = np.array([r[0] for r in recorded])
        turned = np.array([matrix(q / np.linalg.norm(q)) for q in first[:, 3:7]])
        self.start = {
            "position": first[:, :3], "rotation": first[:, 3:7], "velocity": first[:, 7:10],
            "spin": np.einsum("nij,nj->ni", turned, first[:, 10:13]),
            "kick": np.full(len(first), FRAME / substeps),
        }  # fmt: skip

    def run(self, frames: int, **values: float) -> None:
        """Repeat the first ``frames`` frames with friction, restitution, ..."""
        store = self.solver.store
        for name, value in values.items():
            store.view(name)[...] = value
        self.solver.begin(0)
        self.solver.write_first_slot(self.start)
        self.solver.forward(0, min(frames, self.frames) * self.substeps, True)

    def loss(self, frames: int, gradient: bool = True) -> tuple[float, dict[str, float]]:
        """Mean over tosses and frames of the squared distance in widths, and its derivatives."""
        store, solver = self.solver.store, self.solver
        frames = min(frames, self.frames)
        solver.clear_adjoints()
        total = 0.0
        x, bar = store.view("position"), store.view("d_position")
        for k in range(frames, 0, -1):
            for e, r in enumerate(self.recorded):
                if k < len(r):
                    away = (x[k * self.substeps, e] - r[k, :3]) / WIDTH
                    share = 1.0 / (len(self.recorded) * (min(frames + 1, len(r))))
                    total += share * float(away @ away)
                    bar[e] += 2.0 * share * away / WIDTH
            if gradient:
                solver.backward((k - 1) * self.substeps, k * self.substeps)
        return total, {n: float(store.reduced_adjoint(n).sum()) for n in ("friction", "restitution")}

    def score(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean distance (widths) and angle (degrees) of every toss."""
        store = self.solver.store
        far, turned = [], []
        for e, r in enumerate(self.recorded):
            at = np.arange(len(r)) * self.substeps
            far.append(np.linalg.norm(store.view("position")[at, e] - r[:, :3], axis=1).mean() / WIDTH)
            q, p = store.view("rotation")[at, e], r[:, 3:7]
            cosine = np.abs((q * p).sum(axis=1)) / np.linalg.norm(q, axis=1) / np.linalg.norm(p, axis=1)
            turned.append(np.degrees(2.0 * np.arccos(np.clip(cosine, 0.0, 1.0))).mean())
        return np.array(far), np.array(turned)


def identify(tosses: Tosses, guess: dict[str, float], stages=(25, 40, 70, 1000), rounds=12) -> dict[str, float]:
    """Adam on the gradient, over a horizon that grows: whole tosses are chaotic, far from the answer."""
    names = list(guess)
    x = np.array([guess[n] for n in names])
    for frames in stages:
        m, v, best = np.zeros_like(x), np.zeros_like(x), (np.inf, x)
        for k in range(1, rounds + 1):
            tosses.run(frames, **dict(zip(names, x, strict=True)))
            loss, bar = tosses.loss(frames)
            if loss < best[0]:
                best = (loss, x.copy())
            g = np.array([bar[n] for n in names])
            m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g * g
            rate = 0.08 * (1 - k / rounds) + 0.002
            x = np.clip(
                x - rate * (m / (1 - 0.8**k)) / (np.sqrt(v / (1 - 0.95**k)) + 1e-8), 1e-3, [2.0, 0.95][: len(x)]
            )
        x = best[1]
        print(f"  {frames:4d} frames: {dict(zip(names, x.round(4), strict=True))}, loss {best[0]:.5f}", flush=True)
    return dict(zip(names, x, strict=True))


def main() -> None:
    """Identify on half of the tosses, test on the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--substeps", type=int, default=1)
    parser.add_argument("--friction", type=float, default=0.5)
    parser.add_argument("--restitution", type=float, default=0.4, help="0: compliant contact only")
    parser.add_argument("--stiffness", type=float, default=1e5)
    parser.add_argument("--damping", type=float, default=5.0)
    parser.add_argument("--only-score", action="store_true", help="identify nothing, score the values given")
    o = parser.parse_args()
    runtime.start("f64")
    data = np.load(o.data)
    offsets, state = data["offsets"], data["state"].astype(float)
    chosen = [state[offsets[i] : offsets[i + 1]] for i in range(0, 280, 7)]
    half = len(chosen) // 2
    fixed = {"stiffness": o.stiffness, "damping": o.damping}
    guess = {"friction": o.friction} | ({"restitution": o.restitution} if o.restitution > 0 else {})
    begin = time.perf_counter()
    found, parts = guess, {"all": chosen}
    if not o.only_score:
        train = Tosses(chosen[:half], o.substeps, o.restitution > 0)
        train.run(1, **fixed)
        found = identify(train, guess)
        parts = {"identified on": chosen[:half], "held out": chosen[half:]} | parts
    for name, part in parts.items():
        tosses = Tosses(part, o.substeps, o.restitution > 0)
        tosses.run(tosses.frames, **fixed, **found)
        far, turned = tosses.score()
        print(f"{name} {len(part)} tosses: {far.mean():.3f} widths (median {np.median(far):.3f}), {turned.mean():.1f} "
              f"degrees (median {np.median(turned):.1f})", flush=True)  # fmt: skip
    print(f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
