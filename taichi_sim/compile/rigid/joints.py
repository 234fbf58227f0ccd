"""Joints of a scene: from places and directions of the scene to the axes of their bodies, and back."""

from dataclasses import dataclass, field

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.rigid.start import Motion, RigidStart
from taichi_sim.core.errors import RolloutError
from taichi_sim.scene.schema import Joint
from taichi_sim.solvers.rigid.attitude import (
    attitude,
    attitude_vjp,
    combine,
    combine_vjp,
    inverse,
    matrices,
    matrices_vjp,
    unturned,
)
from taichi_sim.solvers.rigid.kinematics import forward_kinematics
from taichi_sim.solvers.rigid.solver import RigidSolver
from taichi_sim.solvers.rigid.topology import BALL, FIXED, HINGE, KINDS, PRISMATIC, Topology

#: A limit that is never reached; infinity would give 0 times infinity.
NEVER = 1e20

#: Furthest a body may turn in its first step, rad: contact looks ahead along straight lines.
TURN = 1.0

#: Entries of a joint, and the arrays of the solver they are for.
ENTRIES = {
    "armature": "armature", "damping": "joint_damping", "stiffness": "joint_stiffness", "rest": "joint_rest",
    "lower": "joint_lower", "upper": "joint_upper", "limit_stiffness": "limit_stiffness",
    "limit_damping": "limit_damping", "friction": "joint_friction", "stiction_speed": "joint_stiction",
}  # fmt: skip

#: What a joint has that its table says nothing of.
DEFAULTS = {"lower": -NEVER, "upper": NEVER}


@dataclass(frozen=True)
class Link:
    """A joint of the tree, or a closure: its bodies (-1: the world) and its degrees of freedom among the joints'."""

    name: str
    table: Joint
    kind: int
    parent: int
    child: int
    freedoms: slice = field(default_factory=lambda: slice(0, 0))
    coordinates: slice = field(default_factory=lambda: slice(0, 0))

    @property
    def path(self) -> str:
        """Where it stands in the scene."""
        return f"joints.{self.name}"


def kind_of(joint: Joint, dim: int) -> int:
    """Kind as the solver numbers them; a ball is a hinge in 2-D."""
    return HINGE if joint.kind == "ball" and dim == 2 else KINDS[joint.kind]


def links(joints: dict[str, Joint], bodies: list[str], dim: int) -> tuple[list[Link], list[Link]]:
    """Joints of the tree and closures, without their degrees of freedom."""
    number = {name: b for b, name in enumerate(bodies)}
    tree, loops = [], []
    for name, table in joints.items():
        if table.kind == "free":
            continue
        parent = -1 if table.parent is None else number[table.parent]
        (loops if table.loop else tree).append(Link(name, table, kind_of(table, dim), parent, number[table.child]))
    return tree, loops


def numbered(tree: list[Link], topology: Topology) -> list[Link]:
    """The joints of the tree with their degrees of freedom and coordinates."""
    out = []
    for j, link in enumerate(tree):
        size, numbers = {FIXED: (0, 0), BALL: (3, 4)}.get(link.kind, (1, 1))
        first, at = topology.first_freedom[j], topology.first_coordinate[j]
        freedoms, coordinates = slice(first, first + size), slice(at, at + numbers)
        out.append(Link(link.name, link.table, link.kind, link.parent, link.child, freedoms, coordinates))
    return out


