"""What acts along one degree of freedom of a joint: spring, damper, drive, dry friction and limits.

All are impulses of a step as functions of the velocity ``v`` after it, so that they enter the same implicit problem as
contact, and stiff ones do no harm:

    spring, damper   -κ (k (q - rest + (h v - h' v')/4) + d v)     with v', h' of the step before: the mean of the last
                                                                   three positions, which neither damps nor explodes
    drive            κ clamp(kp (target - q - h v) + kd (target' - v), ± limit)
    dry friction     -κ F v f(|v|)                                 f of ``law.friction_factor``
    limits           K (b - v)₊ (1 - d v)₊,  b = (lower - q)/h     as contact without friction; mirrored at the upper

κ is the length of the kick, h the step. The numbers of one joint and step stand in ``row``, columns below.
"""

from typing import Any, NamedTuple

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.law import friction_factor
from taichi_sim.solvers.rigid.topology import BALL, LOOSE
from taichi_sim.solvers.rigid.tree import COORDINATE, COUNT, KIND, freedom_of, joint_freedom
from taichi_sim.solvers.rigid.twist import DELTA, NOW, RESIDUAL

#: Columns of ``row``: spring and damper (value at rest, slope), drive (the same, bound), limits (K, d, b of the lower,
#: b of the upper), friction (bound, stiction speed).
SPRING, SLOPE, PUSH, PUSH_SLOPE, BOUND, STIFF, DAMPING, LOWER, UPPER, DRY, STICTION = range(11)


class Drive(NamedTuple):
    """The arrays of this file, passed through kernels as one."""

    row: Any
    joint_damping: Any
    joint_stiffness: Any
    joint_rest: Any
    joint_lower: Any
    joint_upper: Any
    limit_stiffness: Any
    limit_damping: Any
    joint_friction: Any
    joint_stiction: Any
    drive_stiffness: Any
    drive_damping: Any
    drive_limit: Any
    target: Any
    target_rate: Any


class DriveBar(NamedTuple):
    """Adjoints of :class:`Drive`."""

    joint_damping: Any
    joint_stiffness: Any
    joint_rest: Any
    joint_lower: Any
    joint_upper: Any
    limit_stiffness: Any
    limit_damping: Any
    joint_friction: Any
    joint_stiction: Any
    drive_stiffness: Any
    drive_damping: Any
    drive_limit: Any
    target: Any
    target_rate: Any


@ti.func
def row_impulse(r, v):
    """Impulse along a degree of freedom, and how fast it falls with ``v``."""
    push = r[PUSH] - r[PUSH_SLOPE] * v
    fall = r[SLOPE] + r[PUSH_SLOPE]
    if ti.abs(push) > r[BOUND]:
        push = ti.select(push > 0.0, r[BOUND], -r[BOUND])
        fall = r[SLOPE]
    f, slope = friction_factor(ti.abs(v), r[STICTION])
    out = r[SPRING] - r[SLOPE] * v + push - r[DRY] * f * v
    fall = fall + r[DRY] * (f + slope * v * v)
    for side in ti.static(range(2)):
        u = v if ti.static(side == 0) else -v
        A, B = ti.max(r[LOWER + side] - u, 0.0), ti.max(1.0 - r[DAMPING] * u, 0.0)
        stop = r[STIFF] * A * B
        if ti.static(side == 0):
            out = out + stop
        else:
            out = out - stop
        if A > 0.0 and B > 0.0:
            fall = fall + r[STIFF] * (B + r[DAMPING] * A)
    return out, fall


@ti.func
def row_impulse_adjoint(r, v, bar):
    """Adjoint of :func:`row_impulse` for the numbers of the row; that for ``v`` is the slope."""
    out = r * 0.0
    out[SPRING] = bar
    out[SLOPE] = -v * bar
    push = r[PUSH] - r[PUSH_SLOPE] * v
    if ti.abs(push) > r[BOUND]:
        out[BOUND] = ti.select(push > 0.0, bar, -bar)
    else:
        out[PUSH] = bar
        out[PUSH_SLOPE] = -v * bar
    s = ti.abs(v)
    f, _slope = friction_factor(s, r[STICTION])
    out[DRY] = -f * v * bar
    if s < r[STICTION]:
        out[STICTION] = -r[DRY] * v * bar * 2.0 * (s / r[STICTION] - 1.0) / (r[STICTION] * r[STICTION])
    for side in ti.static(range(2)):
        u, b = v, bar
        if ti.static(side == 1):
            u, b = -v, -bar
        A, B = ti.max(r[LOWER + side] - u, 0.0), ti.max(1.0 - r[DAMPING] * u, 0.0)
        out[STIFF] = out[STIFF] + b * A * B
        if A > 0.0 and B > 0.0:
            out[LOWER + side] = b * r[STIFF] * B
            out[DAMPING] = out[DAMPING] - b * r[STIFF] * A * u
    return out


@ti.func
def place_rows(T: ti.template(), D: ti.template(), e, k, f, hp, h):
    """The numbers of every joint in the step from slot ``k``. Balls have no angle: no spring, drive or limit."""
    length = 0.5 * (hp + h)
    for b in range(T.extent[0]):
        if T.link[b][KIND] != LOOSE:
            for i in range(T.link[b][COUNT]):
                p = joint_freedom(T, e, b) + i
                q, v = 0.0, T.rate[k, p]
                if T.link[b][KIND] != BALL:
                    q = T.coordinate[k, e * T.extent[8] + T.link[b][COORDINATE]]
                stiffness, kp, kd = D.joint_stiffness[p], D.drive_stiffness[p], D.drive_damping[p]
                D.row[p] = ti.Vector([
                    -length * stiffness * (q - D.joint_rest[p] - 0.25 * hp * v),
                    length * (D.joint_damping[p] + 0.25 * h * stiffness),
                    length * (kp * (D.target[f, p] - q) + kd * D.target_rate[f, p]),
                    length * (kd + h * kp),
                    length * D.drive_limit[p],
                    h * h * D.limit_stiffness[p],
                    D.limit_damping[p],
                    (D.joint_lower[p] - q) / h,
                    (q - D.joint_upper[p]) / h,
                    length * D.joint_friction[p],
                    D.joint_stiction[p],
                ])


