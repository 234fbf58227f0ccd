"""Forward kinematics of a tree of joints on the host."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from taichi_sim.solvers.rigid.attitude import attitude, combine, matrices, unturned
from taichi_sim.solvers.rigid.topology import BALL, HINGE, LOOSE, PRISMATIC, Topology


@dataclass(frozen=True)
class Posture:
    """Where all bodies are: ``position`` (…, bodies, dim) of the centres of mass, ``rotation`` (…, bodies, 1 or 4).

    ``matrices`` (…, bodies, 3, 3); ``levers`` (…, bodies, 2, 3) from the parent's centre of mass to the joint and on to
    the body's; ``motions`` (…, freedoms, 2, 3) sliding and turning of each degree of freedom; world axes.
    """

    position: np.ndarray
    rotation: np.ndarray
    matrices: np.ndarray
    levers: np.ndarray
    motions: np.ndarray


def lifted(x: np.ndarray) -> np.ndarray:
    """Vectors (…, dim) as 3-vectors."""
    x = np.asarray(x, float)
    return np.concatenate([x, np.zeros((*x.shape[:-1], 3 - x.shape[-1]))], axis=-1)


def forward_kinematics(
    dim: int, topology: Topology, arrays: Mapping[str, np.ndarray], coordinate: np.ndarray, position: np.ndarray,
    rotation: np.ndarray,
) -> Posture:  # fmt: skip
    """Poses of all bodies from the ``coordinate`` (…, coordinates) of all joints.

    ``position`` (…, bodies, dim) and ``rotation`` (…, bodies, 1 or 4) count for bodies that hang on nothing. ``arrays``
    are the solver's: ``centre`` (…, bodies, dim), ``parent_anchor``, ``child_anchor``, ``joint_axis`` (…, joints, dim)
    and ``mount`` (…, joints, 1 or 4).
    """
    t, q = topology, np.asarray(coordinate, float)
    lead = q.shape[:-1]
    x, attitudes = np.array(position, float), np.array(rotation, float)
    R = np.zeros((*x.shape[:-1], 3, 3))
    R[..., 2, 2] = 1.0
    levers, motions = np.zeros((*x.shape[:-1], 2, 3)), np.zeros((*lead, t.freedoms, 2, 3))
    centre, upper, lower, axes = (
        lifted(arrays[name]) for name in ("centre", "parent_anchor", "child_anchor", "joint_axis")
    )
    turns = [2] if dim == 2 else [0, 1, 2]
    for b in t.order:
        parent, kind, j, first, count, at = t.links[b]
        if kind == LOOSE:
            for i in range(count):
                motions[..., first + i, int(i >= dim), i if i < dim else turns[i - dim]] = 1.0
        else:
            P = R[..., parent, :, :] if parent >= 0 else np.eye(3)
            above = attitudes[..., parent, :] if parent >= 0 else unturned(dim)
            axis = np.array([0.0, 0.0, 1.0]) if dim == 2 and kind == HINGE else axes[..., j, :]
            along = q[..., at : at + 1]
            turn = unturned(dim)
            if kind == HINGE:
                turn = along if dim == 2 else attitude(along * axis, 3)
            elif kind == BALL:
                turn = q[..., at : at + 4]
            attitudes[..., b, :] = combine(combine(above, turn, dim), arrays["mount"][..., j, :], dim)
            arm = upper[..., j, :] - (centre[..., parent, :] if parent >= 0 else 0.0)
            if kind == PRISMATIC:
                arm = arm + along * axis
            for i in range(count):
                a = np.eye(3)[i] if kind == BALL else axis
                motions[..., first + i, 0 if kind == PRISMATIC else 1, :] = np.einsum("...ij,...j->...i", P, a)
            levers[..., b, 0, :] = np.einsum("...ij,...j->...i", P, arm)
        R[..., b, :dim, :dim] = matrices(attitudes[..., b, :], dim)
        if kind != LOOSE:
            hang = centre[..., b, :] - lower[..., j, :]
            levers[..., b, 1, :] = np.einsum("...ij,...j->...i", R[..., b, :, :], hang)
            x[..., b, :] = (x[..., parent, :] if parent >= 0 else 0.0) + levers[..., b, :, :dim].sum(axis=-2)
    return Posture(x, attitudes, R, levers, motions)
