"""Small scenes of networks, grains and rigid bodies built directly on the solvers, and their gradients."""

import itertools
from dataclasses import replace

import numpy as np
from assembly import Assembly
from differences import central

from taichi_sim import runtime
from taichi_sim.solvers.coupling.colliders import Colliders
from taichi_sim.solvers.coupling.stepper import CoupledStepper, Coupling
from taichi_sim.solvers.particles.arrays import ParticlesPlan, rooms
from taichi_sim.solvers.particles.solver import ParticlesSolver
from taichi_sim.solvers.rigid.solver import RigidSolver

POINT_STATE = ("x", "v", "spin", "stretch")
RIGID_STATE = ("position", "rotation", "velocity", "spin")
POINTS = ("mass", "radius", "spring", "surface", "step", "gravity", "wall", "group_force")
RIGID = ("mass", "inertia", "centre", "gravity", "dt", "friction", "stiffness", "damping", "stiction", "force",
         "torque")  # fmt: skip
COUPLING = ("place", "size", "skin_friction", "skin_stiction", "skin_offset", "skin_rate", "skin_cap",
            "skin_compliance")  # fmt: skip
SKIN = {"friction": 0.4, "stiction": 0.02, "offset": 0.0, "rate": 20.0, "cap": 0.1, "compliance": 0.0}


class PointsCase:
    """Points of ``plan`` with ``values`` and ``state`` (as in ``particles_case``), and the bodies of ``assembly``.

    What has a radius touches at it.
    """

    def __init__(self, assembly, colliders, plan, values, state, *, steps, dt, band, skin=None, pool=64):
        rt = runtime.current()
        self.dim, self.steps, self.envs = plan.dim, steps, plan.envs
        self.plan = plan = replace(plan, hosting=True, segment_mode=False)
        self.points = ParticlesSolver(rt, plan, steps, 1, steps + 1)
        for name, value in values.items():
            view = self.points.store.view(name)
            view[...] = np.broadcast_to(value, view.shape)
        self.points.store.view("step")[:, 0] = dt
        assembly.values["dt"] = dt
        self.rigid = RigidSolver(rt, assembly.plan(plan.envs), steps, 1, steps + 1)
        self.coupling = Coupling(colliders.plan_points(plan, self.rigid.plan, band), self.points, self.rigid, pool)
        colliders.fill(self.coupling, SKIN | (skin or {}))
        offset = self.coupling.store.view("skin_offset").reshape(plan.envs, -1, plan.particles)
        offset += self.points.store.view("radius").reshape(plan.envs, 1, plan.particles)
        self.stepper = CoupledStepper(self.points, self.rigid, self.coupling)
        self.stepper.begin(0)
        assembly.fill(self.rigid)
        start = self.points.at_rest(np.zeros(plan.dim))
        for name, value in state.items():
            start[name] = np.reshape(np.broadcast_to(value, start[name].shape), start[name].shape).copy()
        self.points.write_first_slot(start)
        self.start = self.stepper.read_slot(0)
        self.weights = {}

    def run(self, record=False, cuts=()):
        self.stepper.begin(0)
        self.stepper.write_first_slot(self.start)
        for a, b in itertools.pairwise([0, *cuts, self.steps]):
            self.stepper.forward(a, b, record)

    def contacts(self):
        """(steps,) of environment 0."""
        return np.array(self.coupling.store.view("span")[: self.steps, 0, 1])

    def momentum(self, k, env=0):
        """Momentum and (2-D) angular momentum of everything in an environment."""
        n, b = self.plan.particles, self.rigid.plan.bodies
        p, q = slice(env * n, env * n + n), slice(env * b, env * b + b)
        m, M = (s.store.view("mass")[w].astype(float) for s, w in ((self.points, p), (self.rigid, q)))
        x, v, spin = (self.points.store.view(name)[k, p].astype(float) for name in ("x", "v", "spin"))
        y, u, w = (self.rigid.store.view(name)[k, q].astype(float) for name in ("position", "velocity", "spin"))
        out = (m[:, None] * v).sum(0) + (M[:, None] * u).sum(0)
        if self.dim == 2:
            r, I = self.points.store.view("radius")[p].astype(float), self.rigid.store.view("inertia")[q, 0]
            turning = (m * (x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0])).sum() + (0.5 * m * r**2 * spin[:, 0]).sum()
            turning += (M * (y[:, 0] * u[:, 1] - y[:, 1] * u[:, 0]) + I * w[:, 0]).sum()
            out = np.append(out, turning)
        return out

    # ---- gradients ----

    def seed(self, rng):
        self.weights = {f"mpm/{n}": rng.normal(size=self.start[f"mpm/{n}"].shape) for n in ("x", "v", "spin")}
        self.weights |= {f"rigid/{n}": 3 * rng.normal(size=self.start[f"rigid/{n}"].shape) for n in RIGID_STATE}

    def loss(self):
        self.run()
        last = self.stepper.read_slot(self.steps)
        return float(sum((w * last[n]).sum() for n, w in self.weights.items()))

    def gradient(self, cuts=()):
        self.run(record=True, cuts=cuts)
        self.stepper.clear_adjoints()
        for key, w in self.weights.items():
            room, name = key.split("/")
            {"mpm": self.points, "rigid": self.rigid}[room].store.write(f"d_{name}", w)
        for a, b in reversed(list(itertools.pairwise([0, *cuts, self.steps]))):
            self.stepper.backward(a, b)
        out = {f"mpm/{n}": np.array(self.points.store.view(f"d_{n}")) for n in POINT_STATE}
        out |= {f"rigid/{n}": np.array(self.rigid.store.view(f"d_{n}")) for n in RIGID_STATE}
        out |= {f"points:{n}": self.points.store.reduced_adjoint(n) for n in POINTS}
        out |= {f"rigid:{n}": self.rigid.store.reduced_adjoint(n) for n in RIGID}
        return out | {f"coupling:{n}": self.coupling.store.reduced_adjoint(n) for n in COUPLING}

    def place(self, key):
        """Writable values of what ``key`` of :meth:`gradient` stands for."""
        if "/" in key:
            return self.start[key]
        room, name = key.split(":")
        return {"points": self.points, "rigid": self.rigid, "coupling": self.coupling}[room].store.view(name)

    def difference(self, key, direction, step):
        """Extrapolated central difference along ``direction``."""
        return central(self.loss, self.place(key), direction, step)

    def errors(self, keys=None, steps=(1e-3, 1e-5, 1e-6, 1e-7, 1e-8)):
        """Relative error of the gradient along one random direction of each array, at the best step."""
        gradient = self.gradient()
        rng = np.random.default_rng(9)
        found = {}
        for key in keys or gradient:
            place = self.place(key)
            direction = rng.normal(size=place.shape)
            if key in ("coupling:size", "points:step", "points:spring", "points:surface", "points:wall"):
                direction = direction * place
            if key == "coupling:size":
                direction[np.abs(place) > 1e6] = 0.0
            if key == "points:radius":
                direction = direction * (place > 0)
            if key == "mpm/stretch" or not np.any(direction):
                continue
            mine = float((gradient[key] * direction).sum())
            scale = float(np.abs(place[np.abs(place) < 1e6]).max()) or 1e-2
            size = max(abs(mine), 1e-3 * float(np.linalg.norm(gradient[key]) * np.linalg.norm(direction)), 1e-9)
            found[key] = min(abs(self.difference(key, direction, s * scale) - mine) / size for s in steps)
        return found

    def check(self, keys=None, tolerance=1e-6, steps=(1e-3, 1e-5, 1e-6, 1e-7, 1e-8)):
        errors = self.errors(keys, steps)
        bad = {k: e for k, e in errors.items() if not e < tolerance}
        assert not bad, f"{bad}\nall {errors}"
        return errors


