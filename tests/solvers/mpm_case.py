"""A small MPM problem built directly on the solver, for tests of its adjoints."""

import itertools

import numpy as np

from taichi_sim import runtime
from taichi_sim.laws.law import kernel_functions, laws
from taichi_sim.solvers.mpm.arrays import MpmPlan
from taichi_sim.solvers.mpm.solver import MpmSolver

PARAMETERS = (
    "x",
    "v",
    "C",
    "F",
    "material",
    "step",
    "gravity",
    "active_stress",
    "active_acceleration",
    "particle_acceleration",
    "field_gain",
    "contact_normal",
    "contact_alpha",
    "contact_friction",
)


class Case:
    """Random particles of one or two laws above a floor, near walls, with everything that has a gradient."""

    def __init__(
        self,
        dim,
        names=("neo_hookean",),
        envs=1,
        partitions=2,
        periodic=False,
        segment_mode=False,
        fields=1,
        substeps=20,
        seed=0,
        room=100_000,
        per_law=30,
        plain=False,
        sort_every=4,
        slots=None,
    ):
        rng = np.random.default_rng(seed)
        self.dim, self.envs, self.substeps = dim, envs, substeps
        n = per_law * len(names)
        cells = 9
        self.spacing = 0.1
        ranges = tuple((i * per_law, (i + 1) * per_law) for i in range(len(names)))
        self.plan = MpmPlan(
            dim=dim,
            spacing=self.spacing,
            lower=(0.0,) * dim,
            upper=(cells * self.spacing,) * dim,
            periodic=(periodic,) + (False,) * (dim - 1),
            envs=envs,
            partitions=1 if segment_mode else partitions,
            particles=n,
            laws=tuple(kernel_functions(laws.get(name)) for name in names),
            law_ranges=ranges,
            rows=len(names),
            groups=3,
            fields=fields,
            contacts=2 * envs * self._count(dim, cells),
            driven=True,
            driven_frames=2,
            sort_every=sort_every,
            segment_mode=segment_mode,
        )
        frames = 1 + substeps // 5
        rt = runtime.current()
        self.solver = MpmSolver(rt, self.plan, 5, frames, (slots or substeps) + 1, room, plain)
        low = 0.02 if not periodic else 0.0
        x0 = rng.uniform(low, 0.45, (envs, n, dim))
        self.values = {
            "x": x0.reshape(-1, dim),
            "v": rng.normal(0, 0.5, (envs * n, dim)) - 0.3,
            "C": rng.normal(0, 2.0, (envs * n, dim, dim)),
            "F": np.eye(dim) + rng.normal(0, 0.05, (envs * n, dim, dim)),
        }
        material = np.zeros((envs, len(names), 8))
        for i, name in enumerate(names):
            law = laws.get(name)
            given = {
                p.name: np.full(envs, 50.0 if p.unit == "Pa" else (p.default if p.default is not None else 0.3))
                for p in law.parameters
            }
            material[:, i, 0] = 1e-3
            material[:, i, 1] = 1.3e-3
            material[:, i, 2 : 2 + law.n_coefficients] = law.coefficients(given)
        self.values["material"] = material.reshape(-1, 8)
        self.values["step"] = np.tile([2e-3, 0.7], (envs, 1))
        self.values["gravity"] = rng.normal(0, 3.0, (envs, dim))
        stress = rng.normal(0, 10.0, (frames, envs, 3, dim, dim))
        stress = stress + np.swapaxes(stress, -1, -2)
        stress[:, :, 0] = 0
        acc = rng.normal(0, 5.0, (frames, envs, 3, dim))
        acc[:, :, 0] = 0
        self.values["active_stress"] = stress.reshape(frames, -1, dim, dim)
        self.values["active_acceleration"] = acc.reshape(frames, -1, dim)
        self.values["field_gain"] = rng.normal(0, 1.0, (frames, envs * max(fields, 1)))
        self.values["particle_acceleration"] = rng.normal(0, 1, (2, envs * n, dim))
        self._contacts(rng)
        store = self.solver.store
        tag = np.zeros((n, 2), np.int32)
        for i, (a, b) in enumerate(ranges):
            tag[a:b, 0] = i
        tag[:, 1] = rng.integers(0, 3, n)
        store.write("tag", tag)
        if fields:
            values = rng.normal(0, 2, (fields, self.plan.nodes, dim))[:, self.plan.canonical_nodes()]
            store.write("field_acceleration", values.reshape(-1, dim))
        self.solver.set_mass_floor(1e-13)
        self.seed = {k: rng.normal(0, 1, self.values[k].shape) for k in ("x", "v", "C", "F")}
        self.seed["C"] *= 0.1

    @staticmethod
    def _count(dim, cells):
        return (cells + 11) ** dim

    def _contacts(self, rng):
        positions = self.plan.node_positions()
        n_nodes, envs, dim = self.plan.nodes, self.envs, self.dim
        head = np.full(envs * n_nodes, -1, np.int32)
        total = self.plan.contacts
        nxt = np.full(total, -1, np.int32)
        kind = np.zeros(total, np.int32)
        normal = np.zeros((total, dim))
        alpha = np.zeros(total)
        friction = np.zeros(total)
        count = 0
        ball = positions - 0.25
        mirror = self.plan.canonical_nodes()
        for e in range(envs):
            for i in np.flatnonzero((positions[:, 1] < 0.05) | (np.linalg.norm(ball, axis=1) < 0.12)):
                r = np.linalg.norm(ball[i])
                if r < 0.12:
                    kind[count], alpha[count], friction[count] = 2, 0.6, 0.3
                    normal[count] = ball[i] / max(r, 1e-9) if r > 1e-6 else np.eye(dim)[0]
                    nxt[count], head[e * n_nodes + i] = head[e * n_nodes + i], count
                    count += 1
                if positions[i, 1] < 0.05:
                    kind[count] = (2, 1, 2, 0)[i % 4]
                    alpha[count], friction[count] = (1.0, 1.0, 0.8, 0.5)[i % 4], (0.4, 0.0, 0.2, 0.0)[i % 4]
                    normal[count] = np.eye(dim)[1]
                    nxt[count], head[e * n_nodes + i] = head[e * n_nodes + i], count
                    count += 1
            head[e * n_nodes : (e + 1) * n_nodes] = head[e * n_nodes : (e + 1) * n_nodes][mirror]
        self.solver.store.write("contact_head", head)
        self.solver.store.write("contact_next", nxt)
        self.solver.store.write("contact_kind", kind)
        self.values.update(contact_normal=normal, contact_alpha=alpha, contact_friction=friction)
        self.touched = count

    def run(self, values=None, record=False, cuts=()):
        """Final state in body order after all substeps."""
        values = values or self.values
        store, solver = self.solver.store, self.solver
        for name in PARAMETERS[4:]:
            if name != "field_gain" or self.plan.fields:
                store.write(name, values[name])
        n, envs = self.plan.particles, self.envs
        solver.begin(0)
        solver.write_first_slot({k: values[k] for k in ("x", "v", "C", "F")} | {"id": np.tile(np.arange(n), envs)})
        marks = [0, *cuts, self.substeps]
        for a, b in itertools.pairwise(marks):
            solver.forward(a, b, record)
        return {k: solver.in_body_order(k, self.substeps).reshape(self.values[k].shape) for k in ("x", "v", "C", "F")}

    def loss(self, values=None):
        final = self.run(values)
        return float(sum((self.seed[k] * final[k]).sum() for k in final))

    def gradient(self, cuts=()):
        """Adjoints of everything by one backward sweep."""
        self.run(record=True, cuts=cuts)
        store, solver, plan = self.solver.store, self.solver, self.plan
        store.zero([f"d_{k}" for k in PARAMETERS])
        for k, values in self.seed.items():
            solver.add_adjoint(k, values.reshape(plan.envs, plan.particles, *values.shape[1:]))
        marks = [0, *cuts, self.substeps]
        for a, b in reversed(list(itertools.pairwise(marks))):
            solver.backward(a, b)
        out = {k: solver.adjoint_in_body_order(k).reshape(self.values[k].shape) for k in ("x", "v", "C", "F")}
        for k in PARAMETERS[4:]:
            out[k] = store.reduced_adjoint(k)
        return out
