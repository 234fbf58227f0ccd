"""All rigid bodies of a scene as one family."""

from dataclasses import dataclass, field

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.contact_table import contact_table
from taichi_sim.compile.family import Family, State, add
from taichi_sim.compile.rigid.felt import Felt
from taichi_sim.compile.rigid.joints import TURN, Joints
from taichi_sim.compile.rigid.matter import RigidMatter
from taichi_sim.compile.rigid.rays import Rays
from taichi_sim.compile.rigid.shapes import Shapes
from taichi_sim.compile.rigid.start import Motion, RigidStart
from taichi_sim.core.errors import RolloutError
from taichi_sim.runtime import Runtime
from taichi_sim.scene.rigid import RigidGeometry
from taichi_sim.solvers.rigid.arrays import RigidPlan, footprint
from taichi_sim.solvers.rigid.attitude import lift, lift_vjp, matrices, matrices_vjp, spin_matrices, spin_matrices_vjp
from taichi_sim.solvers.rigid.overlap import find_overlaps
from taichi_sim.solvers.rigid.solver import RigidSolver, RigidTrouble
from taichi_sim.solvers.rigid.topology import BALL
from taichi_sim.timeline.schedule import Costs

#: Depth of an overlap at the start, of the size of the smaller body (root of its volume), that is refused.
DEEP = 0.1


