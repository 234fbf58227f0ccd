"""Actuators: what an activation does to the particles or springs of a region, or to a joint, with hand-written
derivatives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from taichi_sim.core.given import Values, complete
from taichi_sim.core.registry import Parameter, Registry


@dataclass
class ActiveLoad:
    """Load on a region in every frame.

    ``stress``: active second Piola-Kirchhoff stress S_a in Pa, shape (frames, dim, dim); F S_a Fᵀ is added to the
    Kirchhoff stress. ``acceleration``: body acceleration in m/s², shape (frames, dim).
    """

    stress: np.ndarray
    acceleration: np.ndarray

    @classmethod
    def zeros(cls, frames: int, dim: int) -> "ActiveLoad":
        """No load."""
        return cls(np.zeros((frames, dim, dim)), np.zeros((frames, dim)))


@dataclass
class JointLoad:
    """Load on a joint: ``force`` (frames,) N m or N in every frame, and a drive.

    The drive gives ``stiffness · (target − coordinate) + damping · (rate − velocity)``, at most ``limit`` in size, with
    ``target`` and ``rate`` (frames,); it is there where ``stiffness`` or ``damping`` is not 0.
    """

    force: np.ndarray
    target: np.ndarray
    rate: np.ndarray
    stiffness: float | np.ndarray = 0.0
    damping: float | np.ndarray = 0.0
    limit: float | np.ndarray = np.inf

    @classmethod
    def zeros(cls, frames: int) -> "JointLoad":
        """No load, and no drive."""
        return cls(np.zeros(frames), np.zeros(frames), np.zeros(frames))


@dataclass
class SpringLoad:
    """Load on springs: rest lengths become ``1 + strain`` times as long, ``strain`` (frames,), in every frame."""

    strain: np.ndarray


@dataclass
class ChamberLoad:
    """Load of a closed cavity: ``pressure`` (frames,) Pa above ambient, and ``air`` (frames,) J: m R T of what is added
    to the air of pressure ``ambient`` (Pa) that fills it at the start."""

    pressure: np.ndarray
    air: np.ndarray
    ambient: float | np.ndarray = 0.0


@dataclass
class TendonLoad:
    """Load of a cable: ``tension`` (frames,) N, and ``shortening`` (frames,) m of a cable with ``stiffness`` (N/m) that
    is ``slack`` (m) longer than its way at the start; ``friction`` where it turns."""

    tension: np.ndarray
    shortening: np.ndarray
    stiffness: float | np.ndarray = 0.0
    slack: float | np.ndarray = 0.0
    friction: float | np.ndarray = 0.0


@dataclass(frozen=True)
class ActuatorKind:
    """One kind of actuator.

    ``load(params, u)`` gives an :class:`ActiveLoad` where it ``drives`` a ``"body"``, a :class:`JointLoad` where a
    ``"joint"``, a :class:`SpringLoad` where ``"springs"``, a :class:`ChamberLoad` where a ``"chamber"``, a
    :class:`TendonLoad` where a ``"tendon"``; ``tables`` are those of the scene it may drive. It and
    ``load_vjp(params, u, bar) -> (gradients by name, u_bar)`` get every declared parameter (reals as float64 arrays)
    and the activation ``u`` of shape (frames,). ``stiffening(params)`` is the stiffness in Pa that |u| = 1 adds to
    matter. ``example(dim, rng)`` gives parameters for the conformance tests.
    """

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    load: Callable[[Values, np.ndarray], Any]
    load_vjp: Callable[[Values, np.ndarray, Any], tuple[dict[str, np.ndarray], np.ndarray]]
    stiffening: Callable[[Values], float]
    example: Callable[[int, np.random.Generator], Values]
    drives: str = "body"
    tables: tuple[str, ...] = ("bodies",)

    def command(self, params: Mapping[str, Any], u: np.ndarray) -> Any:
        """Load of the activation ``u``, shape (frames,). Raises ``ValueError`` for parameters that do not fit."""
        return self.load(self._complete(params), self._activation(u))

    def command_vjp(
        self, params: Mapping[str, Any], u: np.ndarray, bar: Any
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Gradient of the sum of ``bar``'s entries times those of the load.

        Returns it for each parameter, in the parameter's shape, and for ``u``, shape (frames,).
        """
        return self.load_vjp(self._complete(params), self._activation(u), bar)

    def stiffness(self, params: Mapping[str, Any]) -> float:
        """What the actuator adds to the material's stiffness at |u| = 1, Pa >= 0; it enters the step limit."""
        return self.stiffening(self._complete(params))

    def _complete(self, params: Mapping[str, Any]) -> Values:
        return complete(f"actuator {self.name!r}", self.parameters, params)

    def _activation(self, u: np.ndarray) -> np.ndarray:
        u = np.asarray(u, np.float64)
        if u.ndim != 1 or not np.isfinite(u).all():
            raise ValueError(f"actuator {self.name!r}: activation must be finite, of shape (frames,), got {u.shape}")
        return u


actuators: Registry[ActuatorKind] = Registry("actuator", "taichi_sim.actuation.kinds")