@ti.func
def add_rows(T: ti.template(), row: ti.template(), e, column):
    """Take the impulses of all joints at the velocities in ``column`` from RESIDUAL."""
    for i in range(T.extent[7]):
        j = (e + 1) * T.extent[6] - T.extent[7] + i
        gamma, _fall = row_impulse(row[e * T.extent[7] + i], T.reduced[j, column])
        T.reduced[j, RESIDUAL] = T.reduced[j, RESIDUAL] - gamma


@ti.func
def add_row_slopes(T: ti.template(), row: ti.template(), e, matrix: ti.template()):
    """Their slopes at the velocities in NOW to the diagonal of ``matrix``."""
    n = T.extent[6]
    for i in range(T.extent[7]):
        d = n - T.extent[7] + i
        _gamma, fall = row_impulse(row[e * T.extent[7] + i], T.reduced[e * n + d, NOW])
        matrix[e * n * n + d * (n + 1)] = matrix[e * n * n + d * (n + 1)] + fall


@ti.func
def rows_adjoint(T: ti.template(), D: ti.template(), B: ti.template(), d_coordinate: ti.template(),
                 d_rate: ti.template(), e, k, f, hp, h):
    """Adjoint of all rows, from ``z`` in DELTA. Returns ``length_bar``, ``hp_bar``, ``h_bar``."""
    length = 0.5 * (hp + h)
    length_bar, hp_bar, h_bar = 0.0, 0.0, 0.0
    for b in range(T.extent[0]):
        if T.link[b][KIND] != LOOSE:
            for i in range(T.link[b][COUNT]):
                p, j = joint_freedom(T, e, b) + i, freedom_of(T, e, b) + i
                at = e * T.extent[8] + T.link[b][COORDINATE]
                q, v = 0.0, T.rate[k, p]
                if T.link[b][KIND] != BALL:
                    q = T.coordinate[k, at]
                r = row_impulse_adjoint(D.row[p], T.reduced[j, NOW], T.reduced[j, DELTA])
                stiffness, kp, kd = D.joint_stiffness[p], D.drive_stiffness[p], D.drive_damping[p]
                off = q - D.joint_rest[p] - 0.25 * hp * v
                lack, lag = D.target[f, p] - q, D.target_rate[f, p]
                spring, push = -length * stiffness * r[SPRING], length * r[PUSH]
                slope, push_slope = length * r[SLOPE], length * r[PUSH_SLOPE]
                B.joint_stiffness[p] = B.joint_stiffness[p] + ti.cast(
                    0.25 * h * slope - length * off * r[SPRING], ti.f64)
                B.joint_rest[p] = B.joint_rest[p] - ti.cast(spring, ti.f64)
                B.joint_damping[p] = B.joint_damping[p] + ti.cast(slope, ti.f64)
                B.drive_stiffness[p] = B.drive_stiffness[p] + ti.cast(push * lack + h * push_slope, ti.f64)
                B.drive_damping[p] = B.drive_damping[p] + ti.cast(push * lag + push_slope, ti.f64)
                B.target[0, f, p] = B.target[0, f, p] + ti.cast(kp * push, ti.f64)
                B.target_rate[0, f, p] = B.target_rate[0, f, p] + ti.cast(kd * push, ti.f64)
                B.drive_limit[p] = B.drive_limit[p] + ti.cast(length * r[BOUND], ti.f64)
                B.limit_stiffness[p] = B.limit_stiffness[p] + ti.cast(h * h * r[STIFF], ti.f64)
                B.limit_damping[p] = B.limit_damping[p] + ti.cast(r[DAMPING], ti.f64)
                B.joint_lower[p] = B.joint_lower[p] + ti.cast(r[LOWER] / h, ti.f64)
                B.joint_upper[p] = B.joint_upper[p] - ti.cast(r[UPPER] / h, ti.f64)
                B.joint_friction[p] = B.joint_friction[p] + ti.cast(length * r[DRY], ti.f64)
                B.joint_stiction[p] = B.joint_stiction[p] + ti.cast(r[STICTION], ti.f64)
                if T.link[b][KIND] != BALL:
                    d_coordinate[at] = d_coordinate[at] + spring - kp * push + (r[UPPER] - r[LOWER]) / h
                d_rate[p] = d_rate[p] - 0.25 * hp * spring
                length_bar = length_bar + (
                    -stiffness * off * r[SPRING] + (D.joint_damping[p] + 0.25 * h * stiffness) * r[SLOPE]
                    + (kp * lack + kd * lag) * r[PUSH] + (kd + h * kp) * r[PUSH_SLOPE]
                    + D.drive_limit[p] * r[BOUND] + D.joint_friction[p] * r[DRY])
                hp_bar = hp_bar - 0.25 * v * spring
                h_bar = h_bar + 0.25 * stiffness * slope + kp * push_slope + 2.0 * h * D.limit_stiffness[p] * r[STIFF]
                h_bar = h_bar - (r[LOWER] * D.row[p][LOWER] + r[UPPER] * D.row[p][UPPER]) / h
    return length_bar, hp_bar, h_bar