@dataclass
class RigidFamily(Family):
    """Rigid bodies: a point for the centre of mass of each, followed by one for each of its markers.

    ``owner`` (points,) is the body of each point, ``arm`` (points, dim) where it is in the shape, from the pivot, at
    scale 1 (of centres of mass nothing is read).
    """

    points: slice
    bodies: list[RigidGeometry]
    plan: RigidPlan
    bindings: list[Binding]
    start: RigidStart
    matter: RigidMatter
    shapes: Shapes
    joints: Joints
    rays: Rays
    owner: np.ndarray
    arm: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    _felt: Felt = field(init=False)
    _values: Values = field(default_factory=dict, init=False)
    _direct: Values = field(default_factory=dict, init=False)
    _clear: bytes = field(default=b"", init=False)

    def __post_init__(self) -> None:
        self._felt = Felt(self.owner, self.joints.branches())

    @property
    def centres(self) -> np.ndarray:
        """(bodies,) the point that is each body's centre of mass, counted from the family's first."""
        return np.flatnonzero(np.diff(self.owner, prepend=-1))

    def is_held(self, name: str) -> bool:
        """Whether a body does not move."""
        return any(h and body.name == name for h, body in zip(self.plan.held, self.bodies, strict=False))

    def costs(self, precision: str, frames: int) -> Costs:
        fixed = footprint(self.plan, frames, 0)
        stored = footprint(self.plan, frames, 1) - fixed
        return Costs(fixed, stored, stored)

    def make(self, runtime: Runtime, substeps: int, frames: int, segment: int, plain: bool) -> RigidSolver:
        return RigidSolver(runtime, self.plan, substeps, frames, segment + 1, plain)

    def begin(self, values: Values) -> State:
        self.joints.refuse(values)
        return self._points(values, self.joints.forward(values, self.start.motion(values)))

    def check(self, values: Values, start: State) -> None:
        where = start["x"][:, self.centres]
        outside = ((where < self.lower) | (where > self.upper)).any(axis=2)
        if outside.any():
            env, b = (int(i) for i in np.argwhere(outside)[0])
            place = ", ".join(f"{c:.4g}" for c in where[env, b])
            raise RolloutError(f"rigid body {self.bodies[b].name!r} starts outside the domain, at ({place}) m")
        motion = self.joints.forward(values, self.start.motion(values))
        speed = np.linalg.norm(motion["spin"], axis=2)
        env, b = (int(i) for i in np.unravel_index(int(np.argmax(speed)), speed.shape))
        if speed[env, b] * values["dt"][env] > TURN:
            raise RolloutError(
                f"rigid body {self.bodies[b].name!r} starts turning at {speed[env, b]:.4g} rad/s, more than "
                f"{TURN:g} rad a step of {values['dt'][env]:.3g} s; set a smaller solver.dt or let it turn slower"
            )
        self._refuse_overlaps(values, motion)

    def _refuse_overlaps(self, values: Values, motion: Motion) -> None:
        """Raise ``RolloutError`` for the deepest of overlaps so deep that bodies would be thrown apart."""
        given = self.shapes.arrays(values, self.plan.dim) | {"centre": self.shapes.centres(values)}
        given |= {name: motion[name] for name in ("position", "rotation")}
        key = b"".join(a.tobytes() for a in given.values())
        if key == self._clear:
            return
        arrays = {name: a.reshape(-1, *a.shape[2:]) for name, a in given.items()}
        lattice, sample = self.shapes.found.layout.lattices()
        none = {"grid_scale": np.zeros(0), "grid_place": np.zeros((0, self.plan.dim))}
        sizes = np.stack(
            [values[f"rigid.{b.name}.scale"] * b.volume ** (1 / self.plan.dim) for b in self.bodies], axis=1
        )
        for found in find_overlaps(self.plan, none | arrays | {"lattice": lattice, "distances": sample}, 0.0):
            size = min(sizes[found.env, b] for b in (found.first, found.second) if b >= 0)
            if found.depth > DEEP * size:
                names = [self.shapes.name_of(shape) for shape in found.shapes]
                raise RolloutError(
                    f"{names[0]} starts {found.depth:.3g} m deep in {names[1]} and would be thrown out of it; move "
                    "them apart, or let them pass through each other by no_contact"
                )
        self._clear = key

    def masses(self, values: Values) -> np.ndarray:
        return self.matter.masses(values)[:, self.owner]

    def inertias(self, values: Values) -> np.ndarray:
        moments = self.matter.moments(values)
        out = np.zeros((self.plan.envs, len(self.owner), 3, 3))
        out[:, self.centres] = lift(moments.reshape(-1, moments.shape[2])).reshape(*moments.shape[:2], 3, 3)
        return out

    def first(self, values: Values, start: State) -> dict[str, np.ndarray]:
        rows = self.plan.envs * self.plan.bodies
        motion = self.joints.forward(values, self.start.motion(values))
        state = {name: value.reshape(rows, -1) for name, value in motion.items()}
        state |= {"kick": np.zeros(self.plan.envs), "touching": np.zeros(rows)}
        if self.plan.topology.joint_freedoms:
            state |= {name: value.reshape(-1) for name, value in self.joints.state(values).items()}
        return state

    def apply(self, values: Values, solver: RigidSolver) -> None:
        for binding in self.bindings:
            binding.apply(values, solver)
        self._values = values  # where markers are is read from these until the next run

    def look(self, solver: RigidSolver, k: int, names: tuple[str, ...]) -> State:
        found = self._points(self._values, self._motion(solver, k, bool({"v", "C"} & set(names))))
        if "q" in names:
            found |= self._along(solver, k)
        return {name: found[name] for name in names}

    def _along(self, solver: RigidSolver, k: int) -> State:
        """``q`` and ``rate`` (envs, freedoms of joints) of slot ``k``; q of a ball is not a number."""
        envs, count = self.plan.envs, self.plan.topology.joint_freedoms
        if not count:
            return {"q": np.zeros((envs, 0)), "rate": np.zeros((envs, 0))}
        coordinate = np.asarray(solver.store.view("coordinate")[k], np.float64).reshape(envs, -1)
        q = np.full((envs, count), np.nan)
        for link in self.joints.tree:
            if link.kind != BALL:
                q[:, link.freedoms] = coordinate[:, link.coordinates]
        rate = solver.synchronous_rate(k).astype(np.float64).reshape(envs, -1)[:, :count]
        return {"q": q, "rate": rate}

    def feel(self, solver: RigidSolver, k: int, names: tuple[str, ...]) -> State:
        found: State = {}
        if "range" in names:
            found["range"] = self.rays.look(self._values, self.look(solver, k, ("x", "F")))
        names = tuple(name for name in names if name != "range")
        return found | (self._felt.look(solver, k, names, self._arms(self._values)) if names else {})

    def enter_felt(self, solver: RigidSolver, k: int, bars: State, late: bool) -> None:
        bars = dict(bars)
        along = bars.pop("range", np.zeros(0))
        if late and along.any():
            seen, direct = self.rays.vjp(self._values, self.look(solver, k, ("x", "F")), along)
            add(self._direct, direct)
            self.enter(solver, k, seen)
        if not bars:
            return
        arm_bar = self._felt.add_adjoint(solver, k, bars, self._arms(self._values), late)
        if not late:
            arm_bar[:, self.centres] = 0.0
            add(self._direct, self._arms_vjp(self._values, arm_bar))

    def contacts(self, solver: RigidSolver, k: int) -> np.ndarray:
        """Contacts of the step to slot ``k`` as a table, bodies and what they touch by path."""
        found = solver.contacts(k)
        names = [f"rigid.{body.name}" for body in self.bodies]
        sides = []
        for first, surface in zip(found.body[:, 0], found.surface, strict=True):
            pair = self.shapes.found.pairs[surface]
            other = pair.b if first == pair.a else pair.a
            sides.append((names[first], self.shapes.walls[pair.wall].path if pair.b < 0 else names[other]))
        return contact_table(self.plan.dim, found.env, sides, found.point, found.normal, found.impulse, found.force,
                             found.gap)  # fmt: skip

    def _motion(self, solver: RigidSolver, k: int, moving: bool) -> Motion:
        shape = (self.plan.envs, self.plan.bodies, -1)
        found = {name: np.array(solver.store.view(name)[k]) for name in ("position", "rotation", "velocity", "spin")}
        if moving:
            found["velocity"], found["spin"] = solver.synchronous_velocity(k)
        return {name: value.astype(np.float64).reshape(shape) for name, value in found.items()}

    def _arms(self, values: Values) -> np.ndarray:
        """(envs, points, dim) points from the centre of mass of their body, in its axes."""
        scale = np.stack([values[f"rigid.{body.name}.scale"] for body in self.bodies], axis=1)[:, self.owner]
        out = scale[:, :, None] * self.arm - self.shapes.centres(values)[:, self.owner]
        out[:, self.centres] = 0.0
        return out

    def _points(self, values: Values, motion: Motion) -> State:
        dim, count = self.plan.dim, (self.plan.envs, len(self.owner))
        each = {name: value[:, self.owner].reshape(count[0] * count[1], -1) for name, value in motion.items()}
        R, C = matrices(each["rotation"], dim), spin_matrices(each["spin"], dim)
        arm = np.einsum("nij,nj->ni", R, self._arms(values).reshape(-1, dim))
        x, v = each["position"] + arm, each["velocity"] + np.einsum("nij,nj->ni", C, arm)
        found = {"x": x, "v": v, "C": C, "F": R}
        return {name: value.reshape(*count, *value.shape[1:]) for name, value in found.items()}

    def _points_vjp(self, values: Values, motion: Motion, bars: State) -> tuple[Motion, Values]:
        """Adjoint of :meth:`_points`: by the motion, and by what the markers' arms depend on."""
        envs, dim = self.plan.envs, self.plan.dim
        rows = envs * len(self.owner)
        each = {name: value[:, self.owner].reshape(rows, -1) for name, value in motion.items()}
        R, C = matrices(each["rotation"], dim), spin_matrices(each["spin"], dim)
        body_arm = self._arms(values).reshape(-1, dim)
        arm = np.einsum("nij,nj->ni", R, body_arm)
        zero = np.zeros((rows, dim))
        x_bar, v_bar = (bars[n].reshape(rows, dim) if n in bars else zero for n in ("x", "v"))
        C_bar, F_bar = (bars[n].reshape(rows, dim, dim) if n in bars else 0.0 for n in ("C", "F"))
        arm_bar = x_bar + np.einsum("nji,nj->ni", C, v_bar)
        C_bar = C_bar + v_bar[:, :, None] * arm[:, None, :]
        R_bar = F_bar + arm_bar[:, :, None] * body_arm[:, None, :]
        found = {
            "position": x_bar,
            "velocity": v_bar,
            "spin": spin_matrices_vjp(C_bar, dim),
            "rotation": matrices_vjp(each["rotation"], R_bar, dim),
        }
        out: Motion = {}
        for name, bar in found.items():
            out[name] = np.zeros_like(motion[name])
            self._gather(bar.reshape(envs, len(self.owner), -1), out[name])
        local = np.einsum("nji,nj->ni", R, arm_bar).reshape(envs, -1, dim)
        local[:, self.centres] = 0.0
        return out, self._arms_vjp(values, local)

    def _gather(self, of_points: np.ndarray, of_bodies: np.ndarray) -> None:
        """Add what belongs to points (envs, points, …) to their bodies' (envs, bodies, …)."""
        for p, b in enumerate(self.owner):
            of_bodies[:, b] += of_points[:, p]

    def _arms_vjp(self, values: Values, bar: np.ndarray) -> Values:
        out: Values = {}
        centres_bar = np.zeros((self.plan.envs, self.plan.bodies, self.plan.dim))
        self._gather(-bar, centres_bar)
        self.shapes.centres_vjp(values, centres_bar, out)
        along = np.einsum("epd,pd->ep", bar, self.arm)
        for b, body in enumerate(self.bodies):
            path = f"rigid.{body.name}.scale"
            out[path] = out.get(path, 0.0) + along[:, self.owner == b].sum(axis=1)
        return out

    def explain(self, solver: RigidSolver, trouble: Exception, values: Values) -> RolloutError:
        assert isinstance(trouble, RigidTrouble)
        return RolloutError(f"rigid bodies, {trouble} (t = {trouble.substep * float(values['dt'].max()):.4g} s)")

    def enter(self, solver: RigidSolver, k: int, bars: State) -> None:
        motion = self._motion(solver, k, moving=True)
        found, direct = self._points_vjp(self._values, motion, bars)
        add(self._direct, direct)
        rows = self.plan.envs * self.plan.bodies
        for name in ("position", "rotation"):
            target = solver.store.view(f"d_{name}")
            solver.store.write(f"d_{name}", target + found[name].reshape(rows, -1).astype(target.dtype))
        rate = bars.get("rate", np.zeros(0))
        if found["velocity"].any() or found["spin"].any() or rate.any():
            v_bar, w_bar = (found[name].reshape(rows, -1) for name in ("velocity", "spin"))
            solver.add_velocity_adjoint(k, v_bar, w_bar, rate.reshape(-1) if rate.size else None)
        if (q_bar := bars.get("q", np.zeros(0))).any():
            target = solver.store.view("d_coordinate").reshape(self.plan.envs, -1)
            for link in self.joints.tree:
                if link.kind != BALL:
                    target[:, link.coordinates] += q_bar[:, link.freedoms].astype(target.dtype)
            solver.store.write("d_coordinate", target.reshape(-1))

    def forget(self) -> None:
        self._direct = {}

    def pullback(self, values: Values, solver: RigidSolver) -> Values:
        if self.plan.jointed:  # what was added to poses in the first slot belongs to coordinates
            solver.backward(0, 0)
        total: Values = dict(self._direct)
        for binding in self.bindings:
            add(total, binding.pullback(values, solver))
        return total

    def pullback_mass(self, values: Values, mass: np.ndarray, inertia: np.ndarray | None) -> Values:
        total: Values = {}
        if mass.any() or (inertia is not None and inertia.any()):
            mass_bar = np.zeros((self.plan.envs, self.plan.bodies))
            self._gather(mass, mass_bar)
            each = inertia[:, self.centres] if inertia is not None else np.zeros((*mass_bar.shape, 3, 3))
            count = len(self.bodies[0].moments)
            moments_bar = lift_vjp(each.reshape(-1, 3, 3), count).reshape(*mass_bar.shape, count)
            add(total, self.matter.vjp(values, mass_bar, moments_bar))
        return total
