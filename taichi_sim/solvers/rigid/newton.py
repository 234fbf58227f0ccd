"""The velocity problem of a step: ``r(v) = M (v - v*) - Σ Jᵀ γ(J v) = 0``, solved by Newton's method.

The matrix ``H = M + Σ Jᵀ G J`` is not symmetric, because friction follows the normal impulse. From a warm start one or
two factorisations suffice as a rule. Where the residual stalls, two *lagged* solves (normal impulse in the friction
frozen: a convex problem, after Castro et al. 2023, arXiv:2312.03908) bring the iterate nearer; where they do not help,
friction is eased first. The last resort is the similar law (``law``), which is convex; steps that needed it are marked
on the tape. What does not converge even so is reported, and the run stops.

What is not a rigid body but pushes one may enter: ``entering`` is empty or three functions, which add to the
residual of bodies (wrenches at their velocities) and to the matrix what the arrays ``others`` say, and freeze normal
impulses for lagged solves.

One task works on one environment, on one group of bodies that touch after the other (``groups``). Its memory: ``dof``,
a row for every degree of freedom, with the columns of ``twist``.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.articulated import add_block, place_masses, project
from taichi_sim.solvers.rigid.elimination import block_of, eliminate, unknown_at
from taichi_sim.solvers.rigid.geometry import (
    BIAS,
    DAMPING,
    FRICTION,
    FROZEN,
    NORMAL,
    STICTION,
    STIFF,
    column3,
)
from taichi_sim.solvers.rigid.groups import (
    apart,
    body_at,
    contact_at,
    end_of_group,
    list_contacts,
    order_bodies,
    place_of,
)
from taichi_sim.solvers.rigid.law import EXACT, LAGGED, SIMILAR, impulse, impulse_slope
from taichi_sim.solvers.rigid.tree import spread
from taichi_sim.solvers.rigid.twist import BEFORE, DELTA, FREE, NOW, RESIDUAL, TRIAL, add_wrench, body_motion

#: Residual of the velocity problem beside the size of its terms (``√J``, metric of the inverse mass).
TOLERANCE = 1e-12

#: What :func:`solve` evaluates the residual for.
START, ITERATE, SEARCH, FREEZE, DONE = 0, 1, 2, 3, 4

#: Rounds: an exact one, two lagged, an exact one; from ``EASED`` to ``SHARP`` with a stiction speed that falls by four
#: each time, to its own value (a sharp corner is what Newton's method jumps over); then lagged and exact ones again.
EASED, SHARP, ROUNDS, EVERY = 4, 14, 24, 3

#: What has entered may be a hundred times as heavy as a body: four lagged rounds before an exact one.
ENTERED = (6, 16, 29, 5)

#: Iterations of a round, cuts of a step, and evaluations of a line search.
ITERATIONS, CUTS, SEARCHES = 20, 8, 24


@ti.func
def contact_motion(dim: ti.template(), dof: ti.template(), column, e, c, bodies,
                   contact: ti.template(), contact_body: ti.template()):
    """``J v`` of a contact: velocity of A's surface relative to B's."""
    freedoms = ti.static(3 if dim == 2 else 6)
    v, w = body_motion(dim, dof, column, (e * bodies + contact_body[c][0]) * freedoms)
    out = v + w.cross(column3(contact, c, 3))
    if contact_body[c][1] >= 0:
        u, q = body_motion(dim, dof, column, (e * bodies + contact_body[c][1]) * freedoms)
        out = out - u - q.cross(column3(contact, c, 6))
    return out


@ti.func
def residual(dim: ti.template(), J: ti.template(), column, e, bodies, begin, end, first, count, lagged, soft,
             dof: ti.template(), contact: ti.template(), contact_body: ti.template(), heft: ti.template(),
             inertia_world: ti.template(), entering: ti.template(), others: ti.template()):
    """Fill RESIDUAL of a group for the velocities in ``column``. Returns its size in the metric of the inverse mass,
    the size of the terms it is the difference of, and how far the velocities are from those in NOW, √J all."""
    freedoms = ti.static(3 if dim == 2 else 6)
    if ti.static(J.on):
        spread(dim, J.tree, e, column, 0, column)
    size, moved = 0.0, 0.0
    at = e * bodies * freedoms
    for s in range(begin, end):
        b = e * bodies + body_at(freedoms, at, s, dof)
        v, w = body_motion(dim, dof, column, b * freedoms)
        u, q = body_motion(dim, dof, NOW, b * freedoms)
        moved = moved + heft[b] * (v - u).norm_sqr() + (w - q).dot(inertia_world[b] @ (w - q))
        u, q = body_motion(dim, dof, FREE, b * freedoms)
        for a in range(freedoms):
            dof[b * freedoms + a, RESIDUAL] = 0.0
        I = inertia_world[b]
        add_wrench(dim, dof, RESIDUAL, b * freedoms, heft[b] * (v - u), I @ (w - q))
        size = size + heft[b] * (v.norm_sqr() + u.norm_sqr()) + w.dot(I @ w) + q.dot(I @ q)
    for i in range(count):
        c = contact_at(first, i, contact)
        motion = contact_motion(dim, dof, column, e, c, bodies, contact, contact_body)
        gamma, gn = impulse(motion, column3(contact, c, 0), contact[c][STIFF], contact[c][BIAS], contact[c][FRICTION],
                            contact[c][DAMPING], soft * contact[c][STICTION], lagged, contact[c][FROZEN])
        contact[c][NORMAL] = gn
        if gamma.norm_sqr() > 0.0:
            add_wrench(dim, dof, RESIDUAL, (e * bodies + contact_body[c][0]) * freedoms, -gamma,
                       gamma.cross(column3(contact, c, 3)))
            if contact_body[c][1] >= 0:
                add_wrench(dim, dof, RESIDUAL, (e * bodies + contact_body[c][1]) * freedoms, gamma,
                           column3(contact, c, 6).cross(gamma))
    if ti.static(len(entering) > 0):
        size = size + entering[0](dim, column, e, bodies, lagged, soft, dof, heft, others)
    norm = 0.0
    if ti.static(J.on):
        norm = project(dim, J, e, column)
    else:
        for s in range(begin, end):
            b = e * bodies + body_at(freedoms, at, s, dof)
            r, m = body_motion(dim, dof, RESIDUAL, b * freedoms)
            I = inertia_world[b]
            norm = norm + r.norm_sqr() / heft[b]
            for a in ti.static(range(3)):
                norm = norm + m[a] * m[a] / I[a, a]
    return ti.sqrt(norm), ti.sqrt(size), ti.sqrt(moved)


@ti.func
def row_of_jacobian(dim: ti.template(), axis, arm):
    """Velocity at ``arm`` where a body moves with 1 along its degree of freedom ``axis``."""
    out = ti.Vector([0.0, 0.0, 0.0])
    turning = axis - dim
    if ti.static(dim == 2):
        turning = turning + 2
    if axis < dim:
        out = ti.Vector([ti.select(axis == d, 1.0, 0.0) for d in ti.static(range(3))])
    elif turning == 0:
        out = ti.Vector([0.0, -arm[2], arm[1]])
    elif turning == 1:
        out = ti.Vector([arm[2], 0.0, -arm[0]])
    else:
        out = ti.Vector([-arm[1], arm[0], 0.0])
    return out


@ti.func
def assemble(dim: ti.template(), J: ti.template(), e, bodies, begin, end, first, count, lagged, soft, transposed,
             dof: ti.template(), matrix: ti.template(), contact: ti.template(), contact_body: ti.template(),
             heft: ti.template(), inertia_world: ti.template(), entering: ti.template(), others: ti.template()):
    """``H`` of a group at the velocities in NOW, or its transpose."""
    freedoms = ti.static(3 if dim == 2 else 6)
    n, rows = (end - begin) * freedoms, e * bodies * freedoms
    base = rows * bodies * freedoms
    if ti.static(J.on):
        place_masses(dim, J, e, matrix)
    else:
        for i in range(n * n):
            matrix[base + i] = 0.0
        for s in range(end - begin):
            b = e * bodies + body_at(freedoms, rows, begin + s, dof)
            I = inertia_world[b]
            for a in ti.static(range(dim)):
                matrix[base + (s * freedoms + a) * (n + 1)] = heft[b]
            if ti.static(dim == 2):
                matrix[base + (s * freedoms + 2) * (n + 1)] = I[2, 2]
            else:
                for a in ti.static(range(3)):
                    for d in ti.static(range(3)):
                        matrix[base + (s * freedoms + 3 + a) * n + s * freedoms + 3 + d] = I[a, d]
    for l in range(count):
        c = contact_at(first, l, contact)
        motion = contact_motion(dim, dof, NOW, e, c, bodies, contact, contact_body)
        G = impulse_slope(motion, column3(contact, c, 0), contact[c][STIFF], contact[c][BIAS], contact[c][FRICTION],
                          contact[c][DAMPING], soft * contact[c][STICTION], lagged, contact[c][FROZEN])
        if G.norm_sqr() > 0.0:
            if transposed == 1:
                G = G.transpose()
            if ti.static(J.on):
                add_block(dim, J.tree, matrix, e, G, contact_body[c][0], column3(contact, c, 3), contact_body[c][1],
                          column3(contact, c, 6), 0)
            else:
                sides, ahead, behind = 1, place_of(freedoms, rows, contact_body[c][0], dof) - begin, 0
                if contact_body[c][1] >= 0:
                    sides, behind = 2, place_of(freedoms, rows, contact_body[c][1], dof) - begin
                for i in range(sides * freedoms):
                    left, row, sign = column3(contact, c, 3), ahead * freedoms + i, 1.0
                    if i >= freedoms:
                        left, row, sign = column3(contact, c, 6), behind * freedoms + i - freedoms, -1.0
                    pushed = sign * (G.transpose() @ row_of_jacobian(dim, i % freedoms, left))
                    for j in range(sides * freedoms):
                        right, place, turn = column3(contact, c, 3), ahead * freedoms + j, 1.0
                        if j >= freedoms:
                            right, place, turn = column3(contact, c, 6), behind * freedoms + j - freedoms, -1.0
                        at = base + row * n + place
                        matrix[at] = matrix[at] + turn * pushed.dot(row_of_jacobian(dim, j % freedoms, right))
    if ti.static(len(entering) > 0):
        entering[1](dim, J, NOW, e, bodies, lagged, soft, transposed, dof, matrix, others)


@ti.func
def copy_column(block: ti.template(), at, begin, n, source, target, dof: ti.template()):
    """One column of ``dof`` into another, for the ``n`` unknowns of a group."""
    for p in range(n):
        i = unknown_at(block, at, begin, p, dof)
        dof[i, target] = dof[i, source]


@ti.func
def along(block: ti.template(), at, begin, n, dof: ti.template()):
    """Residual along the Newton step; of a convex problem the slope of its energy."""
    total = 0.0
    for p in range(n):
        i = unknown_at(block, at, begin, p, dof)
        total = total + dof[i, DELTA] * dof[i, RESIDUAL]
    return total


@ti.func
def solve(dim: ti.template(), J: ti.template(), e, bodies, first, count, tolerance, loose, floor, dof: ti.template(),
          matrix: ti.template(), contact: ti.template(), contact_body: ti.template(), heft: ti.template(),
          inertia_world: ti.template(), entering: ti.template(), others: ti.template()):
    """Velocity after the step into NOW, from FREE and BEFORE. Returns 1 where it converged, 3 where only the similar
    law did, else 0; and factorisations, of the group that took most. Where bodies hang on joints, or others enter, all
    bodies are one group.
    """
    freedoms = ti.static(3 if dim == 2 else 6)
    at = e * bodies * freedoms
    order_bodies(freedoms, ti.static(apart(J, entering)), at, bodies, first, count, contact_body, dof)
    converged, work, turn = 1, 0, 0
    while turn < 2:  # where one group takes the similar law all do: the tape knows one law a step
        begin, least, most = 0, 3, 0
        while begin < bodies:
            end = end_of_group(
                freedoms, ti.static(apart(J, entering)), at, begin, bodies, first, count, contact_body, dof)
            listed = list_contacts(
                freedoms, ti.static(apart(J, entering)), at, begin, end, first, count, contact, contact_body, dof)
            if ti.static(apart(J, entering)) and listed == 0:
                copy_column(freedoms, at, begin, (end - begin) * freedoms, FREE, NOW, dof)
            else:
                found, factored = solve_group(
                    dim, J, e, bodies, begin, end, turn, first, listed, tolerance, loose, floor, dof, matrix, contact,
                    contact_body, heft, inertia_world, entering, others)
                least, most = ti.min(least, found), ti.max(most, found)
                work = ti.max(work, factored)
            begin = end
        converged = ti.select(least == 0, 0, ti.max(most, 1))
        turn = ti.select(converged == 3 and least == 1, turn + 1, 2)
    return converged, work


@ti.func
def solve_group(dim: ti.template(), J: ti.template(), e, bodies, begin, end, turn, first, count, tolerance, loose,
                floor, dof: ti.template(), matrix: ti.template(), contact: ti.template(), contact_body: ti.template(),
                heft: ti.template(), inertia_world: ti.template(), entering: ti.template(), others: ti.template()):
    """:func:`solve` of the bodies at places ``begin … end``, with the ``count`` contacts listed.

    The residual has to fall to ``tolerance`` times the size of its terms plus ``floor`` (√J). What has entered takes
    momentum, and what is left of the residual is momentum lost: then a last step is made from that point.

    Written as one loop around one evaluation of the residual, because every evaluation in the text is compiled anew:
    ``phase`` says what is evaluated. Newton starts from the better of the velocity before (resting contact) and the one
    without contacts (flight). A residual below ``loose`` will do where it falls no longer tenfold (impacts: their
    stiffness magnifies rounding). So does friction that sticks: its slope times the rounding of a velocity may be more
    than the residual should be; a full step that moves nothing to a tenth of ``tolerance`` is therefore the last
    (to ``tolerance`` where all else has been tried).
    """
    freedoms = ti.static(3 if dim == 2 else 6)
    eased, sharp, rounds, every = ti.static(ENTERED if len(entering) > 0 else (EASED, SHARP, ROUNDS, EVERY))
    n, at, base = (end - begin) * freedoms, e * bodies * freedoms, e * bodies * freedoms * bodies * freedoms
    if ti.static(J.on):
        n = J.tree.extent[6]
        at, base = e * n, e * n * n
    converged, work, iteration, cut = 0, 0, 0, 0
    stage, lagged = ti.select(turn == 0, 0, rounds), ti.select(turn == 0, EXACT, SIMILAR)
    norm, step, taken, least, soft = 0.0, 1.0, 1.0, 0.0, 1.0
    low, high, below, above, steep = 0.0, 1.0, 0.0, 0.0, 0.0
    phase, column = START, BEFORE
    while phase != DONE:
        value, size, moved = residual(dim, J, column, e, bodies, begin, end, first, count, lagged, soft, dof, contact,
                                      contact_body, heft, inertia_world, entering, others)
        enough = tolerance * (floor + size)
        if phase == START:
            if column == BEFORE:
                least = value
                column = FREE
            else:
                copy_column(ti.static(block_of(dim, J)), at, begin, n, ti.select(least < value, BEFORE, FREE), NOW,
                            J.unknown)
                phase, column = ITERATE, NOW
        elif phase == FREEZE:
            for l in range(count):
                c = contact_at(first, l, contact)
                contact[c][FROZEN] = contact[c][NORMAL]
            if ti.static(len(entering) > 0):
                entering[2](e, others)
            phase, lagged, iteration = ITERATE, LAGGED, 0
        elif phase == ITERATE:
            stalled = lagged == EXACT and iteration > 2 and least >= 0.999 * norm
            if lagged != EXACT:
                enough = loose * (floor + size)
            good = value <= enough or (iteration > 1 and least >= 0.1 * norm and value <= loose * (floor + size))
            if good and lagged != LAGGED and soft == 1.0:
                converged = 1 + lagged
            if converged > 0 and (ti.static(len(entering) == 0) or value <= 0.01 * enough):
                phase = DONE
            elif converged == 0 and (value <= enough or iteration == ITERATIONS or stalled):
                # this round can do no more, or has done what it can
                stage = stage + 1
                lagged = EXACT
                iteration = 0
                soft = 1.0
                for _ in range(stage, sharp):
                    soft = 4.0 * soft
                phase = ITERATE
                if stage < eased or stage > sharp:
                    soft = 1.0
                    phase = ti.select(stage % every == 0, ITERATE, FREEZE)
                if stage == eased:
                    copy_column(ti.static(block_of(dim, J)), at, begin, n, FREE, NOW, J.unknown)
                if stage >= rounds:
                    phase, lagged = ITERATE, SIMILAR
                    if stage == rounds + 3:
                        phase = DONE
            else:
                norm = value
                work = work + 1
                iteration = iteration + 1
                for p in range(n):
                    i = unknown_at(ti.static(block_of(dim, J)), at, begin, p, J.unknown)
                    J.unknown[i, DELTA] = -J.unknown[i, RESIDUAL]
                assemble(dim, J, e, bodies, begin, end, first, count, lagged, soft, 0, dof, matrix, contact,
                         contact_body, heft, inertia_world, entering, others)
                eliminate(ti.static(block_of(dim, J)), at, begin, base, n, J.unknown, matrix)
                phase, column, step, cut, least = SEARCH, TRIAL, 1.0, 0, -1.0
                steep = along(ti.static(block_of(dim, J)), at, begin, n, J.unknown)
                low, high, below, above = 0.0, 1.0, steep, 0.0
                for p in range(n):
                    i = unknown_at(ti.static(block_of(dim, J)), at, begin, p, J.unknown)
                    J.unknown[i, TRIAL] = J.unknown[i, NOW] + J.unknown[i, DELTA]
                if ti.static(len(entering) > 0):
                    if converged > 0:
                        copy_column(ti.static(block_of(dim, J)), at, begin, n, TRIAL, NOW, J.unknown)
                        phase = DONE
        else:
            if least < 0.0 or value < least:
                least = value
                taken = step
            cut = cut + 1
            slope = along(ti.static(block_of(dim, J)), at, begin, n, J.unknown)
            good = value < norm * (1.0 - 0.1 * step)
            still = cut == 1 and soft == 1.0 and moved <= ti.select(stage < SHARP, 0.1, 1.0) * enough
            if lagged != EXACT:  # convex: down its energy, whatever the residual does
                good = ti.abs(slope) <= 0.25 * ti.abs(steep)
            if still and lagged != LAGGED:
                converged = 1 + lagged
                phase, column, step = DONE, NOW, 1.0
            elif good or cut == SEARCHES:
                if not good:
                    step = taken
                phase, column = ITERATE, NOW
            else:
                if slope > 0.0 and below < 0.0:
                    below = ti.select(above > 0.0 and (cut > CUTS or lagged != EXACT), 0.5 * below, below)
                    high, above = step, slope
                elif above > 0.0:
                    above = ti.select(cut > CUTS or lagged != EXACT, 0.5 * above, above)
                    low, below = step, slope
                if above > 0.0 and (cut >= CUTS or lagged != EXACT):  # the root of the slope lies between: Illinois
                    step = (low * above - high * below) / (above - below)
                else:
                    step = 0.4 * step
            for p in range(n):
                i = unknown_at(ti.static(block_of(dim, J)), at, begin, p, J.unknown)
                J.unknown[i, column] = J.unknown[i, NOW] + step * J.unknown[i, DELTA]
    if ti.static(J.on):  # the last step has moved what velocities of links follow from
        spread(dim, J.tree, e, NOW, 0, NOW)
    return converged, work
