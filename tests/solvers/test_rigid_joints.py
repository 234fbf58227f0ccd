"""Joints: trees of every kind against central differences, pendulums of the literature, drives, limits, loops."""

import numpy as np
import pytest
from rigid_case import (
    INPUTS,
    JOINT_INPUTS,
    JOINT_PARAMETERS,
    JOINT_STATE,
    PARAMETERS,
    STATE,
    Rollout,
    build,
    run,
)

from taichi_sim.solvers.rigid.assembly import Assembly

LAWS = (
    "armature", "joint_damping", "joint_stiffness", "joint_rest", "joint_lower", "joint_upper", "limit_stiffness",
    "limit_damping", "joint_friction", "joint_stiction", "drive_stiffness", "drive_damping", "drive_limit",
)  # fmt: skip
SMALL = {"rotation": 1e-6, "stiction": 1e-3, "joint_stiction": 1e-3, "coordinate": 1e-5}


def moments(rng, dim):
    """A full positive definite inertia."""
    if dim == 2:
        return [rng.uniform(0.05, 0.1)]
    A = rng.normal(0, 0.1, (3, 3))
    I = A @ A.T + 0.05 * np.eye(3)
    return [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]


def tree(dim, envs=1, steps=20, contact=False, loop=(), h=5e-3):
    """A floating base with two branches, and a branch on the world; every kind of joint; masses off centre.

    Bodies are numbered against the tree, so that order matters. Laws of every kind act along every joint.
    """
    rng = np.random.default_rng(7)
    a = Assembly(dim)
    a.values |= {"friction": 0.3, "stiffness": 2e3, "damping": 2.0, "stiction": 0.05, "dt": h}
    a.gravity[:] = rng.normal(0, 5, dim)

    def body(place):
        attitude = rng.normal(0, 1, 1 if dim == 2 else 4)
        state = {"rotation": attitude, "velocity": rng.normal(0, 0.5, dim)}
        state["spin"] = rng.normal(0, 1, 1 if dim == 2 else 3)
        b = a.body(rng.uniform(0.5, 1.5), moments(rng, dim), np.asarray(place, float)[:dim], **state)
        if contact:
            a.add_point(b, rng.normal(0, 0.03, dim), 0.1)
        return b

    places = [[0.9, 0.1, 0.3], [0.5, -0.2, 0.1], [0, 0, 0], [-0.4, 0.3, 0], [-0.8, 0.2, 0.2], [1.5, 0, 0], [2, 0.3, 0]]
    leaf, elbow, base, ball, slide, hung, fixed = (body(p) for p in places)
    law = dict(
        armature=0.02, damping=0.3, stiffness=2.0, rest=0.1, lower=-0.15, upper=0.2, limit_stiffness=200.0,
        limit_damping=0.5, friction=0.2, stiction=0.3, kp=5.0, kd=0.4, limit=30.0,
    )  # fmt: skip
    simple = {k: law[k] for k in ("armature", "damping", "friction", "stiction")}
    axis = lambda: rng.normal(0, 1, dim)
    a.joint("hinge", elbow, leaf, [0.7, 0, 0.2][:dim], axis(), 0.3, 0.5, **law)
    a.joint("ball", base, ball, [-0.2, 0.1, 0][:dim], None, [0.3, -0.2, 0.1] if dim == 3 else 0.1, 0.4, **simple)
    a.joint("hinge", base, elbow, [0.2, -0.1, 0][:dim], axis(), -0.2, -1.0, **law | {"limit": 0.3})
    a.joint("prismatic", ball, slide, [-0.6, 0.2, 0][:dim], axis(), 0.1, 0.5, **law)
    a.joint("prismatic", -1, hung, [1.4, 0, 0][:dim], axis(), 0.05, 0.1, **law)
    a.joint("fixed", hung, fixed, [1.8, 0.1, 0.1][:dim])
    if "weld" in loop:
        a.closure("fixed", slide, hung, [0.3, 0.1, 0.2][:dim], None, 300.0, 20.0)
    if "hinge" in loop:
        a.closure("hinge", leaf, -1, [0.9, 0.1, 0.2][:dim], axis(), 500.0, 30.0)
    if "ball" in loop:
        a.closure("ball", base, fixed, [0.5, 0.1, 0.2][:dim], None, 400.0)
    if contact:
        a.wall([0.2, *[0.1] * (dim - 2), 1.0], -0.35)
        a.sphere(0.5, 0.1, [0.95, 0.15, 0.35][:dim] if dim == 3 else [0.85, 0.2])
    solver = build(a, steps, envs, frames=2)
    view = solver.store.view
    view("centre")[...] = rng.normal(0, 0.05, view("centre").shape)
    for name in ("joint_lower", "joint_upper", "drive_limit"):  # perturbed in proportion to the largest
        view(name)[...] = np.clip(view(name), -1.0, 1.0)
    for name in (*INPUTS, *JOINT_INPUTS):
        view(name)[...] = rng.normal(0, 0.5, view(name).shape)
    for name in ("coordinate", "rate", "velocity"):
        if envs > 1:
            view(name)[0] *= 1.0 + rng.normal(0, 0.2, view(name)[0].shape)
    return solver


EVERYTHING = (*STATE, *JOINT_STATE, "mass", "inertia", "centre", "gravity", "dt", *INPUTS, *JOINT_INPUTS, *LAWS,
              "parent_anchor", "child_anchor", "joint_axis", "mount")  # fmt: skip


@pytest.mark.parametrize("dim", [2, 3])
def test_gradients(f64, dim):
    """Every state, parameter and input of a tree; limits, saturated drives and dry friction act in it."""
    Rollout(tree(dim, 2), 20).check(EVERYTHING, 1e-7, SMALL)
