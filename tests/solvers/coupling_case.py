"""Small scenes of MPM matter and rigid bodies built directly on the solvers, and their gradients."""

import itertools

import numpy as np
from assembly import Assembly
from differences import central

from taichi_sim import runtime
from taichi_sim.laws.law import kernel_functions, laws
from taichi_sim.solvers.coupling.colliders import Colliders, default_skin
from taichi_sim.solvers.coupling.stepper import CoupledStepper, Coupling
from taichi_sim.solvers.mpm.arrays import MpmPlan
from taichi_sim.solvers.mpm.solver import MpmSolver
from taichi_sim.solvers.rigid.solver import RigidSolver

MPM_STATE = ("x", "v", "C", "F")
RIGID_STATE = ("position", "rotation", "velocity", "spin")
COUPLING = ("place", "size", "skin_friction", "skin_stiction", "skin_offset", "skin_rate", "skin_cap",
            "skin_compliance", "weld_place", "weld_rate", "weld_cap")  # fmt: skip
RIGID = ("mass", "inertia", "centre", "gravity", "dt", "friction", "stiffness", "damping", "stiction", "force",
         "torque")  # fmt: skip
JOINTS = ("coordinate", "rate")
ALONG = ("parent_anchor", "child_anchor", "joint_axis", "mount", "armature", "joint_damping", "joint_stiffness",
         "joint_rest", "drive_stiffness", "drive_damping", "joint_force", "target")  # fmt: skip


