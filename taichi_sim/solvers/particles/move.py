"""One step of one particle from slot ``k`` to ``k + 1``, and its adjoint in phases.

Forces give a velocity (``accelerate``), with which the particle moves (``settle``). Between the two a guest may act.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.particles.arrays import GROUP, HELD
from taichi_sim.solvers.particles.forces import (
    contact_forces,
    contact_forces_adjoint,
    elastic_forces,
    elastic_forces_adjoint,
)
from taichi_sim.solvers.particles.search import COUNT, GROUPS, WALLS
from taichi_sim.solvers.particles.walls import walls, walls_adjoint


@ti.func
def inertia(dim: ti.template(), m, r):
    """Moment of inertia of a solid sphere or disc."""
    return ti.static(0.4 if dim == 3 else 0.5) * m * r * r


@ti.func
def accelerate(
    has: ti.template(), e, worker, i, k, f, x: ti.template(), v: ti.template(), spin: ti.template(),
    partner: ti.template(), stretch: ti.template(), roll: ti.template(), mass: ti.template(), radius: ti.template(),
    spring: ti.template(), bend_stiffness: ti.template(), surface: ti.template(), step: ti.template(),
    gravity: ti.template(), wall_normal: ti.template(), wall: ti.template(), obstacle_friction: ti.template(),
    particle_force: ti.template(), impulse: ti.template(), group_force: ti.template(), actuation: ti.template(),
    tag: ti.template(), edge: ti.template(), head: ti.template(), spring_of: ti.template(), bend: ti.template(),
    bend_of: ti.template(), wall_kind: ti.template(), distance: ti.template(), grid: ti.template(),
    neighbour: ti.template(), built: ti.template(), reach: ti.template(), extent: ti.template(),
    stale: ti.template(), flag: ti.template(),
):
    """Gather what acts on particle ``i`` in slot ``k``: its velocity before hard walls. Spin and springs of contacts
    go into slot ``k + 1``."""
    h, keep, m = step[e][0], ti.exp(-step[e][0] * step[e][1]), mass[i]
    t = tag[i - e * extent[COUNT]]
    F = elastic_forces(has, e, i, k, f, x, v, spring, bend_stiffness, actuation, edge, head, spring_of, bend, bend_of,
                       extent)
    if ti.static(has.grains):
        if (x[k, i] - built[i]).norm_sqr() > reach[0][1]:
            stale[k, e] = 1
        push, T = contact_forces(has, e, worker, i, k, x, v, spin, partner, stretch, roll, radius, surface, step,
                                 wall_normal, wall, obstacle_friction, tag, wall_kind, distance, grid, neighbour,
                                 extent, flag)
        F = F + push
        spin[k + 1, i] = spin[k, i]
        if t[HELD] == 0 and radius[i] > 0.0:
            spin[k + 1, i] = keep * spin[k, i] + (h / inertia(has.dim, m, radius[i])) * T
    if ti.static(has.loaded):
        F = F + group_force[f, e * extent[GROUPS] + t[GROUP]]
    if ti.static(has.driven):
        F = F + particle_force[ti.min(f, particle_force.shape[0] - 1), i]
    after = keep * v[k, i] + h * (F / m + gravity[e])
    if ti.static(has.coupled):
        after = after + impulse[k, i] / m
    if t[HELD] == 1:
        after = v[k, i]
    return after


@ti.func
def settle(has: ti.template(), e, i, k, free, x: ti.template(), v: ti.template(), radius: ti.template(),
           step: ti.template(), wall_normal: ti.template(), wall: ti.template(), tag: ti.template(),
           wall_kind: ti.template(), free_velocity: ti.template(), extent: ti.template()):
    """Stop particle ``i`` with the velocity ``free`` at hard walls and move it to slot ``k + 1``."""
    h, held, after = step[e][0], tag[i - e * extent[COUNT]][HELD], free
    if held == 1:
        after = v[k, i]
    drift = h * after
    if ti.static(has.hard):
        free_velocity[k, i] = after
        if held == 0:
            after, drift = walls(extent[WALLS], e * extent[WALLS], x[k, i], after, radius[i], h, wall_kind,
                                 wall_normal, wall)
    v[k + 1, i] = after
    x[k + 1, i] = x[k, i] + drift


@ti.func
def settle_adjoint(
    has: ti.template(), part, e, i, k, x: ti.template(), v: ti.template(), radius: ti.template(), step: ti.template(),
    wall_normal: ti.template(), wall: ti.template(), tag: ti.template(), wall_kind: ti.template(),
    free_velocity: ti.template(), extent: ti.template(), d_x: ti.template(), d_v: ti.template(),
    d_radius: ti.template(), d_wall_normal: ti.template(), d_wall: ti.template(), force_bar: ti.template(),
):
    """Adjoint of :func:`settle`: that of ``free`` into ``force_bar``, those of slot ``k`` that are not by way of it
    into ``d_x`` and ``d_v``. Returns ``h_bar``."""
    h, held = step[e][0], tag[i - e * extent[COUNT]][HELD]
    x_bar = d_x[i]
    free_bar, h_bar = d_v[i] + h * x_bar, 0.0 * h
    if ti.static(has.hard):
        if held == 0:
            free_bar, here_bar, r_bar, h_bar = walls_adjoint(
                part, extent[WALLS], e * extent[WALLS], x[k, i], free_velocity[k, i], radius[i], h, d_v[i], x_bar,
                wall_kind, wall_normal, wall, d_wall_normal, d_wall)
            d_x[i] = x_bar + here_bar
            d_radius[i] = d_radius[i] + ti.cast(r_bar, ti.f64)
        else:
            h_bar = x_bar.dot(v[k, i])
    else:
        h_bar = x_bar.dot(v[k + 1, i])
    d_v[i] = 0.0 * free_bar
    force_bar[i] = free_bar
    if held == 1:
        d_v[i] = free_bar
        force_bar[i] = 0.0 * free_bar
    return h_bar


@ti.func
def release_adjoint(
    has: ti.template(), part, e, i, k, f, drift_bar, v: ti.template(), spin: ti.template(), mass: ti.template(),
    radius: ti.template(), step: ti.template(), gravity: ti.template(), particle_force: ti.template(),
    tag: ti.template(), extent: ti.template(), d_v: ti.template(), d_spin: ti.template(), d_stretch: ti.template(),
    d_roll: ti.template(), d_step: ti.template(), d_gravity: ti.template(), d_particle_force: ti.template(),
    d_impulse: ti.template(), d_group_force: ti.template(), force_bar: ti.template(), torque_bar: ti.template(),
    stretch_bar: ti.template(), roll_bar: ti.template(),
):
    """First phase of the adjoint of :func:`accelerate`: from the velocity in ``force_bar`` to force, torque and contact
    springs; what needs no neighbours. ``drift_bar`` is the ``h_bar`` of :func:`settle_adjoint`."""
    h, c, m = step[e][0], step[e][1], mass[i]
    keep = ti.exp(-h * c)
    t = tag[i - e * extent[COUNT]]
    free_bar, h_bar, c_bar = force_bar[i], drift_bar, 0.0 * h
    force_bar[i] = 0.0 * free_bar
    if t[HELD] == 1:
        d_v[i] = d_v[i] + free_bar
    else:
        decay = keep * v[k, i].dot(free_bar)
        d_v[i] = d_v[i] + keep * free_bar
        force_bar[i] = (h / m) * free_bar
        d_gravity[part, e] = d_gravity[part, e] + ti.cast(h * free_bar, ti.f64)
        h_bar = h_bar + gravity[e].dot(free_bar)
        if ti.static(has.grains):
            if radius[i] > 0.0:
                decay = decay + keep * spin[k, i].dot(d_spin[i])
        h_bar = h_bar - c * decay
        c_bar = -h * decay
    if ti.static(has.coupled):
        d_impulse[k, i] = ti.cast(force_bar[i] / h, ti.f64)
    if ti.static(has.driven):
        row = ti.min(f, particle_force.shape[0] - 1)
        d_particle_force[row, i] = d_particle_force[row, i] + ti.cast(force_bar[i], ti.f64)
    if ti.static(has.loaded):
        g = e * extent[GROUPS] + t[GROUP]
        d_group_force[part, f, g] = d_group_force[part, f, g] + ti.cast(force_bar[i], ti.f64)
    if ti.static(has.grains):
        torque_bar[i] = 0.0 * d_spin[i]
        if t[HELD] == 0 and radius[i] > 0.0:
            torque_bar[i] = (h / inertia(has.dim, m, radius[i])) * d_spin[i]
            d_spin[i] = keep * d_spin[i]
        for s in range(stretch_bar.shape[1]):
            stretch_bar[i, s] = d_stretch[i, s]
            d_stretch[i, s] = 0.0 * d_stretch[i, s]
            if ti.static(has.rolling):
                roll_bar[i, s] = d_roll[i, s]
                d_roll[i, s] = 0.0 * d_roll[i, s]
    d_step[part, e] = d_step[part, e] + ti.cast(ti.Vector([h_bar, c_bar]), ti.f64)


@ti.func
def gather_adjoint(
    has: ti.template(), part, e, i, k, f, x: ti.template(), v: ti.template(), spin: ti.template(),
    partner: ti.template(), stretch: ti.template(), roll: ti.template(), mass: ti.template(), radius: ti.template(),
    spring: ti.template(), bend_stiffness: ti.template(), surface: ti.template(), step: ti.template(),
    wall_normal: ti.template(), wall: ti.template(), obstacle_friction: ti.template(), particle_force: ti.template(),
    impulse: ti.template(), group_force: ti.template(), actuation: ti.template(), tag: ti.template(),
    edge: ti.template(), head: ti.template(), spring_of: ti.template(), bend: ti.template(), bend_of: ti.template(),
    wall_kind: ti.template(), distance: ti.template(), grid: ti.template(), neighbour: ti.template(),
    extent: ti.template(), d_x: ti.template(), d_v: ti.template(), d_spin: ti.template(), d_stretch: ti.template(),
    d_roll: ti.template(), d_mass: ti.template(), d_radius: ti.template(), d_spring: ti.template(),
    d_bend_stiffness: ti.template(), d_surface: ti.template(), d_step: ti.template(), d_wall_normal: ti.template(),
    d_wall: ti.template(), d_obstacle_friction: ti.template(), d_actuation: ti.template(), force_bar: ti.template(),
    torque_bar: ti.template(), stretch_bar: ti.template(), roll_bar: ti.template(),
):
    """Second phase: from the forces on particle ``i`` and its neighbours to what belongs to particle ``i``."""
    h, m, r = step[e][0], mass[i], radius[i]
    t = tag[i - e * extent[COUNT]]
    x_bar, v_bar = elastic_forces_adjoint(has, part, e, i, k, f, x, v, spring, bend_stiffness, actuation, edge, head,
                                          spring_of, bend, bend_of, extent, force_bar, d_spring, d_bend_stiffness,
                                          d_actuation)
    F = elastic_forces(has, e, i, k, f, x, v, spring, bend_stiffness, actuation, edge, head, spring_of, bend, bend_of,
                       extent)
    if ti.static(has.loaded):
        F = F + group_force[f, e * extent[GROUPS] + t[GROUP]]
    if ti.static(has.driven):
        F = F + particle_force[ti.min(f, particle_force.shape[0] - 1), i]
    m_bar, h_bar = 0.0 * m, 0.0 * h
    if ti.static(has.grains):
        push, T, there_bar, motion_bar, spin_bar, r_bar, step_bar = contact_forces_adjoint(
            has, part, e, i, k, x, v, spin, partner, stretch, roll, radius, surface, step, wall_normal, wall,
            obstacle_friction, tag, wall_kind, distance, grid, neighbour, extent, force_bar, torque_bar, stretch_bar,
            roll_bar, d_stretch, d_roll, d_surface, d_wall_normal, d_wall, d_obstacle_friction)
        F = F + push
        x_bar = x_bar + there_bar
        v_bar = v_bar + motion_bar
        d_spin[i] = d_spin[i] + spin_bar
        power = T.dot(torque_bar[i])
        h_bar = step_bar + power / h
        m_bar = -power / m
        if r > 0.0:
            r_bar = r_bar - 2.0 * power / r
        d_radius[i] = d_radius[i] + ti.cast(r_bar, ti.f64)
    h_bar = h_bar + F.dot(force_bar[i]) / h
    if ti.static(has.coupled):
        F = F + impulse[k, i] / h
    m_bar = m_bar - F.dot(force_bar[i]) / m
    d_x[i] = d_x[i] + x_bar
    d_v[i] = d_v[i] + v_bar
    d_mass[i] = d_mass[i] + ti.cast(m_bar, ti.f64)
    d_step[part, e] = d_step[part, e] + ti.cast(ti.Vector([h_bar, 0.0]), ti.f64)
