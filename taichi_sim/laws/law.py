"""What a constitutive law is.

A law is one file in this package that adds one :class:`Law` to :data:`laws`. Its functions run per particle inside
the solver's kernels, so they are plain ``ti.func``: generic over the dimension (``F.n``), both precisions, no captured
numbers. The user's parameters become at most :data:`COEFFICIENTS` numbers per particle on the host
(``coefficients``), with the reverse mode beside it (``coefficients_vjp``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter, Registry
from taichi_sim.runtime import ti

__all__ = ["COEFFICIENTS", "Law", "Params", "keep", "keep_adjoint", "kernel_functions", "laws", "no_diffusion"]

#: Length of the coefficient vector every particle carries; a law uses the first ``n_coefficients`` of it.
COEFFICIENTS = 6

#: User parameters by name, arrays of one common shape ``S``.
Params = Mapping[str, np.ndarray]


def no_diffusion(parameters: Mapping[str, float], density: float) -> float:
    """Kinematic diffusivity of a law without viscosity: 0 m²/s."""
    return 0.0


@dataclass(frozen=True)
class Law:
    """One constitutive law.

    Kernel functions (``dim`` is 2 for plane strain, or 3; ``c`` is a vector of 6 coefficients, ``x_bar`` the derivative
    of the result with respect to ``x``):

    ``stress(F, C, c) -> tau``
        Kirchhoff stress (dim, dim), Pa, of the deformation gradient ``F`` after the update and the velocity gradient
        ``C`` in 1/s. Finite for every finite ``F``, also an inverted one, and so is its derivative.
    ``stress_adjoint(F, C, c, tau_bar) -> F_bar, C_bar, c_bar``
        ``tau_bar`` need not be symmetric.
    ``project(F, c) -> F`` and ``project_adjoint(F, c, F_bar) -> F_bar, c_bar``
        What is stored of the trial ``F``: return map of a plastic law, volume ratio of a fluid, :func:`keep` otherwise.
    ``energy(F, c) -> J/m³``
        Stored energy per rest volume with ``tau = dPsi/dF Fᵀ`` for the elastic part of the stress.

    Host functions: ``coefficients(params) -> S + (n_coefficients,)`` and ``coefficients_vjp(params, c_bar)`` ->
    derivative by parameter name; ``wave_speed(params, density)`` at rest, m/s, and ``diffusivity(params, density)``,
    m²/s (kinematic viscosity; it limits the step of an explicit scheme). Matter whose volume ratio leaves
    ``volume_ratios`` is no state of the model but a run gone wrong, and is mentioned.
    """

    name: str
    doc: str
    source: str
    kind: str
    parameters: tuple[Parameter, ...]
    coefficients: Callable[[Params], np.ndarray]
    coefficients_vjp: Callable[[Params, np.ndarray], dict[str, np.ndarray]]
    n_coefficients: int
    stress: Callable[..., Any]
    stress_adjoint: Callable[..., Any]
    project: Callable[..., Any]
    project_adjoint: Callable[..., Any]
    energy: Callable[..., Any]
    wave_speed: Callable[[Mapping[str, float], float], float]
    diffusivity: Callable[[Mapping[str, float], float], float] = no_diffusion
    volume_ratios: tuple[float, float] = (0.1, 10.0)

    def __post_init__(self) -> None:
        if self.kind not in ("solid", "fluid", "granular"):
            raise ValueError(f"law {self.name!r}: kind must be 'solid', 'fluid' or 'granular', got {self.kind!r}")
        if not 1 <= self.n_coefficients <= COEFFICIENTS:
            raise ValueError(f"law {self.name!r}: n_coefficients must be 1 to {COEFFICIENTS}")


laws: Registry[Law] = Registry("law", "taichi_sim.laws")


def kernel_functions(law: Law) -> tuple[Any, ...]:
    """A law as kernels take it: stress, its adjoint, projection, its adjoint, number of coefficients."""
    return (law.stress, law.stress_adjoint, law.project, law.project_adjoint, law.n_coefficients)


@ti.func
def keep(F, c):
    """``project`` of a law that stores the trial deformation as it is."""
    return F


@ti.func
def keep_adjoint(F, c, F_bar):
    """Reverse mode of :func:`keep`."""
    return F_bar, ti.Vector([0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
