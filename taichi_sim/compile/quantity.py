"""Quantities: what can be read of a state, with the derivative where there is one, of all environments at once.

Sums are written without matrix products, which may add up in another order on another number of threads.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.family import State


@dataclass(frozen=True)
class Quantity:
    """``value(state, p)`` of points ``p``, (envs, …); ``vjp`` gives adjoints of x, v, C, F, mass, inertia of those.

    ``state`` holds x, v, C, F (envs, points, …), mass (envs, points), energy (envs, points), J, and, where anything is
    rigid, inertia (envs, points, 3, 3), kg m² in the axes that F turns. ``reads`` are names of FELT it needs besides.
    """

    doc: str
    unit: str
    value: Callable[[State, np.ndarray], np.ndarray]
    vjp: Callable[[State, np.ndarray, np.ndarray], State] | None = None
    scalar: bool = False
    reads: tuple[str, ...] = ()


def add_vjp(total: State, quantity: Quantity, state: State, points: np.ndarray, bar: np.ndarray) -> None:
    """Add to the adjoints of a state, (envs, points, …), from that of a quantity of it, (envs, …)."""
    assert quantity.vjp is not None
    for key, mine in quantity.vjp(state, points, bar).items():
        if key not in total:
            total[key] = np.zeros(state[key].shape)
        total[key][:, points] += mine


def of(state: State, key: str, p: np.ndarray) -> np.ndarray:
    """``key`` of points, (envs, len(p), …)."""
    return np.take(state[key], p, axis=1)


def mean(key: str) -> tuple[Callable, Callable]:
    """Mean of ``key`` weighted by mass, and its derivative."""

    def value(s: State, p: np.ndarray) -> np.ndarray:
        m = of(s, "mass", p)
        return np.sum((m / m.sum(axis=1, keepdims=True))[..., None] * of(s, key, p), axis=1)

    def vjp(s: State, p: np.ndarray, bar: np.ndarray) -> State:
        m = of(s, "mass", p)
        total = m.sum(axis=1, keepdims=True)
        apart = np.einsum("end,ed->en", of(s, key, p) - value(s, p)[:, None], bar)
        return {key: (m / total)[..., None] * bar[:, None], "mass": apart / total}

    return value, vjp


def _kinetic(s: State, p: np.ndarray) -> np.ndarray:
    """½ m v², and ½ ω·I ω of points with an inertia of their own."""
    energy = 0.5 * np.sum(of(s, "mass", p) * np.sum(of(s, "v", p) ** 2, axis=2), axis=1)
    if "inertia" in s:
        w = _local_spin(s, p)
        energy = energy + 0.5 * np.einsum("eni,enij,enj->e", w, of(s, "inertia", p), w)
    return energy


def _kinetic_vjp(s: State, p: np.ndarray, bar: np.ndarray) -> State:
    m, v, per_point, per_part = of(s, "mass", p), of(s, "v", p), bar[:, None], bar[:, None, None]
    found = {"v": per_part * m[..., None] * v, "mass": 0.5 * per_point * np.sum(v**2, axis=2)}
    if "inertia" in s:
        w = _local_spin(s, p)
        found["inertia"] = 0.5 * per_part[..., None] * w[..., :, None] * w[..., None, :]
        turned = per_part * np.einsum("enij,enj->eni", of(s, "inertia", p), w)
        if s["x"].shape[-1] == 2:
            return {**found, "C": axial_vjp(turned, 2)}
        world = axial(of(s, "C", p))
        found["C"] = axial_vjp(np.einsum("enij,enj->eni", of(s, "F", p), turned), 3)
        found["F"] = world[..., :, None] * turned[..., None, :]
    return found


def axial(C: np.ndarray) -> np.ndarray:
    """Angular velocity (…, 3) of affine velocities (…, dim, dim)."""
    if C.shape[-1] == 2:
        turn = 0.5 * (C[..., 1, 0] - C[..., 0, 1])
        return np.stack([np.zeros_like(turn), np.zeros_like(turn), turn], axis=-1)
    turns = [C[..., 2, 1] - C[..., 1, 2], C[..., 0, 2] - C[..., 2, 0], C[..., 1, 0] - C[..., 0, 1]]
    return 0.5 * np.stack(turns, axis=-1)


def axial_vjp(bar: np.ndarray, dim: int) -> np.ndarray:
    """Adjoint of :func:`axial`."""
    out = np.zeros((*bar.shape[:-1], dim, dim))
    for axis, (i, j) in enumerate(((2, 1), (0, 2), (1, 0))):
        if dim == 3 or axis == 2:
            out[..., i, j], out[..., j, i] = 0.5 * bar[..., axis], -0.5 * bar[..., axis]
    return out


def _local_spin(s: State, p: np.ndarray) -> np.ndarray:
    """Angular velocity (envs, len(p), 3) in body axes."""
    world = axial(of(s, "C", p))
    return world if s["x"].shape[-1] == 2 else np.einsum("enji,enj->eni", of(s, "F", p), world)


def _spin(s: State, p: np.ndarray) -> np.ndarray:
    w = axial(s["C"][:, p[0]])
    return w[:, 2] if s["x"].shape[-1] == 2 else w


def _spin_vjp(s: State, p: np.ndarray, bar: np.ndarray) -> State:
    dim = s["x"].shape[-1]
    turn = np.zeros((len(bar), 1, 3))
    turn[:, 0, 2 if dim == 2 else slice(None)] = bar
    return {"C": axial_vjp(turn, dim)}


def _turning(s: State, p: np.ndarray) -> np.ndarray:
    own = np.einsum("enij,enj->eni", of(s, "inertia", p), _local_spin(s, p))
    return own[:, 0, 2] if s["x"].shape[-1] == 2 else np.einsum("enij,enj->eni", of(s, "F", p), own)[:, 0]


def each(key: str) -> tuple[Callable, Callable]:
    """``key`` of every point, and its derivative."""
    return lambda s, p: of(s, key, p), lambda s, p, bar: {key: bar}


QUANTITIES: dict[str, Quantity] = {
    "position": Quantity("positions", "m", *each("x")),
    "velocity": Quantity("velocities", "m/s", *each("v")),
    "deformation": Quantity("deformation gradients", "1", *each("F")),
    "center_of_mass": Quantity("centre of mass", "m", *mean("x")),
    "mean_velocity": Quantity("velocity of the centre of mass", "m/s", *mean("v")),
    "momentum": Quantity(
        "linear momentum",
        "kg m/s",
        lambda s, p: np.sum(of(s, "mass", p)[..., None] * of(s, "v", p), axis=1),
        lambda s, p, bar: {
            "v": of(s, "mass", p)[..., None] * bar[:, None],
            "mass": np.einsum("end,ed->en", of(s, "v", p), bar),
        },
    ),
    "kinetic_energy": Quantity("kinetic energy", "J", _kinetic, _kinetic_vjp, scalar=True),
    "elastic_energy": Quantity("stored energy", "J", lambda s, p: np.sum(of(s, "energy", p), axis=1), scalar=True),
    "mass": Quantity(
        "mass",
        "kg",
        lambda s, p: np.sum(of(s, "mass", p), axis=1),
        lambda s, p, bar: {"mass": np.repeat(bar[:, None], len(p), axis=1)},
        scalar=True,
    ),
}

#: The same of everything together: sums, and the positions and velocities of all that has mass.
WHOLE = QUANTITIES


def first(key: str) -> tuple[Callable, Callable]:
    """``key`` of the only point there is, and its derivative."""
    return lambda s, p: s[key][:, p[0]], lambda s, p, bar: {key: bar[:, None]}


def _turning_faster(s: State, p: np.ndarray) -> np.ndarray:
    return s["alpha"][:, p[0], 0] if s["x"].shape[-1] == 2 else s["alpha"][:, p[0]]


#: Means over the last step; 0 before the first.
ACCELERATIONS = {
    "acceleration": Quantity("acceleration", "m/s²", *first("a"), reads=("a",)),
    "angular_acceleration": Quantity(
        "angular acceleration", "rad/s²", _turning_faster,
        lambda s, p, bar: {"alpha": bar.reshape(len(bar), 1, -1)},
        reads=("alpha",),
    ),
    "specific_force": Quantity(
        "acceleration minus gravity in body axes, as an accelerometer has it", "m/s²", *first("f"), reads=("f",)
    ),
}  # fmt: skip

RIGID: dict[str, Quantity] = {
    "position": Quantity("centre of mass", "m", *first("x")),
    "velocity": Quantity("velocity of the centre of mass", "m/s", *first("v")),
    "rotation": Quantity("rotation matrix", "1", *first("F")),
    "angular_velocity": Quantity("angular velocity", "rad/s", _spin, _spin_vjp),
    "angular_momentum": Quantity("angular momentum about the centre of mass", "kg m²/s", _turning),
    **{name: QUANTITIES[name] for name in ("momentum", "kinetic_energy", "mass")},
    **ACCELERATIONS,
    "contact_force": Quantity("sum of the contact forces in the last step", "N", *first("push"), reads=("push",)),
}

MARKER = {
    "position": Quantity("place", "m", *first("x")),
    "velocity": Quantity("velocity", "m/s", *first("v")),
    "rotation": RIGID["rotation"],
    "angular_velocity": RIGID["angular_velocity"],
    **ACCELERATIONS,
}


def _only(key: str) -> tuple[Callable, Callable]:
    """``key`` along a joint: a number where there is one degree of freedom."""

    def value(s: State, p: np.ndarray) -> np.ndarray:
        return s[key][:, p[0]] if len(p) == 1 else of(s, key, p)

    return value, lambda s, p, bar: {key: bar.reshape(len(bar), len(p))}


JOINT = {
    "position": Quantity("coordinate", "rad, m", *_only("q"), scalar=True),
    "velocity": Quantity("rate", "rad/s, m/s", *_only("rate"), scalar=True),
    "torque": Quantity(
        "what motors, springs, dampers, friction and limits gave along it in the last step", "N m, N", *_only("effort"),
        scalar=True, reads=("effort",),
    ),
    "force": Quantity(
        "force on the child through the joint in the last step, world axes", "N", *first("reaction"),
        reads=("reaction",),
    ),
}  # fmt: skip

#: Of springs and grains, and of regions of theirs.
POINTS = {
    name: QUANTITIES[name]
    for name in ("position", "velocity", "center_of_mass", "mean_velocity", "momentum", "kinetic_energy", "mass")
}
