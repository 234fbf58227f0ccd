"""What acts on one particle, gathered from its springs, bends and contacts, and the adjoint of that."""

from taichi_sim.runtime import ti
from taichi_sim.solvers.particles.arrays import COMPLIANT, SURFACE
from taichi_sim.solvers.particles.contact import contact, contact_adjoint
from taichi_sim.solvers.particles.obstacle import sample, sample_adjoint
from taichi_sim.solvers.particles.search import ACTUATORS, BENDS, COUNT, CROWDED, EDGES, SURFACES, WALLS
from taichi_sim.solvers.particles.springs import (
    bend_part,
    bend_slopes,
    bend_slopes_adjoint,
    one_over,
    spring_force,
    spring_force_adjoint,
)

#: Centres nearer than this, m, have no direction between them and do not push each other.
COINCIDENT = 1e-12


@ti.func
def elastic_forces(has: ti.template(), e, i, k, f, x: ti.template(), v: ti.template(), spring: ti.template(),
                   bend_stiffness: ti.template(), actuation: ti.template(), edge: ti.template(), head: ti.template(),
                   spring_of: ti.template(), bend: ti.template(), bend_of: ti.template(), extent: ti.template()):
    """Force of all springs and bends on particle ``i``."""
    i0 = e * extent[COUNT]
    p = i - i0
    F = x[k, i] * 0.0
    if ti.static(has.springs):
        for s in range(head[p][0], head[p + 1][0]):
            q = spring_of[s] // 2
            a, b, c = i0 + edge[q][0], i0 + edge[q][1], spring[e * extent[EDGES] + q]
            rest = c[2] * (1.0 + actuation[f, e * extent[ACTUATORS] + edge[q][2]])
            force = spring_force(x[k, b] - x[k, a], v[k, b] - v[k, a], c[0], c[1], rest)
            F = F + ti.cast(1 - 2 * (spring_of[s] % 2), float) * force
    if ti.static(has.bends):
        for s in range(head[p][1], head[p + 1][1]):
            q = bend_of[s] // 3
            b = i0 + bend[q][1]
            g1, g2 = bend_slopes(x[k, b] - x[k, i0 + bend[q][0]], x[k, i0 + bend[q][2]] - x[k, b])
            F = F + bend_stiffness[e * extent[BENDS] + q] * bend_part(bend_of[s] % 3, g1, g2)
    return F


@ti.func
def elastic_forces_adjoint(has: ti.template(), part, e, i, k, f, x: ti.template(), v: ti.template(),
                           spring: ti.template(), bend_stiffness: ti.template(), actuation: ti.template(),
                           edge: ti.template(), head: ti.template(), spring_of: ti.template(), bend: ti.template(),
                           bend_of: ti.template(), extent: ti.template(), force_bar: ti.template(),
                           d_spring: ti.template(), d_bend_stiffness: ti.template(), d_actuation: ti.template()):
    """Adjoint of :func:`elastic_forces` of all particles by position and velocity of particle ``i``; those of a spring
    or bend are added once, by the first of its ends."""
    i0 = e * extent[COUNT]
    p = i - i0
    x_bar, v_bar = x[k, i] * 0.0, x[k, i] * 0.0
    if ti.static(has.springs):
        for s in range(head[p][0], head[p + 1][0]):
            q, side = spring_of[s] // 2, spring_of[s] % 2
            a, b, at = i0 + edge[q][0], i0 + edge[q][1], e * extent[EDGES] + q
            c, u = spring[at], e * extent[ACTUATORS] + edge[q][2]
            factor = 1.0 + actuation[f, u]
            e_bar, w_bar, k_bar, c_bar, rest_bar = spring_force_adjoint(
                x[k, b] - x[k, a], v[k, b] - v[k, a], c[0], c[1], c[2] * factor, force_bar[a] - force_bar[b])
            sign = ti.cast(2 * side - 1, float)
            x_bar = x_bar + sign * e_bar
            v_bar = v_bar + sign * w_bar
            if side == 0:
                d_spring[at] = d_spring[at] + ti.cast(ti.Vector([k_bar, c_bar, factor * rest_bar]), ti.f64)
                d_actuation[part, f, u] = d_actuation[part, f, u] + ti.cast(c[2] * rest_bar, ti.f64)
    if ti.static(has.bends):
        for s in range(head[p][1], head[p + 1][1]):
            q, place = bend_of[s] // 3, bend_of[s] % 3
            a, b, c = i0 + bend[q][0], i0 + bend[q][1], i0 + bend[q][2]
            e1, e2 = x[k, b] - x[k, a], x[k, c] - x[k, b]
            p1, p2, at = force_bar[a] - force_bar[b], force_bar[b] - force_bar[c], e * extent[BENDS] + q
            e1_bar, e2_bar = bend_slopes_adjoint(e1, e2, p1, p2)
            x_bar = x_bar - bend_stiffness[at] * bend_part(place, e1_bar, e2_bar)
            if place == 0:
                g1, g2 = bend_slopes(e1, e2)
                d_bend_stiffness[at] = d_bend_stiffness[at] + ti.cast(p1.dot(g1) + p2.dot(g2), ti.f64)
    return x_bar, v_bar


