"""What a solver's step looks like from outside, in double precision, for an audit of momentum and energy.

Vectors are (envs, 3) in two dimensions too, numbers (envs,). A solver reports what it has at both ends of a step, and
everything that acted on it in between, each taken from where it is applied and never as what was missing, unless it
says so: the sum is what an audit tests.
"""

from dataclasses import dataclass

import numpy as np

#: Half the distance between two numbers near 1: what storing a velocity may lose of it.
ROUNDING = {"f32": 2.0**-24, "f64": 2.0**-53}

#: Who acts, where it is not another family of matter: nothing answers for the other side.
GRAVITY, WALLS, HELD, DAMPING, FORCES, ACTUATORS = "gravity", "walls", "held", "damping", "forces", "actuators"


def lifted(vectors: np.ndarray) -> np.ndarray:
    """(..., 2 or 3) as (..., 3)."""
    vectors = np.asarray(vectors, np.float64)
    missing = 3 - vectors.shape[-1]
    return np.concatenate([vectors, np.zeros((*vectors.shape[:-1], missing))], axis=-1) if missing else vectors


def lifted_turn(turns: np.ndarray) -> np.ndarray:
    """(..., 1 or 3) turns as (..., 3): about z in two dimensions."""
    turns = np.asarray(turns, np.float64)
    return turns if turns.shape[-1] == 3 else np.concatenate([np.zeros((*turns.shape[:-1], 2)), turns], axis=-1)


def summed(values: np.ndarray, env: np.ndarray, envs: int) -> np.ndarray:
    """(envs, …) sums of rows that belong to environments ``env``."""
    out = np.zeros((envs, *values.shape[1:]))
    np.add.at(out, env, values)
    return out


@dataclass(frozen=True)
class Act:
    """What one partner did to a solver in a step; with ``at_once`` all of it at the step's beginning.

    ``impulse`` N s, ``turn`` N m s about the origin, ``work`` J, all on the solver; ``size`` and ``turn_size`` are the
    sums of the sizes of their parts, which may cancel. ``by`` is a family of matter or one of the names above.
    ``source`` work is energy put in from outside; that of all others is part of what there is, or lost. ``derived``:
    not read where it is applied, but what was left over. ``apart``: why the turns of both sides need not cancel.
    """

    by: str
    impulse: np.ndarray
    turn: np.ndarray
    work: np.ndarray
    size: np.ndarray
    turn_size: np.ndarray
    source: bool = False
    derived: bool = False
    at_once: bool = False
    apart: str = ""


def work_only(by: str, work: np.ndarray, at_once: bool = False) -> Act:
    """Energy put in by what acts within a solver, which leaves its momentum as it is."""
    nothing = np.zeros((len(work), 3))
    return Act(by, nothing, nothing, work, 0.0 * work, 0.0 * work, source=True, at_once=at_once)


def act_of(
    by: str, env: np.ndarray, envs: int, impulse: np.ndarray, turn: np.ndarray, work: np.ndarray, source: bool = False
) -> Act:
    """The sum of (n, 3) impulses and turns, and of (n,) works."""
    parts = (impulse, turn, work, np.linalg.norm(impulse, axis=1), np.linalg.norm(turn, axis=1))
    return Act(by, *(summed(part, env, envs) for part in parts), source=source)


def act(
    by: str,
    env: np.ndarray,
    envs: int,
    place: np.ndarray,
    impulse: np.ndarray,
    velocity: np.ndarray,
    couple: np.ndarray | None = None,
    spin: np.ndarray | None = None,
    source: bool = False,
) -> Act:
    """Impulses (n, 3) at places (n, 3), and couples, on what moves with velocities and spins (n, 3) on the average."""
    turn, work = np.cross(place, impulse), np.einsum("ni,ni->n", impulse, velocity)
    if couple is not None:
        turn = turn + couple
        if spin is not None:
            work = work + np.einsum("ni,ni->n", couple, spin)
    return act_of(by, env, envs, impulse, turn, work, source)


@dataclass(frozen=True)
class State:
    """Momentum N s, angular momentum about the origin N m s, and how large the parts are that they are sums of."""

    momentum: np.ndarray
    turn: np.ndarray
    size: np.ndarray
    turn_size: np.ndarray


@dataclass(frozen=True)
class Energy:
    """J, at the time of the positions a step begins with. ``height``: in the field of gravity. Velocities stand before
    that time at the beginning of the step and after it at its end: ``part`` of what the step changes is before."""

    kinetic: np.ndarray
    height: np.ndarray
    stored: np.ndarray
    part: np.ndarray


@dataclass(frozen=True)
class Along:
    """What another family gave bodies on joints, (envs, freedoms) impulses along degrees of freedom and the sizes of
    what they are sums of; reactions of joints do not show in them. ``met``: the same of the momentum of what touched
    them, where impulses are read as its change."""

    impulse: np.ndarray
    size: np.ndarray
    met: np.ndarray


@dataclass(frozen=True)
class Reading:
    """One step of one solver, which computes in ``precision``. What could not be read, and so must not be judged, is
    named in ``unknown`` (momentum), ``unknown_turn`` (angular momentum) and ``unknown_energy``; empty where all is
    known."""

    before: State
    after: State
    energy: Energy
    acts: list[Act]
    precision: str
    unknown: str = ""
    unknown_turn: str = ""
    unknown_energy: str = ""
    along: Along | None = None
