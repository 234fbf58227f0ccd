"""An elastic block on which grains and a rope fall, built directly on the solvers, and gradients."""

import itertools

import numpy as np
from assembly import Assembly
from coupling_case import COUPLING, MPM_STATE, Case
from points_case import POINT_STATE, SKIN

from taichi_sim import runtime
from taichi_sim.solvers.coupling.beside import Beside
from taichi_sim.solvers.coupling.colliders import Colliders
from taichi_sim.solvers.coupling.sphere_stepper import Spheres, SpheresStepper
from taichi_sim.solvers.coupling.spheres import SpheresPlan
from taichi_sim.solvers.particles.arrays import ParticlesPlan, rooms
from taichi_sim.solvers.particles.solver import ParticlesSolver

POINTS = ("mass", "spring", "surface", "gravity")


class SpheresCase:
    """Grains and a rope of masses ``ratio`` times a particle's fall on a block, no gravity. With ``body`` a rigid box
    lies in the way too; with ``beside`` the rope falls on that, one end tied to it, and not on the block."""

    def __init__(self, dim=2, envs=1, steps=60, ratio=1.0, body=False, held=(), dt=5e-4, pool=64, friction=0.3,
                 beside=False):  # fmt: skip
        rng = np.random.default_rng(1)
        a, c = Assembly(dim), Colliders(dim)
        a.box(
            0.02,
            [0.04] * dim,
            [0.5, 0.545, 0.5][:dim] if body else [0.5, 0.9, 0.5][:dim],
            velocity=[0.0, -0.5, 0.0][:dim],
        )
        c.box(0, [0.04] * dim, edge=0.01)
        block = ((0.35, 0.35, 0.4)[:dim], (0.65, 0.5, 0.6)[:dim])
        room = 10_000 if beside else None
        self.case = Case(a, c, [block], steps=steps, dt=dt, envs=envs, cells=20, gravity=np.zeros(dim),
                         rows_room=room)  # fmt: skip
        self.mpm, self.dim, self.envs, self.steps = self.case.mpm, dim, envs, steps
        self.body, self.beside = body, None
        if not body:
            self.mpm.guest = None
        n, g = 7, 4
        x = np.full((n + g, dim), 0.5)
        x[:n, 0] = np.linspace(0.38, 0.62, n)
        x[:n, 1] = 0.505
        x[n:, 0], x[n:, 1] = [0.37, 0.42, 0.58, 0.63], 0.525
        if body:
            x[:n, 1], x[n:, 0] = 0.584 if beside else 0.345, [0.35, 0.4, 0.6, 0.65]
        radius = np.where(np.arange(n + g) < n, 0.0, 0.02)
        neighbours, contacts = rooms(dim, radius)
        plan = ParticlesPlan(dim, envs, n + g, tuple((i, i + 1, 0) for i in range(n - 1)), grains=True,
                             neighbours=neighbours, contacts=contacts, partitions=3, hosting=True)  # fmt: skip
        self.points = ParticlesSolver(runtime.current(), plan, steps, 1, steps + 1)
        tag = np.zeros((n + g, 4), int)
        tag[:n, 0] = -1
        tag[list(held), 2] = 1
        m = ratio * self.case.particle_mass
        values = {"mass": np.tile(m * rng.uniform(0.5, 1.5, n + g), envs), "radius": np.tile(radius, envs),
                  "spring": [20.0 * m / dt**2 * 1e-4, 0.0, 0.04], "surface": [1e-4 * m / dt**2, 0.3, 0.4, 0.0],
                  "step": [dt, 0.0], "gravity": np.zeros(dim), "tag": tag}  # fmt: skip
        for name, value in values.items():
            view = self.points.store.view(name)
            view[...] = np.broadcast_to(value, view.shape)
        v = np.zeros((envs, n + g, dim))
        v[..., 1] = -0.8 if not body or beside else np.where(np.arange(n + g) < n, 0.8, -0.8)
        v += 0.1 * rng.normal(size=v.shape)
        v[:, list(held)] = 0.0
        p, s = self.mpm.plan, 0.025
        self.spheres = Spheres(SpheresPlan(dim, envs, p.partitions, len(p.laws), p.rows, p.particles, n + g, 0.01),
                               self.mpm, self.points, pool)  # fmt: skip
        touch = np.zeros((n + g, 5))
        touch[:, 0] = radius + np.where(radius > 0, 0.25 * s, 0.5 * s)
        touch[:, 1:] = [30.0, 0.3, friction, 0.02]
        self.spheres.store.write("touch", np.tile(touch, (envs, 1)))
        if beside:
            self._meet_bodies(x, pool)
        self.stepper = SpheresStepper(self.mpm, self.points, self.spheres, self.case.stepper if body else None)
        self.stepper.begin(0)
        self.points.write_first_slot(self.points.at_rest(np.tile(x, (envs, 1)), v.reshape(-1, dim)))
        self.start = {f"points/{n}": v for n, v in self.points.read_slot(0).items()}
        self.start |= {k: v for k, v in self.case.start.items() if k.startswith("mpm/") or body}

    def _meet_bodies(self, x, pool):
        """Points touch the body of the case, and the last of the rope is tied to it."""
        c = Colliders(self.dim)
        c.box(0, [0.04] * self.dim, edge=0.01)
        c.weld(0, [6], x[6] - np.array([0.502, 0.547, 0.5])[: self.dim])
        lead = self.case.coupling
        self.beside = Beside(c.plan_points(self.points.plan, lead.rigid.plan, 0.01), self.points, lead, pool)
        c.fill(self.beside, SKIN | {"weld_rate": 100.0, "weld_cap": 1.0})
        offset = self.beside.store.view("skin_offset").reshape(self.envs, -1, len(x))
        offset += self.points.store.view("radius").reshape(self.envs, 1, -1)

    def run(self, record=False, cuts=()):
        self.stepper.begin(0)
        if self.body:
            self.case.rigid.write_first_slot({k[6:]: v for k, v in self.start.items() if k.startswith("rigid/")})
        self.stepper.write_first_slot(self.start)
        for a, b in itertools.pairwise([0, *cuts, self.steps]):
            self.stepper.forward(a, b, record)

    def count(self):
        return np.array(self.spheres.store.view("pairs")[: self.steps, 0, 1])

    def momentum(self, k):
        """Of everything, environment 0 of one."""
        v, m = (np.asarray(self.points.store.view(n), float) for n in ("v", "mass"))
        out = (m[:, None] * v[k]).sum(0)
        out = out + self.case.particle_mass * self.mpm.store.view("v")[k].astype(float).sum(0)
        if self.body:
            out = out + 0.02 * self.case.rigid.store.view("velocity")[k, 0]
        return out

    def energy(self, k):
        v, m = self.points.store.view("v")[k], self.points.store.view("mass")
        C = self.mpm.store.view("C")[k]
        D = self.case.spacing**2 / 4
        u = self.mpm.store.view("v")[k]
        kinetic = 0.5 * (m[:, None] * v**2).sum() + 0.5 * self.case.particle_mass * ((u**2).sum() + D * (C**2).sum())
        return kinetic + self.case.elastic(k)

    # ---- gradients ----

    def seed(self, rng):
        self.weights = {f"mpm/{n}": rng.normal(size=self.start[f"mpm/{n}"].shape) for n in ("x", "v")}
        self.weights |= {
            f"points/{n}": 3 * rng.normal(size=self.start[f"points/{n}"].shape) for n in ("x", "v", "spin")
        }

    def loss(self):
        self.run()
        last = self.stepper.read_slot(self.steps)
        n, order = self.mpm.plan.particles, last["mpm/id"]
        places = order + n * np.repeat(np.arange(self.envs), n)
        total = sum(float((w[places] * last[k]).sum()) for k, w in self.weights.items() if k.startswith("mpm/"))
        return total + sum(float((w * last[k]).sum()) for k, w in self.weights.items() if k.startswith("points/"))

    def gradient(self, cuts=()):
        self.run(record=True, cuts=cuts)
        self.stepper.clear_adjoints()
        for key, w in self.weights.items():
            room, name = key.split("/")
            if room == "mpm":
                self.mpm.add_adjoint(name, w.reshape(self.envs, -1, *w.shape[1:]))
            else:
                self.points.store.write(f"d_{name}", w)
        for a, b in reversed(list(itertools.pairwise([0, *cuts, self.steps]))):
            self.stepper.backward(a, b)
        out = {f"mpm/{n}": self.mpm.adjoint_in_body_order(n).reshape(self.start[f"mpm/{n}"].shape) for n in MPM_STATE}
        out |= {f"points/{n}": np.array(self.points.store.view(f"d_{n}")) for n in POINT_STATE if n != "stretch"}
        out |= {f"mpm:{n}": self.mpm.store.reduced_adjoint(n) for n in ("material", "gravity")}
        out |= {f"points:{n}": self.points.store.reduced_adjoint(n) for n in POINTS}
        if self.body:
            out |= {f"rigid/{n}": np.array(self.case.rigid.store.view(f"d_{n}")) for n in ("position", "velocity")}
            out |= {f"coupling:{n}": self.case.coupling.store.reduced_adjoint(n) for n in COUPLING[2:7]}
        if self.beside is not None:
            out |= {f"beside:{n}": self.beside.store.reduced_adjoint(n) for n in COUPLING[:7] + COUPLING[8:]}
            out |= {f"rigid:{n}": self.case.rigid.store.reduced_adjoint(n) for n in ("mass", "inertia")}
        return out | {"spheres:touch": self.spheres.store.reduced_adjoint("touch")}

    def place(self, key):
        """Writable values of what ``key`` of :meth:`gradient` stands for."""
        if "/" in key:
            return self.start[key]
        room, name = key.split(":")
        solvers = {"mpm": self.mpm, "points": self.points, "spheres": self.spheres, "rigid": self.case.rigid,
                   "coupling": self.case.coupling, "beside": self.beside}  # fmt: skip
        return solvers[room].store.view(name)

    def errors(self, keys=None, steps=(1e-3, 1e-4, 1e-5, 1e-6, 1e-7)):
        """Relative error of the gradient along one random direction of each array, at the best step."""
        gradient = self.gradient()
        rng = np.random.default_rng(9)
        found = {}
        for key in keys or gradient:
            place, room = self.place(key), key.partition(":")[0]
            kept = np.array(place)
            direction = rng.normal(size=place.shape)
            if key in ("mpm:material", "spheres:touch", "points:spring", "points:surface") or "rate" in key:
                direction = direction * place
            if key == "beside:size":
                direction[np.abs(place) > 1e6] = 0.0
            if key == "mpm:material":
                direction[:, 0] = 0.0
            mine = float((gradient[key] * direction).sum())
            scale = 1e-1 if "/" in key else 1.0
            if key in ("points:mass", "rigid:mass", "rigid:inertia") or room in ("coupling", "beside"):
                scale = max(1e-2, float(kept[kept < 1e6].max())) if "rate" not in key else 1.0
            values = []
            for s in steps:

                def central(h, place=place, kept=kept, direction=direction):
                    seen = []
                    for sign in (1, -1):
                        place[...] = kept + sign * h * direction
                        seen.append(self.loss())
                    place[...] = kept
                    return (seen[0] - seen[1]) / (2 * h)

                values.append((4 * central(s * scale / 2) - central(s * scale)) / 3)
            size = max(abs(mine), 1e-3 * float(np.linalg.norm(gradient[key]) * np.linalg.norm(direction)), 1e-9)
            found[key] = min(abs(value - mine) / size for value in values)
        return found