class Case:
    """Matter that fills ``boxes`` (low, high), and the bodies of ``assembly`` with ``colliders``.

    ``without(x)`` tells which particles to leave out; with ``thin`` thin boxes are plates. ``walls``: (axis, side -1 or
    1, place) of planes that hold the nodes beyond them (kind 0 sticky, 1 slip).
    """

    def __init__(self, assembly: Assembly, colliders: Colliders, boxes, *, steps, dt, spacing=0.05, cells=20, law=None,
                 density=1.0, walls=(), wall_kind=1, per_axis=2, envs=1, partitions=2, slots=None, room=100_000,
                 skin=None, damping=0.0, pool=64, sort_every=5, segment_mode=False, gravity=None, segment_room=None,
                 cells_of=None, without=None, rows_room=None, thin=False):  # fmt: skip
        name, values = law or ("neo_hookean", {"youngs_modulus": 100.0, "poissons_ratio": 0.0})
        dim = assembly.dim
        self.dim, self.steps, self.envs, self.spacing = dim, steps, envs, spacing
        s = spacing / per_axis
        x = []
        for low, high in boxes:
            axes = [np.arange(a + s / 2, b, s) for a, b in zip(low, high, strict=True)]
            x.append(np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, dim))
        x = np.concatenate(x)
        if without is not None:
            x = x[~without(x)]
        n = len(x)
        rt = runtime.current()
        cells_of = cells_of or (cells,) * dim
        plates = colliders.part(3 * spacing) if thin else 0
        self.plan = MpmPlan(
            dim=dim, spacing=spacing, lower=(0.0,) * dim, upper=tuple(c * spacing for c in cells_of), envs=envs,
            periodic=(False,) * dim, partitions=1 if segment_mode else partitions, particles=n,
            laws=(kernel_functions(laws.get(name)),), law_ranges=((0, n),), rows=1, groups=1, fields=0,
            contacts=max(1, len(walls) * int(np.prod([c + 12 for c in cells_of]))) * envs, driven_frames=1,
            driven=False, sort_every=sort_every, segment_mode=segment_mode, plates=plates,
        )  # fmt: skip
        slots = (slots or steps) + 1
        self.mpm = MpmSolver(rt, self.plan, steps, 1, slots, room if segment_room is None else segment_room, False)
        store, one = self.mpm.store, laws.get(name)
        given = {p.name: np.array(float(values.get(p.name, p.default or 0.0))) for p in one.parameters}
        material = np.zeros(8)
        self.particle_mass = density * s**dim
        material[0], material[1] = s**dim, self.particle_mass
        material[2 : 2 + one.n_coefficients] = one.coefficients(given)
        store.write("material", np.tile(material, (envs, 1)))
        store.write("step", np.tile([dt, damping], (envs, 1)))
        g = assembly.gravity if gravity is None else np.asarray(gravity, float)
        store.write("gravity", np.tile(g, (envs, 1)))
        store.zero(["tag", "active_stress", "active_acceleration", "field_gain", "contact_alpha", "contact_friction",
                    "contact_normal", "contact_kind"])  # fmt: skip
        self.mpm.set_mass_floor(1e-12 * self.particle_mass)
        self._hold(walls, wall_kind)
        assembly.values["dt"] = dt
        self.rigid = RigidSolver(rt, assembly.plan(envs), steps, 1, slots)
        jointed = bool(self.rigid.plan.joints)
        self.states = RIGID_STATE + (JOINTS if jointed else ())
        self.parameters = RIGID + (ALONG if jointed else ())
        c = one.wave_speed({k: float(v) for k, v in given.items()}, density)
        self.wave_speed = c
        # at half a spacing, the default, bodies placed flush with a block touch it exactly: a corner of the law
        skin = default_skin(spacing, c, s, dt) | {"offset": 0.25 * s} | (skin or {})
        self.coupling = Coupling(colliders.plan(self.plan, self.rigid.plan, rows_room), self.mpm, self.rigid, pool)
        colliders.fill(self.coupling, skin)
        self.stepper = CoupledStepper(self.mpm, self.rigid, self.coupling)
        self.stepper.begin(0)
        assembly.fill(self.rigid)
        tile = {"x": x, "v": np.zeros((n, dim)), "C": np.zeros((n, dim, dim)), "F": np.tile(np.eye(dim), (n, 1, 1))}
        self.mpm.write_first_slot({k: np.concatenate([v] * envs) for k, v in tile.items()}
                                  | {"id": np.tile(np.arange(n), envs)})  # fmt: skip
        self.start = self.stepper.read_slot(0)

    def _hold(self, walls, kind):
        plan, store = self.plan, self.mpm.store
        places = plan.node_positions()
        head = np.full(plan.envs * plan.nodes, -1, np.int32)
        nxt, normals = np.full(plan.contacts, -1, np.int32), np.zeros((plan.contacts, self.dim))
        count = 0
        for e in range(plan.envs):
            for axis, side, place in walls:
                for i in np.flatnonzero(side * (places[:, axis] - place) > -1e-9):
                    nxt[count], head[e * plan.nodes + i] = head[e * plan.nodes + i], count
                    normals[count, axis] = -side
                    count += 1
        store.write("contact_head", head)
        store.write("contact_next", nxt)
        store.write("contact_kind", np.full(plan.contacts, kind, np.int32))
        store.write("contact_normal", normals)
        store.write("contact_alpha", np.ones(plan.contacts))

    def run(self, record=False, cuts=(), keep=None):
        """All substeps in one segment from ``start``; ``keep(k)`` is called at the cuts."""
        self.stepper.begin(0)
        self.stepper.write_first_slot(self.start)
        marks = [0, *cuts, self.steps]
        for a, b in itertools.pairwise(marks):
            self.stepper.forward(a, b, record)
            if keep is not None:
                keep(b)

    def play(self, substeps, measure, every=20):
        """Many substeps in segments as long as there are slots; ``measure(slot)`` every so often."""
        state = self.start
        for t in range(0, substeps, every):
            self.stepper.begin(t)
            self.stepper.write_first_slot(state)
            self.stepper.forward(0, every, False)
            state = self.stepper.read_slot(every)
            measure(every)
        self.start = state

    # ---- momentum, energy ----

    def momentum(self, k):
        """Momentum and (2-D) angular momentum of everything, environment 0 of one."""
        m, M = self.particle_mass, self.rigid.store.view("mass")
        x, v, C = (self.mpm.store.view(n)[k].astype(float) for n in ("x", "v", "C"))
        y, u, w = (self.rigid.store.view(n)[k].astype(float) for n in ("position", "velocity", "spin"))
        out = m * v.sum(0) + (M[:, None] * u).sum(0)
        if self.dim == 2:
            D = self.spacing**2 / 4
            turning = m * (x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0] + D * (C[:, 1, 0] - C[:, 0, 1])).sum()
            turning += (
                M * (y[:, 0] * u[:, 1] - y[:, 1] * u[:, 0]) + self.rigid.store.view("inertia")[:, 0] * w[:, 0]
            ).sum()
            out = np.append(out, turning)
        return out

    def kinetic(self, k):
        """Of particles (with their affine part) and bodies (2-D), J."""
        m, M = self.particle_mass, self.rigid.store.view("mass")
        v, C = (self.mpm.store.view(n)[k].astype(float) for n in ("v", "C"))
        u, w = (self.rigid.store.view(n)[k].astype(float) for n in ("velocity", "spin"))
        D = self.spacing**2 / 4
        moving = 0.5 * m * ((v**2).sum() + D * (C**2).sum()) + 0.5 * (M[:, None] * u**2).sum()
        return moving + 0.5 * (self.rigid.store.view("inertia")[:, 0] * w[:, 0] ** 2).sum()

    def elastic(self, k):
        """Of a neo-Hookean solid, J."""
        F = self.mpm.store.view("F")[k].astype(float)
        mu, lam = (float(q) for q in self.mpm.store.view("material")[0, 2:4])
        J = np.linalg.det(F)
        psi = mu / 2 * ((F**2).sum((1, 2)) - self.dim) - mu * np.log(J) + lam / 2 * np.log(J) ** 2
        return float(self.mpm.store.view("material")[0, 0] * psi.sum())

    # ---- gradients ----

    def seed(self, rng):
        self.weights = {}
        for n in MPM_STATE:
            self.weights[n] = rng.normal(size=self.mpm.store.view(n)[0].shape)
        self.weights["C"] *= 0.1
        for n in self.states:
            self.weights[n] = 10 * rng.normal(size=self.rigid.store.view(n)[0].shape)

    def loss(self):
        self.run()
        return self.value()

    def value(self):
        mine = self.mpm.store
        id_ = np.array(mine.view("id")[self.mpm.epoch])
        places = id_ + self.plan.particles * np.repeat(np.arange(self.envs), self.plan.particles)
        total = sum(float((self.weights[n][places] * mine.view(n)[self.steps]).sum()) for n in MPM_STATE)
        return total + sum(float((self.weights[n] * self.rigid.store.view(n)[self.steps]).sum()) for n in self.states)

    def gradient(self, cuts=()):
        self.run(record=True, cuts=cuts)
        self.stepper.clear_adjoints()
        for n in MPM_STATE:
            w = self.weights[n]
            self.mpm.add_adjoint(n, w.reshape(self.envs, self.plan.particles, *w.shape[1:]))
        for n in self.states:
            self.rigid.store.view(f"d_{n}")[...] = self.weights[n]
        marks = [0, *cuts, self.steps]
        for a, b in reversed(list(itertools.pairwise(marks))):
            self.stepper.backward(a, b)
        self.rigid.settle(0)
        return self.collect()

    def collect(self):
        out = {f"mpm/{n}": self.mpm.adjoint_in_body_order(n).reshape(self.weights[n].shape) for n in MPM_STATE}
        out |= {f"rigid/{n}": np.array(self.rigid.store.view(f"d_{n}")) for n in self.states}
        out |= {f"mpm:{n}": self.mpm.store.reduced_adjoint(n) for n in ("material", "step", "gravity")}
        out |= {f"rigid:{n}": self.rigid.store.reduced_adjoint(n) for n in self.parameters}
        out |= {f"coupling:{n}": self.coupling.store.reduced_adjoint(n) for n in COUPLING}
        return out | {"rigid:restitution": self.rigid.store.reduced_adjoint("restitution")}

    def place(self, key):
        """Writable values of what ``key`` of :meth:`gradient` stands for."""
        if "/" in key:
            return self.start[key]
        room, name = key.split(":")
        return {"mpm": self.mpm, "rigid": self.rigid, "coupling": self.coupling}[room].store.view(name)

    def difference(self, key, direction, step):
        """Extrapolated central difference along ``direction``."""
        return central(self.loss, self.place(key), direction, step)

    def check(self, keys=None, tolerance=1e-6, steps=(1e-4, 1e-5, 1e-6, 1e-7)):
        """Relative error of the gradient along one random direction of each array, at the best step."""
        gradient = self.gradient()
        rng = np.random.default_rng(9)
        errors = {}
        for key in keys or gradient:
            place = self.place(key)
            direction = rng.normal(size=place.shape)
            if key in ("mpm:material", "coupling:size", "mpm:step"):
                direction = direction * place
            if key == "mpm:material":
                direction[:, 0] = 0.0
            if not direction.size:
                continue
            if key == "coupling:size":
                direction[np.abs(place) > 1e6] = 0.0
            mine = float((gradient[key] * direction).sum())
            scale = float(np.abs(place[np.abs(place) < 1e6]).max()) or 1e-2
            size = max(abs(mine), 1e-3 * float(np.linalg.norm(gradient[key]) * np.linalg.norm(direction)), 1e-9)
            errors[key] = min(abs(self.difference(key, direction, s * scale) - mine) / size for s in steps)
        bad = {k: e for k, e in errors.items() if not e < tolerance}
        assert not bad, f"{bad}\nall {errors}"
        return errors
