"""Motors: what actuators of joints command, as the solver's forces, targets and gains."""

import numpy as np

from taichi_sim.actuation.actuator import JointLoad
from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.drives import Actuators
from taichi_sim.compile.rigid.joints import NEVER, Link
from taichi_sim.solvers.rigid.solver import RigidSolver

#: Entries of a load, and the arrays of the solver they are for.
INPUTS = {"force": "joint_force", "target": "target", "rate": "target_rate"}
GAINS = {"stiffness": "drive_stiffness", "damping": "drive_damping", "limit": "drive_limit"}


class Motors(Binding):
    """Loads of joints. Forces of several motors of a joint add up; a servo a joint has alone.

    Raises ``ValueError`` for a second servo.
    """

    def __init__(self, actuators: Actuators, tree: list[Link], freedoms: int) -> None:
        self.actuators, self.freedoms, self.envs = actuators, freedoms, actuators.envs
        at = {link.name: link.freedoms.start for link in tree}
        self.mine = [
            (a, one, at[one.target]) for a, one in enumerate(actuators.actuators) if one.kind.drives == "joint"
        ]
        servos: dict[str, str] = {}
        for _, one, _ in self.mine:
            if one.kind.name == "motor":
                continue
            if one.target in servos:
                raise ValueError(f"actuators.{one.name}: joint {one.target!r} has a servo, {servos[one.target]!r}")
            servos[one.target] = one.name

    def _load(self, a: int, one, values: Values, e: int) -> JointLoad:
        return one.kind.command(one.parameters.at(values, e), self.actuators.activation[e, :, a])

    def apply(self, values: Values, solver: RigidSolver) -> None:
        if not self.freedoms:
            return
        frames = len(self.actuators.times)
        inputs = {name: np.zeros((frames, self.envs, self.freedoms)) for name in INPUTS}
        gains = {name: np.zeros((self.envs, self.freedoms)) for name in GAINS}
        gains["limit"][:] = NEVER
        for a, one, at in self.mine:
            for e in range(self.envs):
                load = self._load(a, one, values, e)
                for name, rows in inputs.items():
                    rows[:, e, at] += getattr(load, name)
                if one.kind.name != "motor":
                    for name, rows in gains.items():
                        rows[e, at] = min(float(getattr(load, name)), NEVER)
        for name, array in INPUTS.items():
            solver.store.write(array, inputs[name].reshape(frames, -1))
        for name, array in GAINS.items():
            solver.store.write(array, gains[name].reshape(-1))

    def pullback(self, values: Values, solver: RigidSolver) -> Values:
        out: Values = {}
        if not self.freedoms:
            return out
        frames, store = len(self.actuators.times), solver.store
        inputs = {name: store.reduced_adjoint(array).reshape(frames, self.envs, -1) for name, array in INPUTS.items()}
        gains = {name: store.reduced_adjoint(array).reshape(self.envs, -1) for name, array in GAINS.items()}
        for a, one, at in self.mine:
            for e in range(self.envs):
                along = {name: bar[:, e, at] for name, bar in inputs.items()}
                bar = JointLoad(**along, **{name: each[e, at] for name, each in gains.items()})
                u = self.actuators.activation[e, :, a]
                gradient, u_bar = one.kind.command_vjp(one.parameters.at(values, e), u, bar)
                one.parameters.collect(out, values, e, gradient)
                self.actuators.activation_bar[e, :, a] += u_bar
        return out
