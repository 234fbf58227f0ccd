"""Who hangs on whom: joints of a scene as the tables the kernels walk along."""

from collections.abc import Sequence
from dataclasses import dataclass

#: Kinds of joints. A body without a joint is free: its pose is its coordinate.
LOOSE, FIXED, HINGE, PRISMATIC, BALL = 0, 1, 2, 3, 4

KINDS = {"free": LOOSE, "fixed": FIXED, "hinge": HINGE, "prismatic": PRISMATIC, "ball": BALL}


def freedoms_of(kind: int, dim: int) -> int:
    """Degrees of freedom of a joint."""
    return {LOOSE: 3 if dim == 2 else 6, FIXED: 0, HINGE: 1, PRISMATIC: 1, BALL: 3}[kind]


def coordinates_of(kind: int) -> int:
    """Numbers that say where a joint stands; a ball keeps a quaternion. The pose of a free body stands elsewhere."""
    return {LOOSE: 0, FIXED: 0, HINGE: 1, PRISMATIC: 1, BALL: 4}[kind]


@dataclass(frozen=True)
class Topology:
    """Tables of one environment.

    ``links[b]``: parent (-1: the world), kind, joint (-1: none), first degree of freedom and their number, first
    coordinate. ``order``: bodies, parents first. Degrees of freedom of free bodies come first, in the order of bodies,
    then those of joints in the order of joints. ``first_freedom``, ``first_coordinate``: of every joint, counted among
    joints alone.
    """

    links: tuple[tuple[int, int, int, int, int, int], ...]
    order: tuple[int, ...]
    freedoms: int
    joint_freedoms: int
    coordinates: int
    first_freedom: tuple[int, ...]
    first_coordinate: tuple[int, ...]


def topology(dim: int, bodies: int, joints: Sequence[tuple[int, int, int]], names: Sequence[str] = ()) -> Topology:
    """Tables of ``joints``: (kind, parent, child).

    Raises ``ValueError`` naming the joint where a body has two parents, or hangs on itself.
    """
    named = list(names) or [f"joint {j}" for j in range(len(joints))]
    above: dict[int, int] = {}
    for j, (kind, parent, child) in enumerate(joints):
        if kind == LOOSE:
            continue
        if child in above:
            raise ValueError(
                f"{named[j]}: body {child} already hangs on {named[above[child]]}; close the loop with loop = true"
            )
        if not 0 <= child < bodies or not -1 <= parent < bodies:
            raise ValueError(f"{named[j]}: bodies must lie in 0 … {bodies - 1}, got {parent} and {child}")
        above[child] = j
    order: list[int] = []
    state = [0] * bodies
    for start in range(bodies):
        path = []
        b = start
        while b >= 0 and state[b] == 0:
            state[b] = 1
            path.append(b)
            b = joints[above[b]][1] if b in above else -1
        if b >= 0 and state[b] == 1:
            raise ValueError(
                f"{named[above[b]]}: body {b} hangs on itself in a loop; a tree needs one joint of it with loop = true"
            )
        for b in reversed(path):
            state[b] = 2
            order.append(b)
    first, free = {}, 0
    for b in range(bodies):
        if b not in above:
            first[b] = free
            free += freedoms_of(LOOSE, dim)
    first_freedom, first_coordinate, turning, coordinates = [], [], 0, 0
    for kind, _parent, _child in joints:
        first_freedom.append(turning)
        first_coordinate.append(coordinates)
        turning += 0 if kind == LOOSE else freedoms_of(kind, dim)
        coordinates += coordinates_of(kind)
    links = []
    for b in range(bodies):
        if b in above:
            j = above[b]
            kind, parent, _ = joints[j]
            links.append((parent, kind, j, free + first_freedom[j], freedoms_of(kind, dim), first_coordinate[j]))
        else:
            links.append((-1, LOOSE, -1, first[b], freedoms_of(LOOSE, dim), 0))
    return Topology(
        tuple(links), tuple(order), free + turning, turning, coordinates, tuple(first_freedom), tuple(first_coordinate)
    )