def rope(dim=2, envs=1, ratio=1.0, steps=60, dt=2e-3, held=(), **more):
    """A rope across a ball that falls on it, and grains that fall on the ball; bodies of ``ratio`` times a point's
    mass. No gravity of the world."""
    rng = np.random.default_rng(1)
    n, g = 9, 3
    x = np.zeros((n + g, dim))
    x[:n, 0] = np.linspace(-0.4, 0.4, n)
    x[n:, 0], x[n:, 1] = [-0.12, 0.02, 0.15], 0.27
    if dim == 3:
        x[:, 2] = 0.01 * rng.normal(size=n + g)
    radius = np.where(np.arange(n + g) < n, 0.0, 0.05)
    edges = tuple((i, i + 1, 0) for i in range(n - 1))
    neighbours, contacts = rooms(dim, radius)
    plan = ParticlesPlan(dim, envs, n + g, edges, grains=True, neighbours=neighbours, contacts=contacts, partitions=3)
    tag = np.zeros((n + g, 4), int)
    tag[:n, 0] = -1
    tag[list(held), 2] = 1
    values = {
        "mass": np.tile(rng.uniform(0.5, 1.5, n + g), envs),
        "radius": np.tile(radius, envs),
        "spring": [200.0, 0.5, 0.1],
        "surface": [2e3, 0.3, 0.4, 0.0],
        "step": [dt, 0.1],
        "gravity": np.zeros(dim),
        "tag": tag,
    }
    v = np.zeros((envs, n + g, dim))
    v[:, n:, 1] = -0.8
    v += 0.05 * rng.normal(size=v.shape)
    a, c = Assembly(dim), Colliders(dim)
    a.sphere(
        ratio,
        0.1,
        [0.02, 0.105, 0.0][:dim],
        velocity=[0.1, -0.6, 0.05][:dim],
        spin=[0.5, 0.2, 1.0][2 if dim == 2 else 0 :],
    )
    a.box(2.0 * ratio, [0.15, 0.05, 0.15][:dim], [-0.3, -0.06, 0.0][:dim], velocity=[0.0, 0.3, 0.0][:dim])
    c.sphere(0, 0.1)
    c.box(1, [0.15, 0.05, 0.15][:dim], edge=0.02)
    return PointsCase(a, c, plan, values, {"x": np.tile(x, (envs, 1)), "v": v.reshape(-1, dim)}, steps=steps, dt=dt,
                      band=0.03, **more)  # fmt: skip
