"""What a scene's tables of a robot stand for, from these tables alone: where bodies are, and the mass matrix.

Bodies, anchors and axes stand in the tables where all coordinates are 0; every joint then moves its child, and all
that hangs on it, about its anchor and axis to its ``position``.
"""

import numpy as np

from taichi_sim.scene.importers.robot import Pose
from taichi_sim.scene.pose import rotation_matrix
from taichi_sim.scene.shapes import resolve_shape


def tensor(moments):
    xx, yy, zz, xy, xz, yz = moments
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def placed(table, folder=None):
    """Pose of a rigid body's own axes: it is turned about its shape's centre of volume, then moved."""
    turn, position = (
        rotation_matrix(table.get("rotation", np.zeros(3)), 3),
        np.asarray(table.get("position", np.zeros(3))),
    )
    pivot = resolve_shape(table["shape"], 3, folder=folder).centre if "rotation" in table else np.zeros(3)
    return Pose(turn, position + pivot - turn @ pivot)


def motion(joint, axes):
    """How a joint moves what stands in the scene; a ball turns by a vector in the axes (3, 3) of its parent."""
    at = np.atleast_1d(joint.get("position", 0.0))
    if joint["kind"] == "fixed":
        return Pose()
    if joint["kind"] == "prismatic":
        return Pose(position=at[0] * unit(joint))
    turn = rotation_matrix(at[0] * unit(joint) if joint["kind"] == "hinge" else axes @ (at * np.ones(3)), 3)
    anchor = np.asarray(joint["anchor"])
    return Pose(turn, anchor - turn @ anchor)


def unit(joint):
    return np.asarray(joint["axis"]) / np.linalg.norm(joint["axis"])


def above(tables):
    """The joint that holds each body, by name, and its own name."""
    joints = tables.get("joints", {})
    held = {table["child"]: (name, table) for name, table in joints.items() if not table.get("loop")}
    assert len(held) == sum(not table.get("loop") for table in joints.values()), "a body hangs on two joints"
    return held


def displacements(tables):
    """How every body has moved from where its table puts it."""
    held, found = above(tables), {}

    def of(body):
        if body not in found:
            found[body] = Pose()
            if body in held:
                joint = held[body][1]
                parent = joint.get("parent")
                axes = (
                    np.eye(3)
                    if parent is None
                    else rotation_matrix(tables["rigid"][parent].get("rotation", np.zeros(3)), 3)
                )
                found[body] = (of(parent) if parent else Pose()) @ motion(joint, axes)
        return found[body]

    for body in tables["rigid"]:
        of(body)
    return found


def frames(tables, folder=None):
    """Pose of every body's axes at the start."""
    moved = displacements(tables)
    return {name: moved[name] @ placed(table, folder) for name, table in tables["rigid"].items()}


def mass_matrix(tables, folder=None):
    """Matrix (n, n) at the start, and (joint or body, number) of every row: a free body first moves, then turns about
    its own axes; a ball turns about those of its child."""
    rigid, held, poses, moved = tables["rigid"], above(tables), frames(tables, folder), displacements(tables)
    centre = {name: poses[name].at(np.asarray(table["center"])) for name, table in rigid.items() if "center" in table}
    columns = {}  # (joint, number) -> {body: (spin, velocity of its centre)}

    def carried(body):
        found = [body]
        for one in found:
            found += [b for b, (_, joint) in held.items() if joint.get("parent") == one]
        return [one for one in found if one in centre]

    def add(key, number, spin, velocity, about, body):
        columns[key, number] = {b: (spin, velocity + np.cross(spin, centre[b] - about)) for b in carried(body)}

    still = np.zeros(3)
    for body in rigid:
        turn = poses[body].turn
        if body not in held:
            for k in range(3):
                add(body, k, still, np.eye(3)[k], still, body)
            for k in range(3):
                add(body, 3 + k, turn[:, k], still, poses[body].position, body)
            continue
        key, joint = held[body]
        before = moved[joint["parent"]] if "parent" in joint else Pose()
        anchor = before.at(np.asarray(joint["anchor"])) if "anchor" in joint else still
        if joint["kind"] == "hinge":
            add(key, 0, before.turn @ unit(joint), still, anchor, body)
        elif joint["kind"] == "prismatic":
            add(key, 0, still, before.turn @ unit(joint), still, body)
        elif joint["kind"] == "ball":
            for k in range(3):
                add(key, k, turn[:, k], still, anchor, body)
    names = list(columns)
    matrix = np.zeros((len(names), len(names)))
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            for body in columns[one].keys() & columns[other].keys():
                (w, v), (x, u) = columns[one][body], columns[other][body]
                turn, inertia = poses[body].turn, tensor(rigid[body].get("inertia", np.zeros(6)))
                matrix[i, j] += rigid[body]["mass"] * v @ u + w @ turn @ inertia @ turn.T @ x
        if one[0] in tables.get("joints", {}):
            matrix[i, i] += tables["joints"][one[0]].get("armature", 0.0)
    return matrix, names
