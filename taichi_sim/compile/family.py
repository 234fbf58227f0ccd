"""What every family of matter (continua, rigid bodies, …) is to a simulation.

A scene's state, whatever it is made of, is seen as *points*: each has a position ``x``, a velocity ``v``, an affine
velocity ``C`` and a deformation gradient ``F``. A rigid body is a point whose ``F`` is its rotation and whose ``C`` is
its spin; a particle of a continuum is one as it stands. Objectives, observables, recordings and gradients know nothing
else, so that they work for everything alike.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from taichi_sim.compile.binding import Values
from taichi_sim.core.errors import RolloutError
from taichi_sim.runtime import Runtime
from taichi_sim.timeline.schedule import Costs

#: x, v (envs, points, dim), C, F (envs, points, dim, dim), in the order of the scene; and where there are joints their
#: coordinates q and rates (envs, freedoms).
State = dict[str, np.ndarray]

#: What is felt in the step to a slot: of points acceleration ``a`` (envs, points, dim), m/s², specific force ``f`` in
#: body axes, m/s², contact force ``push``, N, angular acceleration ``alpha`` (envs, points, 1 or 3), rad/s²; of joints
#: what acts along them, ``effort`` (envs, freedoms), N m or N, and the force they pass on, ``reaction`` (envs, joints,
#: dim), N. And what rays meet: ``range`` (envs, rays), m.
FELT = ("a", "f", "push", "alpha", "effort", "reaction", "range")


@dataclass(frozen=True)
class Piece:
    """One named thing of a scene that objectives and observables may name.

    ``table`` is where it stands in the scene (``"bodies"``), ``points`` are those that make it up and ``regions`` those
    of its parts, indices over all points of the scene.
    """

    name: str
    table: str
    points: np.ndarray
    regions: dict[str, np.ndarray]


def add(total: Values, more: Values) -> None:
    """Add gradients by path."""
    for path, gradient in more.items():
        total[path] = total[path] + gradient if path in total else gradient


class Family(ABC):
    """One family of matter of a compiled scene; ``points`` is its share of all points."""

    points: slice

    # ---- sizes ----

    @abstractmethod
    def costs(self, precision: str, frames: int) -> Costs:
        """Bytes of its arrays and snapshots."""

    @property
    def every(self) -> int:
        """Segments of the schedule are multiples of this number of substeps."""
        return 1

    def longest(self) -> int | None:
        """Substeps of the longest segment its arrays can address, if there is a limit."""
        return None

    @abstractmethod
    def make(self, runtime: Runtime, substeps: int, frames: int, segment: int, plain: bool) -> Any:
        """Its solver, with memory for ``segment`` substeps."""

    # ---- forwards ----

    @abstractmethod
    def begin(self, values: Values) -> State:
        """Its points at time 0."""

    @abstractmethod
    def check(self, values: Values, start: State) -> None:
        """Raise :class:`RolloutError` for a start that cannot be."""

    @abstractmethod
    def masses(self, values: Values) -> np.ndarray:
        """(envs, points) kg."""

    def inertias(self, values: Values) -> np.ndarray | None:
        """(envs, points, 3, 3) kg m² in the axes that ``F`` turns; ``None`` where points have none of their own."""
        return None

    @abstractmethod
    def first(self, values: Values, start: State) -> dict[str, np.ndarray]:
        """The state the solver begins with, from :meth:`begin`."""

    @abstractmethod
    def apply(self, values: Values, solver: Any) -> None:
        """Put the values into the solver's arrays."""

    @abstractmethod
    def look(self, solver: Any, k: int, names: tuple[str, ...]) -> State:
        """What ``names`` (of x, v, C, F) are in slot ``k``."""

    def feel(self, solver: Any, k: int, names: tuple[str, ...]) -> State:
        """What ``names`` of FELT were in the step to slot ``k``; nothing where nothing can be felt."""
        return {}

    @abstractmethod
    def explain(self, solver: Any, trouble: Exception, values: Values) -> RolloutError:
        """What went wrong, with names."""

    # ---- backwards ----

    def forget(self) -> None:  # noqa: B027 (most have nothing to forget)
        """Begin a backward sweep."""

    @abstractmethod
    def enter(self, solver: Any, k: int, bars: State) -> None:
        """Add to the adjoint of slot ``k``."""

    def enter_felt(self, solver: Any, k: int, bars: State, late: bool) -> None:  # noqa: B027 (most feel nothing)
        """Adjoint of :meth:`feel`: added to that of slot ``k`` where ``late``, else to that of slot ``k - 1`` and of
        whatever else it depends on. Both are needed, in this order, with the last step swept between them."""

    @abstractmethod
    def pullback(self, values: Values, solver: Any) -> Values:
        """Gradient by path, (envs, …), of what the backward sweep left in the solver."""

    @abstractmethod
    def pullback_mass(self, values: Values, mass: np.ndarray, inertia: np.ndarray | None) -> Values:
        """Gradient by path of what depends on :meth:`masses` and :meth:`inertias` directly."""