@ti.func
def locate(has: ti.template(), e, i, m, k, x: ti.template(), v: ti.template(), spin: ti.template(),
           radius: ti.template(), surface: ti.template(), wall_normal: ti.template(), wall: ti.template(),
           obstacle_friction: ti.template(), tag: ti.template(), wall_kind: ti.template(), distance: ti.template(),
           grid: ti.template(), neighbour: ti.template(), extent: ti.template()):
    """Candidate ``m`` of particle ``i`` (neighbours, walls, obstacle): what :func:`contact` wants to know of it.

    Returns index of the other (particles, walls, obstacle), normal, distance, overlap, relative velocity, weighted
    spin, relative spin, reduced radius, share of the arm, and stiffness, damping, friction, rolling of the pair.
    """
    i0 = e * extent[COUNT]
    r, mine = radius[i], surface[e * extent[SURFACES] + tag[i - i0][SURFACE]]
    hertz = ti.static(4.0 / 3.0 if has.hertz else 1.0)
    n, relative, W, turn = x[k, i] * 0.0, v[k, i], spin[k, i], spin[k, i]
    L, delta, R, share, pair, other = r * 0.0, r * 0.0, r, r * 0.0 + 1.0, mine, 0
    if m < neighbour[i, 0]:
        other = neighbour[i, 1 + m]
        j = i0 + other
        away = x[k, i] - x[k, j]
        both = r + radius[j]
        if away.norm_sqr() < both * both:
            L = away.norm()
            n = one_over(L, COINCIDENT) * away
            delta = both - L
            share = r / both
            R = share * radius[j]
            relative = v[k, i] - v[k, j]
            W = share * spin[k, i] + (radius[j] / both) * spin[k, j]
            turn = spin[k, i] - spin[k, j]
            theirs = surface[e * extent[SURFACES] + tag[other][SURFACE]]
            pair = 0.5 * (mine + theirs)
            pair[0] = hertz * mine[0] * theirs[0] / (mine[0] + theirs[0])
    else:
        w = m - neighbour[i, 0]
        other = extent[COUNT] + w
        pair[0] = hertz * mine[0]
        if w < extent[WALLS]:
            if wall_kind[w] == COMPLIANT:
                n = wall_normal[e * extent[WALLS] + w]
                L = n.dot(x[k, i]) - wall[e * extent[WALLS] + w][0]
                delta = r - L
                pair[2] = wall[e * extent[WALLS] + w][1]
        elif ti.static(has.obstacle):
            L, n, inside = sample(has.dim, x[k, i], distance, grid, extent)
            if inside == 1:
                delta = r - L
            pair[2] = obstacle_friction[e]
    return other, n, L, delta, relative, W, turn, R, share, pair


