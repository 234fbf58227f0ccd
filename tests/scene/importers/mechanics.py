"""The mass matrix that a scene's tables of a robot stand for, from their world anchors and axes alone."""

import numpy as np

from taichi_sim.scene.importers import forward


def tensor(moments):
    xx, yy, zz, xy, xz, yz = moments
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def twists(table, turn):
    """Columns (axis of rotation, velocity of the anchor) of one joint; a ball turns about the axes of its child."""
    zero = np.zeros(3)
    if table["kind"] == "hinge":
        axis = np.asarray(table["axis"]) / np.linalg.norm(table["axis"])
        return [(axis, zero)]
    if table["kind"] == "prismatic":
        axis = np.asarray(table["axis"]) / np.linalg.norm(table["axis"])
        return [(zero, axis)]
    assert table["kind"] == "ball"
    return [(turn[:, k], zero) for k in range(3)]


def mass_matrix(robot, tables, name, joints=None, base=None):
    """Matrix (n, n), and the name of the joint of every row: a free root first moves, then turns about its own axes.

    The order is that of the robot's joints.
    """
    poses = forward(robot, joints, base)
    rigid = tables["rigid"]
    above = {body: [] for body in rigid}
    for key, table in tables.get("joints", {}).items():
        if not table.get("loop"):
            above[table["child"]].append((key, table))
    columns = {}  # (joint, number) -> {body: (spin, velocity of its centre)}

    def centre(body):
        return np.asarray(rigid[body]["center"])

    def carried(body):
        """The body and all that hangs on it."""
        found = [body]
        for one in found:
            found += [b for b, chain in above.items() if chain and chain[0][1]["parent"] == one]
        return found

    for body, table in rigid.items():
        link = next(l.name for l in robot.links if f"{name}/{l.name}" == body)
        turn, origin = poses[link].turn, poses[link].position
        if not above[body] and not table.get("fixed"):
            free = [(np.zeros(3), np.eye(3)[k]) for k in range(3)] + [(turn[:, k], np.zeros(3)) for k in range(3)]
            for number, (spin, velocity) in enumerate(free):
                columns[f"{body} free", number] = {
                    b: (spin, velocity + np.cross(spin, centre(b) - origin)) for b in carried(body)
                }
        for key, joint in above[body]:
            for number, (spin, velocity) in enumerate(twists(joint, turn)):
                columns[key, number] = {
                    b: (spin, velocity + np.cross(spin, centre(b) - np.asarray(joint["anchor"]))) for b in carried(body)
                }
    names = list(columns)
    matrix = np.zeros((len(names), len(names)))
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            for body in columns[one].keys() & columns[other].keys():
                (w, v), (x, u) = columns[one][body], columns[other][body]
                if rigid[body].get("mass"):
                    matrix[i, j] += (
                        rigid[body]["mass"] * v @ u + w @ tensor(rigid[body].get("inertia", np.zeros(6))) @ x
                    )
        if one[0] in tables.get("joints", {}):
            matrix[i, i] += tables["joints"][one[0]].get("armature", 0.0)
    return matrix, names
