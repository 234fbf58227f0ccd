"""Groups of bodies that touch: each is a velocity problem of its own.

Bodies are ordered group by group, and along each group so that those that touch are near each other (Cuthill and McKee
1969, "Reducing the bandwidth of sparse symmetric matrices"): rows of the matrix of a pile are as long as the pile is
wide. The order follows from the contacts and the numbers of bodies alone.

It is noted in columns of ``dof``: where a body stands among all, and the body of each place. Contacts of the group at
work are listed in a column of ``contact``.
"""

from typing import Any

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.geometry import LISTED
from taichi_sim.solvers.rigid.twist import LAST_ROW, SEAT, SEATED


def apart(J: Any, entering: tuple) -> bool:
    """Whether groups are solved one by one: not where bodies hang on joints, or where others enter."""
    return not J.on and not entering


@ti.func
def body_at(freedoms: ti.template(), at, place, dof: ti.template()):
    """Body of a place; ``at`` is the environment's first row of ``dof``."""
    return ti.cast(dof[at + place * freedoms, SEATED], ti.i32)


@ti.func
def place_of(freedoms: ti.template(), at, body, dof: ti.template()):
    """Place of a body."""
    return ti.cast(dof[at + body * freedoms, SEAT], ti.i32)


@ti.func
def order_bodies(freedoms: ti.template(), split: ti.template(), at, bodies, first, count, contact_body: ti.template(),
                 dof: ti.template()):
    """Give every body its place; unless groups are ``split``, its own. A group begins with a body that has the fewest
    contacts with others."""
    for b in range(bodies):
        row = at + b * freedoms
        dof[row, SEAT] = ti.cast(b, float)
        dof[row, SEATED] = ti.cast(b, float)
        dof[row, LAST_ROW] = 0.0
    if ti.static(split):
        for b in range(bodies):
            dof[at + b * freedoms, SEAT] = -1.0
        for c in range(first, first + count):  # how many contacts with others a body has
            if contact_body[c][1] >= 0:
                for side in ti.static(range(2)):
                    row = at + contact_body[c][side] * freedoms
                    dof[row, LAST_ROW] = dof[row, LAST_ROW] + 1.0
        seated, seen = 0, 0
        while seated < bodies:
            if seen == seated:
                best, least = -1, 0.0
                for b in range(bodies):
                    row = at + b * freedoms
                    if dof[row, SEAT] < 0.0 and (best < 0 or dof[row, LAST_ROW] < least):
                        best, least = b, dof[row, LAST_ROW]
                dof[at + best * freedoms, SEAT] = ti.cast(seated, float)
                dof[at + seated * freedoms, SEATED] = ti.cast(best, float)
                seated = seated + 1
            b = body_at(freedoms, at, seen, dof)
            seen = seen + 1
            for c in range(first, first + count):
                other = -1
                if contact_body[c][0] == b:
                    other = contact_body[c][1]
                elif contact_body[c][1] == b:
                    other = contact_body[c][0]
                if other >= 0:
                    if dof[at + other * freedoms, SEAT] < 0.0:
                        dof[at + other * freedoms, SEAT] = ti.cast(seated, float)
                        dof[at + seated * freedoms, SEATED] = ti.cast(other, float)
                        seated = seated + 1


@ti.func
def end_of_group(freedoms: ti.template(), split: ti.template(), at, begin, bodies, first, count,
                 contact_body: ti.template(), dof: ti.template()):
    """One after the last place of the group that begins at place ``begin``."""
    end = bodies
    if ti.static(split):
        end = begin + 1
        reached = begin
        while reached < end:  # contacts of each place of the group
            b = body_at(freedoms, at, reached, dof)
            for c in range(first, first + count):
                if contact_body[c][1] >= 0 and (contact_body[c][0] == b or contact_body[c][1] == b):
                    for side in ti.static(range(2)):
                        end = ti.max(end, place_of(freedoms, at, contact_body[c][side], dof) + 1)
            reached = reached + 1
    return end


@ti.func
def list_contacts(freedoms: ti.template(), split: ti.template(), at, begin, end, first, count, contact: ti.template(),
                  contact_body: ti.template(), dof: ti.template()):
    """List the contacts of the group of places ``begin … end``; returns their number."""
    listed = 0
    for c in range(first, first + count):
        mine = 1
        if ti.static(split):
            place = place_of(freedoms, at, contact_body[c][0], dof)
            mine = ti.select(place >= begin and place < end, 1, 0)
        if mine == 1:
            contact[first + listed][LISTED] = ti.cast(c - first, float)
            listed = listed + 1
    return listed


@ti.func
def contact_at(first, j, contact: ti.template()):
    """Contact ``j`` of the group at work."""
    return first + ti.cast(contact[first + j][LISTED], ti.i32)
