"""Water at rest around a body, and small motions of what floats in it by linear potential flow."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import expm
from scipy.sparse import csc_matrix, lil_matrix
from scipy.sparse.linalg import splu

import taichi_sim as ts
from taichi_sim.scene.bodies import build_bodies

GRAVITY, DENSITY, GAMMA = 9.81, 1000.0, 7.0


def settle(scene: ts.Scene, level: float, bulk_modulus: float) -> ts.Scene:
    """Give ``scene``'s body ``water``, a surface at height ``level``, the volume ratios of rest."""
    depth = level - build_bodies(scene)[0].points_rest[:, 1]
    pressure = DENSITY * GRAVITY * np.maximum(depth, 0.0)
    deformation = np.tile(np.eye(scene.dim), (len(depth), 1, 1))
    deformation[:, 1, 1] = (1 + GAMMA * pressure / bulk_modulus) ** (-1 / GAMMA)
    scene.bodies["water"].deformation = deformation
    return scene


def tank(
    body: dict[str, Any], hole: dict[str, Any], density: float, size: list[float], level: float, spacing: float,
    bulk_modulus: float, duration: float, **rigid: Any,
) -> ts.Scene:  # fmt: skip
    """Still water up to ``level`` in a tank (``size`` m, frictionless walls), and a body of ``density`` in the ``hole``
    that it leaves; other entries of the body in ``rigid``."""
    dim = len(size)
    water = {"kind": "box", "lower": [0.0] * dim, "upper": [size[0], level, *size[2:]]}
    scene = ts.Scene(
        name="tank", dim=dim, duration=duration, frame_dt=0.005, gravity=[0.0, -GRAVITY, 0.0][:dim],
        domain=ts.Domain(upper=size, spacing=spacing, walls={"default": "slip"}),
        solver=ts.SolverSettings(max_speed=1.0),
        materials={
            "water": ts.Material(
                law="newtonian_fluid", density=DENSITY, bulk_modulus=bulk_modulus, gamma=GAMMA, viscosity=1.0
            )
        },
        bodies={
            "water": ts.Body(
                shape={"kind": "difference", "base": water, "remove": [hole]}, material="water", seeding="jittered"
            )
        },
        rigid={"body": ts.Rigid(shape=body, density=density, friction=0.0, **rigid)},
    )  # fmt: skip
    return settle(scene, level, bulk_modulus)


def surface(x: np.ndarray, volume: np.ndarray, above: float, spans: list[tuple[float, float]]) -> float:
    """Mean height of the surface, m, over ``spans`` of the horizontal, in 2-D: from the ``volume`` (frames, particles)
    that lies higher than ``above``. What happens at the bottom and the walls of a tank has no part in it."""
    heights = []
    for first, last in spans:
        within = (x[..., 0] > first) & (x[..., 0] < last) & (x[..., 1] > above)
        heights.append(above + (within * volume).sum(-1).mean() / (last - first))
    return float(np.mean(heights))


def heave(
    width: float, draught: float, level: float, tank_width: float, above: float, cell: float
) -> Callable[[np.ndarray], np.ndarray]:
    """Height of a freely floating box over its place of rest at ``level``, m, as a function of time.

    Linear theory of water waves in 2-D: ``∇²φ = 0``, at the surface ``φ_t = -g η`` and ``η_t = φ_y``, at the box's
    bottom ``φ_y = V``, walls closed; ``m V_t = -∫(ρ g Y + ρ φ_t) dx``. The box starts at rest, ``above`` where it would
    float in a still tank of this level. Finite volumes of ``cell`` in half the tank, the motion by its exponential.
    """
    columns, rows = round(tank_width / 2 / cell), round(level / cell)
    dry, deep = round(width / 2 / cell), round(draught / cell)
    wet = np.ones((columns, rows), bool)
    wet[:dry, rows - deep :] = False
    number = np.where(wet, np.cumsum(wet).reshape(wet.shape) - 1, -1)
    laplacian = lil_matrix((wet.sum(), wet.sum()))
    for a, b in [(number[:-1], number[1:]), (number[:, :-1], number[:, 1:])]:
        for i, j in zip(a[(a >= 0) & (b >= 0)], b[(a >= 0) & (b >= 0)], strict=True):
            laplacian[i, i] += 1
            laplacian[j, j] += 1
            laplacian[i, j] -= 1
            laplacian[j, i] -= 1
    top, bottom = number[dry:, -1], number[:dry, rows - deep - 1]
    n = len(top)
    drive = np.zeros((int(wet.sum()), n + 1))  # by φ at the surface, half a cell away, and by V
    for i in top:
        laplacian[i, i] += 2
    drive[top, np.arange(n)] = 2
    drive[bottom, n] = cell
    potential = splu(csc_matrix(laplacian)).solve(drive)
    rising = 2 * (np.eye(n, n + 1) - potential[top]) / cell
    below = potential[bottom].sum(0) * cell
    below[n] += cell * cell / 2 * dry
    load = dry * cell
    inertia = draught * load + below[n]
    motion = np.zeros((2 * n + 2, 2 * n + 2))  # φ and η at the surface, Y, V
    phi, eta, Y, V = slice(0, n), slice(n, 2 * n), 2 * n, 2 * n + 1
    motion[phi, eta] = -GRAVITY * np.eye(n)
    motion[eta, phi], motion[eta, V] = rising[:, :n], rising[:, n]
    motion[Y, V] = 1
    motion[V, eta], motion[V, Y] = GRAVITY * below[:n] / inertia, -GRAVITY * load / inertia
    start = np.zeros(2 * n + 2)
    start[Y] = above

    def at(times: np.ndarray) -> np.ndarray:
        step = expm(motion * (times[1] - times[0]))
        states = [start]
        for _ in times[1:]:
            states.append(step @ states[-1])
        return np.array(states)[:, Y]

    return at