@ti.func
def contact_forces(has: ti.template(), e, worker, i, k, x: ti.template(), v: ti.template(), spin: ti.template(),
                   partner: ti.template(), stretch: ti.template(), roll: ti.template(), radius: ti.template(),
                   surface: ti.template(), step: ti.template(), wall_normal: ti.template(), wall: ti.template(),
                   obstacle_friction: ti.template(), tag: ti.template(), wall_kind: ti.template(),
                   distance: ti.template(), grid: ti.template(), neighbour: ti.template(), extent: ti.template(),
                   flag: ti.template()):
    """Force and torque of all contacts on particle ``i``; their springs go into slot ``k + 1``."""
    F, T = x[k, i] * 0.0, spin[k, i] * 0.0
    room = partner.shape[2]
    before, after = 0, 0
    if radius[i] > 0.0 and tag[i - e * extent[COUNT]][SURFACE] >= 0:
        for m in range(neighbour[i, 0] + extent[WALLS] + ti.static(int(has.obstacle))):
            other, n, L, delta, relative, W, turn, R, share, pair = locate(
                has, e, i, m, k, x, v, spin, radius, surface, wall_normal, wall, obstacle_friction, tag, wall_kind,
                distance, grid, neighbour, extent)
            if delta > 0.0:
                kept, rolled = n * 0.0, spin[k, i] * 0.0
                while before < room and partner[k, i, ti.min(before, room - 1)] >= 0 and (
                        partner[k, i, ti.min(before, room - 1)] < other):
                    before = before + 1
                if before < room and partner[k, i, ti.min(before, room - 1)] == other:
                    kept = stretch[k, i, before]
                    if ti.static(has.rolling):
                        rolled = roll[k, i, before]
                force, couple, moment, kept, rolled = contact(
                    has, n, L, delta, relative, W, turn, kept, rolled, R, pair[0], pair[1], pair[2], pair[3],
                    step[e][0])
                F = F + force
                T = T + share * couple + moment
                if after < room:
                    partner[k + 1, i, after] = other
                    stretch[k + 1, i, after] = kept
                    if ti.static(has.rolling):
                        roll[k + 1, i, after] = rolled
                elif flag[worker][0] == 0:
                    flag[worker] = ti.Vector([CROWDED, k, i - e * extent[COUNT]])
                after = after + 1
    for unused in range(after, room):
        partner[k + 1, i, unused] = -1
    return F, T


