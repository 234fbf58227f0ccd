"""Sensors of a scene as observables: what each kind reads of points and joints, with the derivative."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from taichi_sim.compile.family import State
from taichi_sim.compile.quantity import Quantity, axial, axial_vjp, each, first
from taichi_sim.core.given import length

if TYPE_CHECKING:
    from taichi_sim.compile.model import Model


def sensor_quantity(model: "Model", name: str) -> tuple[Quantity, np.ndarray]:
    """What ``sensors.NAME.value`` is, and the points (or degrees of freedom, or the ray) it is read from."""
    sensor = model.sensors[name]
    if sensor.kind == "joint":
        return JOINT, model.joints[str(sensor.joint)].points
    here = _point(model, sensor.body, sensor.marker)
    if sensor.kind == "contact_force":
        refuse_contact_force(model, str(sensor.body), f"sensors.{name}")
    if sensor.kind != "distance":
        return READ[sensor.kind], here
    if sensor.direction is not None:
        assert model.rigid is not None
        ray = next(i for i, ray in enumerate(model.rigid.rays.rays) if ray.name == name)
        return RANGE, np.array([ray])
    if sensor.target is not None:
        return between(None), np.concatenate([here, _point(model, sensor.target, sensor.target_marker)])
    return between(np.asarray(sensor.point, float)), here


def refuse_contact_force(model: "Model", body: str, path: str) -> None:
    """Raise ``ValueError`` for a rigid body that does not feel all that touches it."""
    if model.rigid is None:
        return
    if model.rigid.is_held(body):
        raise ValueError(f"{path}: what is fixed does not feel what touches it; see observe('contacts')")


def _point(model: "Model", body: str | None, marker: str | None) -> np.ndarray:
    piece = model.pieces[str(body)]
    return piece.points if marker is None else piece.regions[marker]


def numbers_of(quantity: Quantity, points: np.ndarray, dim: int) -> tuple[int, ...]:
    """Shape of what a sensor reads."""
    count = int(points.max()) + 1
    vectors = {name: np.zeros((1, count, dim)) for name in ("x", "v", "a", "f", "push")}
    squares = {name: np.zeros((1, count, dim, dim)) for name in ("C", "F")}
    along = {name: np.zeros((1, count)) for name in ("q", "rate", "effort", "range")}
    return np.shape(quantity.value({**vectors, **squares, **along}, points))[1:]


def _together(*parts: Quantity) -> tuple[Callable, Callable]:
    """Values of several quantities of the same points one after the other, and the derivative."""

    def value(s: State, p: np.ndarray) -> np.ndarray:
        found = [part.value(s, p) for part in parts]
        return np.concatenate([value.reshape(len(value), -1) for value in found], axis=1)

    def vjp(s: State, p: np.ndarray, bar: np.ndarray) -> State:
        out: State = {}
        at = 0
        for part in parts:
            shape = np.shape(part.value(s, p))
            size = int(np.prod(shape[1:], dtype=int))
            assert part.vjp is not None
            for key, mine in part.vjp(s, p, bar[:, at : at + size].reshape(shape)).items():
                out[key] = out[key] + mine if key in out else mine
            at += size
        return out

    return value, vjp


def _frame(s: State, p: np.ndarray) -> np.ndarray:
    return s["F"][:, p[0], :, :-1].swapaxes(1, 2)  # column by column


def _frame_vjp(s: State, p: np.ndarray, bar: np.ndarray) -> State:
    out = np.zeros((len(bar), 1, *s["F"].shape[2:]))
    out[:, 0, :, :-1] = bar.swapaxes(1, 2)
    return {"F": out}


def _spin(s: State, p: np.ndarray) -> np.ndarray:
    """Angular velocity, world axes: (envs, 1) in 2-D."""
    w = axial(s["C"][:, p[0]])
    return w[:, 2:] if s["x"].shape[-1] == 2 else w


def _spin_vjp(s: State, p: np.ndarray, bar: np.ndarray) -> State:
    turn = np.zeros((len(bar), 1, 3))
    turn[:, 0, 3 - bar.shape[1] :] = bar
    return {"C": axial_vjp(turn, s["x"].shape[-1])}


def _gyro(s: State, p: np.ndarray) -> np.ndarray:
    """The same in body axes."""
    w = _spin(s, p)
    return w if w.shape[1] == 1 else (s["F"][:, p[0]].swapaxes(1, 2) @ w[:, :, None])[:, :, 0]


def _gyro_vjp(s: State, p: np.ndarray, bar: np.ndarray) -> State:
    if bar.shape[1] == 1:
        return _spin_vjp(s, p, bar)
    turned = (s["F"][:, p[0]] @ bar[:, :, None])[:, :, 0]
    return {**_spin_vjp(s, p, turned), "F": (_spin(s, p)[:, :, None] * bar[:, None, :])[:, None]}


POSITION = Quantity("position", "m", *first("x"))
VELOCITY = Quantity("velocity", "m/s", *first("v"))
SPECIFIC_FORCE = Quantity("specific force", "m/s²", *first("f"), reads=("f",))
FRAME = Quantity("columns of the rotation matrix", "1", _frame, _frame_vjp)
SPIN = Quantity("angular velocity", "rad/s", _spin, _spin_vjp)
GYRO = Quantity("angular velocity in body axes", "rad/s", _gyro, _gyro_vjp)
AXES = [Quantity(key, "", *each(key)) for key in ("q", "rate", "effort")]

READ = {
    "pose": Quantity("position, columns of the rotation matrix", "m, 1", *_together(POSITION, FRAME)),
    "velocity": Quantity("velocity, angular velocity", "m/s, rad/s", *_together(VELOCITY, SPIN)),
    "imu": Quantity(
        "specific force, angular velocity, in body axes", "m/s², rad/s", *_together(SPECIFIC_FORCE, GYRO), reads=("f",)
    ),
    "contact_force": Quantity("sum of the contact forces", "N", *first("push"), reads=("push",)),
    "marker": POSITION,
}
JOINT = Quantity(
    "coordinate, rate, torque", "rad, rad/s, N m or m, m/s, N", *_together(*AXES), reads=("effort",)
)  # fmt: skip
RANGE = Quantity("distance along a ray", "m", *first("range"), scalar=True, reads=("range",))


def between(place: np.ndarray | None) -> Quantity:
    """Distance of the first point from ``place``, or from the second point; at 0 the derivative is 0."""

    def apart(s: State, p: np.ndarray) -> np.ndarray:
        return s["x"][:, p[0]] - (s["x"][:, p[1]] if place is None else place)

    def vjp(s: State, p: np.ndarray, bar: np.ndarray) -> State:
        away = apart(s, p)
        unit = away / np.maximum(length(away), 1e-300)[:, None]
        return {"x": bar[:, None, None] * np.stack([unit, -unit] if place is None else [unit], axis=1)}

    return Quantity("distance", "m", lambda s, p: length(apart(s, p)), vjp, scalar=True)
