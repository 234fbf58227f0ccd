"""What is felt in a step: accelerations, contact forces, what acts along joints; and the adjoints of all that.

An acceleration is the change of the velocity that the state holds over the time between the two, which is the mean over
the step, whatever happened in it: at a marker ``a + α × r + ω × (ω × r)``. It depends on the states at both ends of the
step, slots ``k - 1`` and ``k``, and so do contact forces: of bodies without joints they are what is left of
``m (a - g) - F``, exact whatever pushes them; of links the sum of what the law of contact gives at the velocities that
were found, and of what particles gave (``lent``). What is left for a joint is its reaction:
``Σ m (a - g) - F - contacts`` of all that hangs on it.
"""

from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.family import State
from taichi_sim.solvers.rigid.attitude import matrices, matrices_vjp, spin_matrices, spin_matrices_vjp
from taichi_sim.solvers.rigid.sensing import kicks
from taichi_sim.solvers.rigid.solver import RigidSolver


@dataclass(frozen=True)
class Step:
    """A step to slot ``k`` as the solver holds it; arrays (envs, bodies, …), f64.

    ``length`` (envs, 1, 1) is the time between the velocities ``v``, ``w`` before and ``u``, ``q`` after; ``R`` are
    rotations at its beginning, of the attitudes ``rotation``; ``spin`` is the mean one.
    """

    k: int
    length: np.ndarray
    rotation: np.ndarray
    R: np.ndarray
    acceleration: np.ndarray
    turning: np.ndarray
    spin: np.ndarray


def step_to(solver: RigidSolver, k: int) -> Step:
    """The step to slot ``k``, at least 1."""
    envs, dim = solver.plan.envs, solver.plan.dim

    def state(name: str, slot: int) -> np.ndarray:
        return np.asarray(solver.store.view(name)[slot], np.float64).reshape(envs, solver.plan.bodies, -1)

    length = kicks(solver, k)[:, None, None]
    q = state("rotation", k - 1)
    R = matrices(q.reshape(-1, q.shape[2]), dim).reshape(*q.shape[:2], dim, dim)
    w, u = state("spin", k - 1), state("spin", k)
    rate = (state("velocity", k) - state("velocity", k - 1)) / length
    return Step(k, length, q, R, rate, (u - w) / length, 0.5 * (w + u))


@dataclass
class Change:
    """Adjoints of a :class:`Step` and of parameters, each (envs, bodies, …)."""

    acceleration: np.ndarray
    turning: np.ndarray
    spin: np.ndarray
    R: np.ndarray
    arm: np.ndarray
    mass: np.ndarray
    force: np.ndarray
    gravity: np.ndarray


