# pyright: reportInvalidTypeForm=false
"""Laws evaluated at single material points from NumPy: stress-strain curves, tests, identification.

Every function takes a started runtime (:func:`taichi_sim.runtime.start`), deformation gradients ``F`` of shape
(n, dim, dim), velocity gradients ``C`` of the same shape in 1/s, and ``c`` of shape (n, k) from ``law.coefficients``.
"""

from typing import Any

import numpy as np

from taichi_sim import runtime
from taichi_sim.laws.law import COEFFICIENTS, Law
from taichi_sim.runtime import ti

__all__ = ["energy", "project", "project_vjp", "stress", "stress_vjp"]

_array = ti.types.ndarray(ndim=1)


@ti.kernel
def stress_kernel(law: ti.template(), F: _array, C: _array, c: _array, tau: _array):
    for i in F:
        tau[i] = law(F[i], C[i], c[i])


@ti.kernel
def stress_adjoint_kernel(
    law: ti.template(), F: _array, C: _array, c: _array, tau_bar: _array, F_bar: _array, C_bar: _array, c_bar: _array
):
    for i in F:
        F_bar[i], C_bar[i], c_bar[i] = law(F[i], C[i], c[i], tau_bar[i])


@ti.kernel
def project_kernel(law: ti.template(), F: _array, c: _array, result: _array):
    for i in F:
        result[i] = law(F[i], c[i])


@ti.kernel
def project_adjoint_kernel(law: ti.template(), F: _array, c: _array, result_bar: _array, F_bar: _array, c_bar: _array):
    for i in F:
        F_bar[i], c_bar[i] = law(F[i], c[i], result_bar[i])


@ti.kernel
def energy_kernel(law: ti.template(), F: _array, c: _array, psi: _array):
    for i in F:
        psi[i] = ti.Vector([law(F[i], c[i])])


class _Points:
    """Arrays of ``n`` points, freed on leaving."""

    def __init__(self, F: np.ndarray) -> None:
        self.n, self.dim = np.shape(F)[:2]
        self.runtime = runtime.current()
        self.arrays: list[Any] = []

    def __enter__(self) -> "_Points":
        return self

    def __exit__(self, *error: object) -> None:
        for array in self.arrays:
            runtime.free(array, self.runtime)
        self.arrays.clear()

    def _array(self, element: Any, shape: tuple[int, ...], values: np.ndarray | float | None) -> Any:
        array = runtime.ndarray(element, self.n)
        self.arrays.append(array)
        if values is not None:
            dtype = np.float64 if self.runtime.precision == "f64" else np.float32
            array.from_numpy(np.ascontiguousarray(np.broadcast_to(values, (self.n, *shape)), dtype=dtype))
        return array

    def matrix(self, values: np.ndarray | float | None = None) -> Any:
        shape = (self.dim, self.dim)
        return self._array(ti.types.matrix(*shape, self.runtime.real), shape, values)

    def vector(self, length: int, values: np.ndarray | None = None) -> Any:
        return self._array(ti.types.vector(length, self.runtime.real), (length,), values)

    def coefficients(self, c: np.ndarray | None = None) -> Any:
        """Coefficient vectors; ``c`` of shape (n, k) or (k,) is padded with zeros."""
        if c is not None:
            c = np.pad(c, [(0, 0)] * (np.ndim(c) - 1) + [(0, COEFFICIENTS - np.shape(c)[-1])])
        return self.vector(COEFFICIENTS, c)


def stress(law: Law, F: np.ndarray, c: np.ndarray, C: np.ndarray | float = 0.0) -> np.ndarray:
    """Kirchhoff stress (n, dim, dim), Pa."""
    with _Points(F) as points:
        tau = points.matrix()
        stress_kernel(law.stress, points.matrix(F), points.matrix(C), points.coefficients(c), tau)
        return tau.to_numpy()


def stress_vjp(
    law: Law, F: np.ndarray, c: np.ndarray, tau_bar: np.ndarray, C: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``F_bar, C_bar`` (n, dim, dim) and ``c_bar`` (n, 6) of ``sum(tau_bar * tau)``."""
    with _Points(F) as points:
        inputs = points.matrix(F), points.matrix(C), points.coefficients(c), points.matrix(tau_bar)
        bars = points.matrix(), points.matrix(), points.coefficients()
        stress_adjoint_kernel(law.stress_adjoint, *inputs, *bars)
        F_bar, C_bar, c_bar = (bar.to_numpy() for bar in bars)
        return F_bar, C_bar, c_bar


def project(law: Law, F: np.ndarray, c: np.ndarray) -> np.ndarray:
    """What the law stores of the trial ``F``, (n, dim, dim)."""
    with _Points(F) as points:
        result = points.matrix()
        project_kernel(law.project, points.matrix(F), points.coefficients(c), result)
        return result.to_numpy()


def project_vjp(law: Law, F: np.ndarray, c: np.ndarray, result_bar: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``F_bar`` (n, dim, dim) and ``c_bar`` (n, 6) of ``sum(result_bar * project(F))``."""
    with _Points(F) as points:
        F_bar, c_bar = points.matrix(), points.coefficients()
        inputs = points.matrix(F), points.coefficients(c), points.matrix(result_bar)
        project_adjoint_kernel(law.project_adjoint, *inputs, F_bar, c_bar)
        return F_bar.to_numpy(), c_bar.to_numpy()


def energy(law: Law, F: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Stored energy per rest volume (n,), J/m³."""
    with _Points(F) as points:
        psi = points.vector(1)
        energy_kernel(law.energy, points.matrix(F), points.coefficients(c), psi)
        return psi.to_numpy()[:, 0]
