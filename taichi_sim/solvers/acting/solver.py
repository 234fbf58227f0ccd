"""Chambers and tendons at work on the particles of one solver."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from taichi_sim.core.launch import Launch
from taichi_sim.core.store import Store
from taichi_sim.runtime import Runtime, ti
from taichi_sim.solvers.acting import kernels
from taichi_sim.solvers.acting.arrays import ARRAYS, ActingPlan, domain_sizes


class _Joined:
    """Arrays of the host, as ``host_…`` and ``d_host_…``, and of the store under one roof."""

    def __init__(self, host: Mapping[str, ti.Ndarray], store: Store) -> None:
        self.runtime, self.real = store.runtime, store.real
        self.arrays = dict(store.arrays)
        for name, array in host.items():
            self.arrays[f"d_host_{name[2:]}" if name.startswith("d_") else f"host_{name}"] = array

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def __getitem__(self, name: str) -> ti.Ndarray:
        return self.arrays[name]


class Acting:
    """Parameters and launches of an :class:`ActingPlan`; all its numbers are double ones.

    ``host`` are the arrays of the solver it acts on: ``x`` and ``v`` (or ``impulse``) and their adjoints. ``frames``
    are those of the rollout.
    """

    def __init__(
        self, runtime: Runtime, plan: ActingPlan, host: Mapping[str, ti.Ndarray], frames: int, plain: bool = False
    ) -> None:
        self.plan, self._plain = plan, plain
        self.store = Store(runtime, ARRAYS, domain_sizes(plan), plan.dim, 1, frames, 1, double=True)
        self._joined: Any = _Joined({name: host[name] for name in host}, self.store)
        self._bound: dict[str, Launch] = {}
        p = plan
        self.store.zero(self.store.arrays)
        if len(p.links):
            self.store.write("link", p.links[:, 1].astype(np.int32))
        self.store.write("head", p.heads)
        if len(p.faces):
            self.store.write("face", np.pad(p.faces, ((0, 0), (0, 3 - p.dim))).astype(np.int32))
        self.store.write("unit", p.units.astype(np.int32))
        self.store.write("counts", np.array([p.anchors, len(p.links), len(p.bound), len(p.units)], np.int32))
        self.sort(np.tile(np.arange(p.particles, dtype=np.int32), p.envs))

    def sort(self, order: np.ndarray) -> None:
        """The host's particles are in ``order`` (envs · particles,): that of the scene, within an environment."""
        p = self.plan
        if not len(p.bound):
            return
        where = np.empty((p.envs, p.particles), np.int32)
        places = np.arange(p.envs * p.particles, dtype=np.int32).reshape(p.envs, -1)
        np.put_along_axis(where, np.asarray(order).reshape(p.envs, -1), places, axis=1)
        self.store.write("place", where[:, p.bound].reshape(-1))

    def _launch(self, name: str) -> Launch:
        if name not in self._bound:
            op = getattr(kernels, name.removesuffix("_adjoint"))
            bind = op.bind_adjoint if name.endswith("_adjoint") else op.bind
            self._bound[name] = bind(self._joined, self._plain, dim=self.plan.dim)
        return self._bound[name]

    # ---- on particles that have velocities ----

    def kick(self, k: int, frame: int) -> None:
        """Add the forces of a substep to the velocities of slot ``k``; :meth:`unkick` takes them back."""
        self._launch("pull")(self.plan.envs, k, frame)
        self._launch("kick")(self.plan.envs, k, 0)

    def unkick(self, k: int) -> None:
        """Velocities of slot ``k`` as they were before :meth:`kick`, to the bit."""
        self._launch("kick")(self.plan.envs, k, 1)

    def kick_adjoint(self, k: int, frame: int) -> None:
        """Adjoint of :meth:`kick`, which was called for this slot last: adds to those of positions."""
        self._launch("kick_adjoint")(self.plan.envs)
        self._launch("pull_adjoint")(self.plan.envs, k, frame)

    def given(self) -> tuple[np.ndarray, np.ndarray]:
        """Who was acted on in the last substep, places in the host's arrays, and the impulses, (n, dim) N s."""
        view, p = self.store.view, self.plan
        length = np.repeat(np.asarray(view("dt"), np.float64), len(p.bound))
        return np.array(view("place")), length[:, None] * np.asarray(view("force"), np.float64)

    # ---- on particles that take impulses ----

    def give(self, k: int, frame: int) -> None:
        """Write the impulses of the step of slot ``k``."""
        self._launch("pull")(self.plan.envs, k, frame)
        self._launch("give")(self.plan.envs, k)

    def give_adjoint(self, k: int, frame: int) -> None:
        """Adjoint of :meth:`give`."""
        self._launch("pull")(self.plan.envs, k, frame)
        self._launch("give_adjoint")(self.plan.envs, k)
        self._launch("pull_adjoint")(self.plan.envs, k, frame)

    # ---- end ----

    def clear_adjoints(self) -> None:
        """Set every adjoint to zero, before a backward sweep."""
        self.store.zero(name for name in self.store.arrays if name.startswith("d_"))

    def close(self) -> None:
        """Free its memory."""
        self._bound.clear()
        self.store.close()