class Felt:
    """Reads points (``owner`` (points,), their bodies) and joints in the step to a slot; ``branches`` (joints, bodies)
    is 1 for the bodies that hang on a joint."""

    def __init__(self, owner: np.ndarray, branches: np.ndarray) -> None:
        self.owner, self.branches = owner, branches

    def look(self, solver: RigidSolver, k: int, names: tuple[str, ...], arms: np.ndarray) -> State:
        """``names`` of FELT; ``arms`` (envs, points, dim) are the points from their bodies' centres of mass, in the
        axes of the bodies. Before the first step there is nothing to feel: all zero."""
        plan = solver.plan
        shape, turn = (plan.envs, len(self.owner), plan.dim), 1 if plan.dim == 2 else 3
        freedoms = plan.topology.joint_freedoms
        if k == 0:
            sizes = {"alpha": (*shape[:2], turn), "effort": (plan.envs, freedoms)}
            sizes["reaction"] = (plan.envs, len(self.branches), plan.dim)
            return {name: np.zeros(sizes.get(name, shape)) for name in names}
        step = step_to(solver, k)
        found: State = {"alpha": step.turning[:, self.owner]}
        if "a" in names or "f" in names:
            found["a"], R = self._acceleration(step, arms, plan.dim)
            found["f"] = np.einsum("epji,epj->epi", R, found["a"] - self._gravity(solver))
        if "push" in names or "reaction" in names:
            push = self._push(solver, step)
            found["push"] = push[:, self.owner]
            found["reaction"] = np.einsum("jb,ebd->ejd", self.branches, self._pulled(solver, step) - push)
        if "effort" in names and not freedoms:
            found["effort"] = np.zeros((plan.envs, 0))
        elif "effort" in names:
            solver.strain(k - 1)
            effort = np.array(solver.store.view("rate_out"), np.float64)
            found["effort"] = effort.reshape(plan.envs, -1)[:, :freedoms]
        return {name: found[name] for name in names}

    def add_adjoint(self, solver: RigidSolver, k: int, bars: State, arms: np.ndarray, late: bool) -> np.ndarray:
        """Add to the adjoint of slot ``k`` where ``late``, else to that of slot ``k - 1`` and of parameters. Returns
        the adjoint of ``arms``."""
        plan, store = solver.plan, solver.store
        step = step_to(solver, k)
        change = self._adjoint(solver, step, bars, arms)
        sign = 1.0 if late else -1.0
        length_bar = -(change.acceleration * step.acceleration).sum(axis=(1, 2))
        length_bar -= (change.turning * step.turning).sum(axis=(1, 2))
        length_bar /= step.length[:, 0, 0]
        self._add(solver, "d_velocity", sign * change.acceleration / step.length)
        self._add(solver, "d_spin", sign * change.turning / step.length + 0.5 * change.spin)
        self._add(solver, "d_kick", -0.5 * sign * length_bar)
        if not late:
            rows = plan.envs * plan.bodies
            q_bar = matrices_vjp(step.rotation.reshape(rows, -1), change.R.reshape(rows, plan.dim, plan.dim), plan.dim)
            self._add(solver, "d_rotation", q_bar)
            self._add(solver, "d_dt", length_bar)
            for name in ("mass", "gravity"):
                self._add(solver, f"d_{name}", getattr(change, name))
            target = np.array(store.view("d_force"))
            target[0, solver.frame_of(k - 1)] += change.force.reshape(rows, -1)
            store.write("d_force", target)
        if plan.jointed:
            push_bar = self._reaction_bar(plan.envs, bars, plan.dim) * -1.0
            if "push" in bars:
                push_bar += self._gathered(bars["push"], plan.bodies)
            if push_bar.any():
                solver.press_adjoint(k - 1, push_bar, late)
                self._lent_adjoint(solver, step, push_bar, late)
        if "effort" in bars and bars["effort"].any():
            solver.strain_adjoint(k - 1, bars["effort"], late)
        return change.arm

    def _add(self, solver: RigidSolver, name: str, bar: np.ndarray) -> None:
        target = solver.store.view(name)
        solver.store.write(name, target + bar.reshape(target.shape).astype(target.dtype))

    def _gathered(self, of_points: np.ndarray, bodies: int) -> np.ndarray:
        """Sums over each body's points: (envs, bodies, …) from (envs, points, …)."""
        out = np.zeros((of_points.shape[0], bodies, *of_points.shape[2:]))
        for p, b in enumerate(self.owner):
            out[:, b] += of_points[:, p]
        return out

    # ---- accelerations ----

    def _gravity(self, solver: RigidSolver) -> np.ndarray:
        """(envs, 1, dim)."""
        return np.asarray(solver.store.view("gravity"), np.float64)[:, None]

    def _turned(self, step: Step, arms: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of points: R, arms in world axes, and the matrices of angular acceleration and mean velocity."""
        R = step.R[:, self.owner]

        def crossing(each: np.ndarray) -> np.ndarray:
            rows = each[:, self.owner].reshape(-1, each.shape[2])
            return spin_matrices(rows, dim).reshape(*arms.shape[:2], dim, dim)

        return R, np.einsum("epij,epj->epi", R, arms), crossing(step.turning), crossing(step.spin)

    def _acceleration(self, step: Step, arms: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
        """(envs, points, dim) accelerations, and rotations."""
        R, arm, A, W = self._turned(step, arms, dim)
        swung = np.einsum("epij,epj->epi", W, np.einsum("epij,epj->epi", W, arm))
        return step.acceleration[:, self.owner] + np.einsum("epij,epj->epi", A, arm) + swung, R

    def _adjoint(self, solver: RigidSolver, step: Step, bars: State, arms: np.ndarray) -> Change:
        plan = solver.plan
        dim, count = plan.dim, arms.shape[:2]
        zero = np.zeros(arms.shape)
        a_bar, f_bar = bars.get("a", zero).copy(), bars.get("f", zero)
        R, arm, A, W = self._turned(step, arms, dim)
        a, _R = self._acceleration(step, arms, dim)
        # specific force
        turned = np.einsum("epij,epj->epi", R, f_bar)
        a_bar += turned
        R_bar = (a - self._gravity(solver))[..., :, None] * f_bar[..., None, :]
        gravity_bar = -turned.sum(axis=1)
        # acceleration of points
        swung = np.einsum("epij,epj->epi", W, arm)
        back = np.einsum("epji,epj->epi", W, a_bar)
        A_bar = a_bar[..., :, None] * arm[..., None, :]
        W_bar = a_bar[..., :, None] * swung[..., None, :] + back[..., :, None] * arm[..., None, :]
        arm_bar = np.einsum("epji,epj->epi", A, a_bar) + np.einsum("epji,epj->epi", W, back)
        R_bar += arm_bar[..., :, None] * arms[..., None, :]

        def uncrossed(bar: np.ndarray) -> np.ndarray:
            rows = spin_matrices_vjp(bar.reshape(-1, dim, dim), dim)
            return rows.reshape(*count, -1)

        turning_bar = uncrossed(A_bar)
        if "alpha" in bars:
            turning_bar = turning_bar + bars["alpha"]
        own = [
            self._gathered(bar, plan.bodies)
            for bar in (a_bar, turning_bar, uncrossed(W_bar), R_bar, bars.get("push", zero))
        ]
        pulled_bar = own[4] if not plan.jointed else self._reaction_bar(plan.envs, bars, dim)
        mass, excess = self._masses(solver), step.acceleration - self._gravity(solver)
        own[0] += mass[..., None] * pulled_bar
        mass_bar, force_bar = (pulled_bar * excess).sum(axis=2), -pulled_bar
        gravity_bar -= (mass[..., None] * pulled_bar).sum(axis=1)
        back_arm = np.einsum("epji,epj->epi", R, arm_bar)
        return Change(own[0], own[1], own[2], own[3], back_arm, mass_bar, force_bar, gravity_bar)

    # ---- contact forces ----

    def _masses(self, solver: RigidSolver) -> np.ndarray:
        return np.asarray(solver.store.view("mass"), np.float64).reshape(solver.plan.envs, -1)

    def _pulled(self, solver: RigidSolver, step: Step) -> np.ndarray:
        """(envs, bodies, dim) ``m (a - g) - F``: what contacts and joints must have given, N."""
        applied = np.asarray(solver.store.view("force")[solver.frame_of(step.k - 1)], np.float64)
        excess = step.acceleration - self._gravity(solver)
        return self._masses(solver)[..., None] * excess - applied.reshape(excess.shape)

    def _reaction_bar(self, envs: int, bars: State, dim: int) -> np.ndarray:
        """Adjoint of what each body was pulled by, from that of the reactions of joints."""
        zero = np.zeros((envs, *self.branches.shape[:1], dim))
        return np.einsum("jb,ejd->ebd", self.branches, bars.get("reaction", zero))

    def _push(self, solver: RigidSolver, step: Step) -> np.ndarray:
        """(envs, bodies, dim) sum of the contact forces on each body, N."""
        plan = solver.plan
        if not plan.jointed:
            return self._pulled(solver, step)
        found = solver.contacts(step.k)
        out = self._lent(solver, step)
        for side, sign in ((0, 1.0), (1, -1.0)):
            moves = found.body[:, side] >= 0
            np.add.at(out, (found.env[moves], found.body[moves, side]), sign * found.force[moves])
        return out

    def _lent(self, solver: RigidSolver, step: Step) -> np.ndarray:
        """(envs, bodies, dim) mean force of particles on each body, N."""
        lent = np.asarray(solver.store.view("lent")[step.k], np.float64)
        return lent.reshape(solver.plan.envs, solver.plan.bodies, -1) / step.length

    def _lent_adjoint(self, solver: RigidSolver, step: Step, bar: np.ndarray, late: bool) -> None:
        """Where ``late`` it is left for the sweep through the step, which particles are in, and taken away after."""
        length_bar = -(bar * self._lent(solver, step)).sum(axis=(1, 2)) / step.length[:, 0, 0]
        self._add(solver, "d_kick", (-0.5 if late else 0.5) * length_bar)
        given = np.zeros(solver.store.view("lent_bar").shape)
        if late:
            given[:, : solver.plan.dim] = (bar / step.length).reshape(len(given), -1)
        else:
            self._add(solver, "d_dt", length_bar)
        solver.store.write("lent_bar", given)
