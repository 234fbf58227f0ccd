"""What isotropic elastic laws share: Young's modulus and Poisson's ratio, and the two Lamé coefficients of both."""

from collections.abc import Mapping

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.laws.law import Params

YOUNGS_MODULUS = Parameter(
    "youngs_modulus", "Pa", None, "stiffness in uniaxial tension at small strain", low=0.0, low_open=True, scale="log"
)
POISSONS_RATIO = Parameter(
    "poissons_ratio",
    "1",
    0.3,
    "lateral contraction over extension at small strain; 0.5 is incompressible",
    low=-1.0,
    high=0.5,
    low_open=True,
    high_open=True,
)
ELASTIC = (YOUNGS_MODULUS, POISSONS_RATIO)


def lame(params: Params) -> np.ndarray:
    """``(mu, lambda)`` in Pa, shape S + (2,), from ``youngs_modulus`` and ``poissons_ratio`` of shape S."""
    E, nu = np.asarray(params["youngs_modulus"], float), np.asarray(params["poissons_ratio"], float)
    return np.stack([E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))], axis=-1)


def lame_vjp(params: Params, c_bar: np.ndarray) -> dict[str, np.ndarray]:
    """Reverse mode of :func:`lame`; ``c_bar`` has shape S + (2,)."""
    E, nu = np.asarray(params["youngs_modulus"], float), np.asarray(params["poissons_ratio"], float)
    mu_bar, lam_bar = c_bar[..., 0], c_bar[..., 1]
    return {
        "youngs_modulus": mu_bar / (2 * (1 + nu)) + lam_bar * nu / ((1 + nu) * (1 - 2 * nu)),
        "poissons_ratio": -mu_bar * E / (2 * (1 + nu) ** 2)
        + lam_bar * E * (1 + 2 * nu**2) / ((1 + nu) * (1 - 2 * nu)) ** 2,
    }


def pressure_wave_speed(params: Mapping[str, float], density: float) -> float:
    """Speed of longitudinal waves at rest, ``sqrt((lambda + 2 mu) / density)``, m/s."""
    E, nu = float(params["youngs_modulus"]), float(params["poissons_ratio"])
    return float(np.sqrt(E * (1 - nu) / ((1 + nu) * (1 - 2 * nu)) / density))