class Joints(Binding):
    """Fills what the solver knows of joints: anchors, axes and mounts in the axes of the bodies as they are placed,
    what acts along them, and closures."""

    def __init__(self, tree: list[Link], loops: list[Link], start: RigidStart, topology: Topology, envs: int) -> None:
        self.tree, self.loops, self.start, self.topology, self.envs = tree, loops, start, topology, envs
        self.dim = start.dim

    def branches(self) -> np.ndarray:
        """(joints of the tree, bodies): 1 for the bodies that hang on a joint, however far out."""
        above = {link.child: link.parent for link in self.tree}
        out = np.zeros((len(self.tree), len(self.start.bodies)))
        for j, link in enumerate(self.tree):
            for body in range(out.shape[1]):
                b = body
                while b >= 0 and b != link.child:
                    b = above.get(b, -1)
                out[j, body] = float(b == link.child)
        return out

    def refuse(self, values: Values) -> None:
        """Raise ``RolloutError`` for axes without a direction, limits that cross and joints that turn too far in a
        step, as may be set after the build."""
        for link in self.tree:
            if link.kind in (HINGE, BALL):
                rate = np.linalg.norm(values[f"{link.path}.velocity"].reshape(self.envs, -1), axis=1)
                env = int(np.argmax(rate * values["dt"]))
                if rate[env] * values["dt"][env] > TURN:
                    raise RolloutError(
                        f"{link.path} starts turning at {rate[env]:.4g} rad/s, more than {TURN:g} rad a step of "
                        f"{values['dt'][env]:.3g} s; set a smaller solver.dt or let it turn slower"
                    )
            axis = self._axis(link, values)
            if axis is not None and not axis.any(axis=1).all():
                raise RolloutError(f"{link.path}.axis must not be zero: it is a direction")
            lower, upper = (self._along(link, entry, values) for entry in ("lower", "upper"))
            if not (lower < upper).all():
                env = int(np.argwhere(~(lower < upper))[0][0])
                raise RolloutError(
                    f"{link.path}.lower = {lower[env].min():g} must be below {link.path}.upper = {upper[env].min():g}"
                )

    # ---- where they are ----

    def _poses(self, motion: Motion, body: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(envs, …) position, attitude and matrix of a body, or of the world."""
        if body < 0:
            q = np.tile(unturned(self.dim), (self.envs, 1))
            return np.zeros((self.envs, self.dim)), q, matrices(q, self.dim)
        q = motion["rotation"][:, body]
        return motion["position"][:, body], q, matrices(q, self.dim)

    def _axis(self, link: Link, values: Values) -> np.ndarray | None:
        """(envs, dim) direction as given, where the joint has one."""
        path = f"{link.path}.axis"
        return values[path] if path in values and (link.kind in (HINGE, PRISMATIC)) else None

    def _placed(self, link: Link, values: Values, motion: Motion) -> dict[str, np.ndarray]:
        """Anchor and unit axis in the axes of parent and child, and the child's attitude in the parent's."""
        out = {}
        unit = None
        if (axis := self._axis(link, values)) is not None:
            unit = axis / np.linalg.norm(axis, axis=1, keepdims=True)
        for side, body in (("parent", link.parent), ("child", link.child)):
            x, _, R = self._poses(motion, body)
            out[f"{side}_anchor"] = np.einsum("eji,ej->ei", R, values[f"{link.path}.anchor"] - x)
            if body >= 0:  # the axes of a body begin at its pivot
                out[f"{side}_anchor"] = out[f"{side}_anchor"] + self.start.shapes.centres(values)[:, body]
            if unit is not None:
                out[f"{side}_axis"] = np.einsum("eji,ej->ei", R, unit)
        (_, p, _), (_, q, _) = self._poses(motion, link.parent), self._poses(motion, link.child)
        out["mount"] = combine(inverse(p, self.dim), q, self.dim)
        return out

    def _placements(self, values: Values, motion: Motion) -> dict[str, np.ndarray]:
        """(envs, joints, …) the solver's arrays of where the joints of the tree are."""
        placed = [self._placed(link, values, motion) for link in self.tree]
        none = np.zeros((self.envs, self.dim))
        names = ("parent_anchor", "child_anchor", "mount")
        rows = {name: [one[name] for one in placed] for name in names}
        rows["joint_axis"] = [one.get("parent_axis", none) for one in placed]
        return {name: np.stack(each, axis=1) for name, each in rows.items() if each}

    def _placed_vjp(
        self, link: Link, values: Values, motion: Motion, bars: dict[str, np.ndarray], out: Values, total: Motion
    ) -> None:
        """Add to ``out`` by path and ``total`` by the bodies' motion."""
        anchor = values[f"{link.path}.anchor"]
        anchor_bar = np.zeros_like(anchor)
        axis = self._axis(link, values)
        unit, unit_bar = None, np.zeros_like(anchor)
        if axis is not None:
            unit = axis / np.linalg.norm(axis, axis=1, keepdims=True)
        for side, body in (("parent", link.parent), ("child", link.child)):
            x, q, R = self._poses(motion, body)
            bar = bars[f"{side}_anchor"]
            turned = np.einsum("eij,ej->ei", R, bar)
            anchor_bar += turned
            R_bar = (anchor - x)[:, :, None] * bar[:, None, :]
            if unit is not None and f"{side}_axis" in bars:
                along = bars[f"{side}_axis"]
                unit_bar += np.einsum("eij,ej->ei", R, along)
                R_bar = R_bar + unit[:, :, None] * along[:, None, :]
            if body >= 0:
                centres_bar = np.zeros((self.envs, len(self.start.bodies), self.dim))
                centres_bar[:, body] = bar
                self.start.shapes.centres_vjp(values, centres_bar, out)
                total["position"][:, body] -= turned
                total["rotation"][:, body] += matrices_vjp(q, R_bar, self.dim)
        (_, p, _), (_, q, _) = self._poses(motion, link.parent), self._poses(motion, link.child)
        p_bar, q_bar = combine_vjp(inverse(p, self.dim), q, bars["mount"], self.dim)
        if link.parent >= 0:
            total["rotation"][:, link.parent] += inverse(p_bar, self.dim)
        total["rotation"][:, link.child] += q_bar
        out[f"{link.path}.anchor"] = anchor_bar
        if axis is not None and unit is not None:
            length = np.linalg.norm(axis, axis=1, keepdims=True)
            along = np.einsum("ed,ed->e", unit, unit_bar)[:, None]
            out[f"{link.path}.axis"] = (unit_bar - along * unit) / length

    # ---- the state ----

    def state(self, values: Values) -> dict[str, np.ndarray]:
        """``coordinate`` (envs, coordinates) and ``rate`` (envs, freedoms of joints) at time 0."""
        coordinate = np.zeros((self.envs, self.topology.coordinates))
        rate = np.zeros((self.envs, self.topology.joint_freedoms))
        for link in self.tree:
            if link.kind == FIXED:
                continue
            given = values[f"{link.path}.position"].reshape(self.envs, -1)
            if link.kind == BALL:
                given = np.stack([attitude(row, 3) for row in given])
            coordinate[:, link.coordinates] = given
            rate[:, link.freedoms] = values[f"{link.path}.velocity"].reshape(self.envs, -1)
        return {"coordinate": coordinate, "rate": rate}

    def _state_vjp(self, values: Values, coordinate: np.ndarray, rate: np.ndarray, out: Values) -> None:
        for link in self.tree:
            if link.kind == FIXED:
                continue
            path, bar = f"{link.path}.position", coordinate[:, link.coordinates]
            if link.kind == BALL:
                pairs = zip(values[path], bar, strict=True)
                bar = np.stack([attitude_vjp(row, one, 3) for row, one in pairs])
            out[path] = bar.reshape(values[path].shape)
            path = f"{link.path}.velocity"
            out[path] = rate[:, link.freedoms].reshape(values[path].shape)

    def forward(self, values: Values, motion: Motion) -> Motion:
        """The state with links where their coordinates at time 0 put them (their velocities stay those given)."""
        if not self.tree:
            return motion
        arrays = self._placements(values, motion) | {"centre": self.start.shapes.centres(values)}
        coordinate = self.state(values)["coordinate"]
        found = forward_kinematics(self.dim, self.topology, arrays, coordinate, motion["position"], motion["rotation"])
        return {**motion, "position": found.position, "rotation": found.rotation}

    # ---- arrays ----

    def apply(self, values: Values, solver: RigidSolver) -> None:
        store, envs = solver.store, self.envs
        motion = self.start.motion(values)
        if self.tree:
            for array, rows in self._placements(values, motion).items():
                store.write(array, rows.reshape(-1, *rows.shape[2:]))
        if self.topology.joint_freedoms:
            for entry, array in ENTRIES.items():
                rows = np.zeros((envs, self.topology.joint_freedoms))
                for link in self.tree:
                    rows[:, link.freedoms] = self._along(link, entry, values)[:, None]
                store.write(array, rows.reshape(-1))
        if self.loops:
            placed = [self._placed(link, values, motion) for link in self.loops]
            self._write(solver, "closure_mount", [one["mount"] for one in placed])
            none = np.zeros((envs, self.dim))
            sides = [(one[f"{s}_anchor"], one.get(f"{s}_axis", none)) for one in placed for s in ("child", "parent")]
            self._write(solver, "closure_anchor", [anchor for anchor, _ in sides])
            self._write(solver, "closure_axis", [np.pad(axis, ((0, 0), (0, 3 - self.dim))) for _, axis in sides])
            for entry, array in (("loop_stiffness", "closure_stiffness"), ("loop_turning", "closure_turning")):
                self._write(solver, array, [values[f"{link.path}.{entry}"] for link in self.loops])

    def _write(self, solver: RigidSolver, array: str, rows: list[np.ndarray]) -> None:
        """``rows`` of one environment each (envs, …), one a joint."""
        stack = np.stack(rows, axis=1)
        solver.store.write(array, stack.reshape(-1, *stack.shape[2:]))

    def _along(self, link: Link, entry: str, values: Values) -> np.ndarray:
        """(envs,) value of an entry; what a joint has not is what does nothing."""
        path = f"{link.path}.{entry}"
        nothing = DEFAULTS.get(entry, 1.0 if entry in ("stiction_speed", "limit_stiffness") else 0.0)
        return values[path] if path in values else np.full(self.envs, nothing)

    def pullback(self, values: Values, solver: RigidSolver) -> Values:
        store, envs, out = solver.store, self.envs, {}
        motion = self.start.motion(values)
        total: Motion = {name: np.zeros_like(value) for name, value in motion.items()}

        def bars(array: str, count: int) -> np.ndarray:
            bar = store.reduced_adjoint(array)
            return bar.reshape(envs, count, *bar.shape[1:])

        if self.tree:
            found = {
                name: bars(name, len(self.tree)) for name in ("parent_anchor", "child_anchor", "mount", "joint_axis")
            }
            for j, link in enumerate(self.tree):
                mine = {"parent_axis" if name == "joint_axis" else name: bar[:, j] for name, bar in found.items()}
                self._placed_vjp(link, values, motion, mine, out, total)
        if self.topology.joint_freedoms:
            for entry, array in ENTRIES.items():
                bar = bars(array, self.topology.joint_freedoms)
                for link in self.tree:
                    path = f"{link.path}.{entry}"
                    if path in values and link.kind != FIXED:
                        out[path] = bar[:, link.freedoms].sum(axis=1)
            view = {name: np.asarray(store.view(f"d_{name}"), np.float64) for name in ("coordinate", "rate")}
            self._state_vjp(
                values,
                view["coordinate"].reshape(envs, -1)[:, : self.topology.coordinates],
                view["rate"].reshape(envs, -1)[:, : self.topology.joint_freedoms],
                out,
            )
        if self.loops:
            count = len(self.loops)
            mount = bars("closure_mount", count)
            anchors, axes = (bars(name, 2 * count) for name in ("closure_anchor", "closure_axis"))
            for j, link in enumerate(self.loops):
                mine = {"mount": mount[:, j]}
                for i, side in enumerate(("child", "parent")):
                    mine[f"{side}_anchor"] = anchors[:, 2 * j + i]
                    mine[f"{side}_axis"] = axes[:, 2 * j + i, : self.dim]
                self._placed_vjp(link, values, motion, mine, out, total)
            for entry, array in (("loop_stiffness", "closure_stiffness"), ("loop_turning", "closure_turning")):
                bar = bars(array, count)
                for j, link in enumerate(self.loops):
                    out[f"{link.path}.{entry}"] = bar[:, j]
        for path, gradient in self.start.vjp(values, total).items():
            out[path] = out.get(path, 0.0) + gradient
        return out