@ti.func
def contact_forces_adjoint(has: ti.template(), part, e, i, k, x: ti.template(), v: ti.template(),
                           spin: ti.template(), partner: ti.template(), stretch: ti.template(), roll: ti.template(),
                           radius: ti.template(), surface: ti.template(), step: ti.template(),
                           wall_normal: ti.template(), wall: ti.template(), obstacle_friction: ti.template(),
                           tag: ti.template(), wall_kind: ti.template(), distance: ti.template(),
                           grid: ti.template(), neighbour: ti.template(), extent: ti.template(),
                           force_bar: ti.template(), torque_bar: ti.template(), stretch_bar: ti.template(),
                           roll_bar: ti.template(), d_stretch: ti.template(), d_roll: ti.template(),
                           d_surface: ti.template(), d_wall_normal: ti.template(), d_wall: ti.template(),
                           d_obstacle_friction: ti.template()):
    """Adjoint of :func:`contact_forces` of all particles by what belongs to particle ``i``: position, velocity, spin,
    radius, time step; and its forces once more.

    Both sides of a pair hold its springs, with opposite signs; each carries the whole adjoint of the one spring.
    """
    i0 = e * extent[COUNT]
    F, T = x[k, i] * 0.0, spin[k, i] * 0.0
    x_bar, v_bar, spin_bar = F, F, T
    r_bar, h_bar = radius[i] * 0.0, radius[i] * 0.0
    room = partner.shape[2]
    before, after = 0, 0
    if radius[i] > 0.0 and tag[i - i0][SURFACE] >= 0:
        row = e * extent[SURFACES] + tag[i - i0][SURFACE]
        for m in range(neighbour[i, 0] + extent[WALLS] + ti.static(int(has.obstacle))):
            other, n, L, delta, relative, W, turn, R, share, pair = locate(
                has, e, i, m, k, x, v, spin, radius, surface, wall_normal, wall, obstacle_friction, tag, wall_kind,
                distance, grid, neighbour, extent)
            if delta > 0.0:
                at = -1
                kept, rolled, z_bar, b_bar = n * 0.0, T * 0.0, n * 0.0, T * 0.0
                while before < room and partner[k, i, ti.min(before, room - 1)] >= 0 and (
                        partner[k, i, ti.min(before, room - 1)] < other):
                    before = before + 1
                if before < room and partner[k, i, ti.min(before, room - 1)] == other:
                    at = before
                    kept = stretch[k, i, at]
                    if ti.static(has.rolling):
                        rolled = roll[k, i, at]
                if after < room:
                    z_bar = stretch_bar[i, after]
                    if ti.static(has.rolling):
                        b_bar = roll_bar[i, after]
                after = after + 1
                f_bar, c_bar, m_bar = force_bar[i], share * torque_bar[i], torque_bar[i]
                j = i0 + other
                if m < neighbour[i, 0]:
                    f_bar = f_bar - force_bar[j]
                    c_bar = c_bar + (1.0 - share) * torque_bar[j]
                    m_bar = m_bar - torque_bar[j]
                force, couple, moment, _z, _b = contact(
                    has, n, L, delta, relative, W, turn, kept, rolled, R, pair[0], pair[1], pair[2], pair[3],
                    step[e][0])
                F = F + force
                T = T + share * couple + moment
                n_bar, L_bar, delta_bar, u_bar, W_bar, turn_bar, kept_bar, rolled_bar, R_bar, pair_bar, step_bar = (
                    contact_adjoint(
                        has, n, L, delta, relative, W, turn, kept, rolled, R, pair[0], pair[1], pair[2], pair[3],
                        step[e][0], f_bar, c_bar, m_bar, z_bar, b_bar))
                v_bar = v_bar + u_bar
                spin_bar = spin_bar + share * W_bar + turn_bar
                if at >= 0:
                    d_stretch[i, at] = kept_bar
                    if ti.static(has.rolling):
                        d_roll[i, at] = rolled_bar
                hertz = ti.static(4.0 / 3.0 if has.hertz else 1.0)
                if m < neighbour[i, 0]:
                    both = radius[i] + radius[j]
                    inverse = one_over(L, COINCIDENT)
                    x_bar = x_bar + inverse * (n_bar - n_bar.dot(n) * n) + (L_bar - delta_bar) * n
                    share_bar = couple.dot(torque_bar[i] - torque_bar[j]) + W_bar.dot(spin[k, i] - spin[k, j])
                    other_share = radius[j] / both
                    r_bar = r_bar + delta_bar + share_bar * other_share / both + R_bar * other_share * other_share
                    if i < j:  # both sides know the pair; one of them speaks for its surfaces and its step
                        there = e * extent[SURFACES] + tag[other][SURFACE]
                        mine, theirs = surface[row][0], surface[there][0]
                        slope = hertz * pair_bar[0] / ((mine + theirs) * (mine + theirs))
                        mine_bar, their_bar = 0.5 * pair_bar, 0.5 * pair_bar
                        mine_bar[0] = slope * theirs * theirs
                        their_bar[0] = slope * mine * mine
                        d_surface[part, row] = d_surface[part, row] + ti.cast(mine_bar, ti.f64)
                        d_surface[part, there] = d_surface[part, there] + ti.cast(their_bar, ti.f64)
                        h_bar = h_bar + step_bar
                else:
                    away_bar = L_bar - delta_bar
                    r_bar = r_bar + delta_bar + R_bar
                    h_bar = h_bar + step_bar
                    if m - neighbour[i, 0] < extent[WALLS]:
                        w = e * extent[WALLS] + m - neighbour[i, 0]
                        x_bar = x_bar + away_bar * n
                        d_wall_normal[part, w] = d_wall_normal[part, w] + ti.cast(n_bar + away_bar * x[k, i], ti.f64)
                        d_wall[part, w] = d_wall[part, w] + ti.cast(ti.Vector([-away_bar, pair_bar[2]]), ti.f64)
                    elif ti.static(has.obstacle):
                        x_bar = x_bar + sample_adjoint(has.dim, x[k, i], distance, grid, extent, away_bar, n_bar)
                        d_obstacle_friction[part, e] = d_obstacle_friction[part, e] + ti.cast(pair_bar[2], ti.f64)
                    mine_bar = ti.Vector([hertz * pair_bar[0], pair_bar[1], 0.0, pair_bar[3]])
                    d_surface[part, row] = d_surface[part, row] + ti.cast(mine_bar, ti.f64)
    return F, T, x_bar, v_bar, spin_bar, r_bar, h_bar
