"""Kernels of the coupling. Arrays of the MPM solver are called ``mpm_…`` here, those of the rigid solver as they are.

A substep is ``begin``, ``near``, ``lie``, ``answer``, ``push``; backwards ``begin``, ``lie`` and then the adjoints of
``answer``, ``lie`` and ``begin``; where particles are welded ``tie`` follows ``lie``, and ``push_tied`` and
``exchange_tied`` do for them what ``push`` and ``exchange`` do. They are separate because the time to compile a kernel
grows faster than its length.

With ``trees`` bodies hang on joints, and kernels of ``rigid.tree_kernels`` stand before and after (``stepper``). With
``events`` bodies may rebound: environments in which no particle is near a body are left to
``rigid.kernels.segment``, which splits their step at impacts; where one is, contact is compliant in that step.
"""

from taichi_sim.core.operator import light_operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.coupling.arrays import PARTITIONS, ROWS, WELDS
from taichi_sim.solvers.coupling.balance import pull_adjoint
from taichi_sim.solvers.coupling.records import keep, push_particles, search, set_frames, set_rows, set_rows_adjoint
from taichi_sim.solvers.coupling.thin import Sides
from taichi_sim.solvers.coupling.transfer import scatter_change
from taichi_sim.solvers.coupling.welds import find, push_welds, set_welds, set_welds_adjoint
from taichi_sim.solvers.rigid.articulated import Joints, drift_joints, drift_joints_adjoint, unjointed
from taichi_sim.solvers.rigid.closure import Bond
from taichi_sim.solvers.rigid.detect import detect
from taichi_sim.solvers.rigid.geometry import clear_orient_adjoint, orient, orient_adjoint
from taichi_sim.solvers.rigid.kernels import A1, A2, A3, SPREAD, freedoms_of
from taichi_sim.solvers.rigid.newton import solve
from taichi_sim.solvers.rigid.rotation import lift, lift_turn
from taichi_sim.solvers.rigid.shapes import ContactTape, ShapeBars, Shapes
from taichi_sim.solvers.rigid.step import (
    clear_turned,
    contacts_adjoint,
    drift,
    drift_adjoint,
    place_contacts,
    prepare,
    prepare_adjoint,
    solve_adjoint,
)
from taichi_sim.solvers.rigid.tree import Chain, pull
from taichi_sim.solvers.rigid.tree import spread as spread_links
from taichi_sim.solvers.rigid.twist import DELTA, NOW, RESIDUAL, add_wrench, set_motion

#: ``flag`` of an environment whose step is not the rigid solver's own; it lasts for a launch.
RESERVED = -1


@ti.func
def shared(events: ti.template(), row_count: ti.template(), e):
    """Whether an environment's step is one with particles."""
    out = 1
    if ti.static(events):
        out = ti.select(row_count[e] > 0, 1, 0)
    return out


@ti.kernel
def reserve(flag: A1, row_count: A1, envs: ti.i32, on: ti.i32):
    """Keep the rigid solver's kernels from the environments of :func:`shared` steps, or (``on`` 0) give them back."""
    for e in range(envs):
        if on == 1 and flag[e][0] == 0 and row_count[e] > 0:
            flag[e][0] = RESERVED
        elif on == 0 and flag[e][0] == RESERVED:
            flag[e][0] = 0


@light_operator
@ti.kernel
def begin(
    dim: ti.template(), alone: ti.template(),
    met: ti.template(), trees: ti.template(), position: A2, rotation: A2, velocity: A2, spin: A2,
    kick: A2, mass: A1, inertia: A1, centre: A1, point: A1, radius: A1, plane_normal: A1, plane_offset: A1,
    friction: A1, stiffness: A1, damping: A1, stiction: A1, gravity: A1, dt: A1, force: A2, torque: A2, turned: A1,
    arm: A1, face: A1, inertia_world: A1, heft: A1, dof: A2, contact: A1, contact_body: A1, taped: A2, taped_count: A2,
    grid_scale: A1, grid_place: A1, census: A1, shape: A1, pairing: A1, line: A1, point_body: A1, plane_body: A1,
    held: A1, grid: A1, lattice: A1, distances: A1, bound: A1, sequence: A1, spot: A1, level: A1, settings: A1,
    extent: A1, flag: A1, place: A1, size: A1, skin_offset: A1, axes: A1, collider: A1, sampling: A1, lattice_of: A1,
    frame: A1, origin: A1, ball: A1, hull: A1, band: A1, counts: A1, plates: ti.template(), thin_of: A1, thin: A1,
    mpm_colour: A2, envs: ti.i32, k: ti.i32, f: ti.i32, look: ti.i32,
):
    """Bodies at slot ``k``: free velocities, contacts among themselves (with ``look`` found, else as taped), and where
    their colliders are."""
    L = ti.static(Sides(plates, thin_of, thin, mpm_colour))
    S = ti.static(Shapes(
        dim, met, extent, census, shape, pairing, line, point_body, plane_body, held, grid, lattice, distances,
        position, centre, point, radius, plane_normal, plane_offset, grid_scale, grid_place, turned, arm, face))
    T = ti.static(ContactTape(taped, taped_count, flag, bound, sequence, dof, spot, level))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            if ti.static(not trees):
                prepare(dim, e, k, f, 0.5 * (kick[k, e] + dt[e]), extent[0], dof, position, rotation, velocity, spin,
                        mass, inertia, gravity, force, torque, held, turned, inertia_world, heft)
            set_frames(dim, e, k, extent[0], position, turned, centre, place, size, skin_offset, axes, collider,
                       sampling, lattice_of, band, counts, frame, origin, ball, hull, L)
            orient(S, e)
            if look == 1:
                taped_count[k, e] = ti.Vector([0, 0, 0])
                detect(S, T, e, k, dt[e], settings[1])
            place_contacts(S, e, k, dt[e], friction, stiffness, damping, stiction, contact, contact_body, taped,
                           taped_count)


@begin.adjoint
@ti.kernel
def begin_adjoint(
    dim: ti.template(), alone: ti.template(),
    met: ti.template(), trees: ti.template(), events: ti.template(), row_count: A1, position: A2,
    rotation: A2, spin: A2, kick: A2, mass: A1, inertia: A1, centre: A1, point: A1, radius: A1, plane_normal: A1,
    plane_offset: A1, grid_scale: A1, grid_place: A1, census: A1, shape: A1, pairing: A1, line: A1, held: A1, grid: A1,
    lattice: A1, distances: A1, d_grid_scale: A1, d_grid_place: A1, stiffness: A1, restitution: A1, event_settings: A1,
    gravity: A1, dt: A1, force: A2, torque: A2, turned: A1, turned_bar: A1, arm: A1, arm_bar: A1, face: A1,
    face_bar: A1, inertia_world: A1, dof: A2, contact: A1, contact_body: A1, taped: A2, taped_count: A2, point_body: A1,
    plane_body: A1, extent: A1, d_position: A1, d_rotation: A1, d_velocity: A1, d_spin: A1, d_kick: A1, d_mass: A1,
    d_inertia: A1, d_centre: A1, d_point: A1, d_radius: A1, d_plane_normal: A1, d_plane_offset: A1, d_friction: A1,
    d_stiffness: A1, d_damping: A1, d_stiction: A1, d_restitution: A1, d_gravity: A1, d_dt: A1, d_force: A3,
    d_torque: A3, envs: ti.i32, k: ti.i32, f: ti.i32,
):
    S = ti.static(Shapes(
        dim, met, extent, census, shape, pairing, line, point_body, plane_body, held, grid, lattice, distances,
        position, centre, point, radius, plane_normal, plane_offset, grid_scale, grid_place, turned, arm, face))
    D = ti.static(ShapeBars(
        d_position, d_centre, d_point, d_radius, d_plane_normal, d_plane_offset, d_grid_scale, d_grid_place,
        turned_bar, arm_bar, face_bar))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0 and shared(events, row_count, spread // SPREAD):
            e = spread // SPREAD
            clear_orient_adjoint(S, D, e)
            h_bar = contacts_adjoint(
                S, D, ti.static(unjointed(dof)._replace(on=trees)), False, e, k, dt[e], 0, 1.0, 0.0,
                taped_count[k, e][0], taped_count[k, e][2], dof, stiffness, restitution, event_settings, contact,
                contact_body, taped, d_velocity, d_spin, d_friction, d_stiffness, d_damping, d_stiction, d_restitution)
            orient_adjoint(S, D, e)
            length_bar = 0.0 * h_bar
            if ti.static(not trees):
                length_bar = prepare_adjoint(
                    dim, e, k, f, 0.5 * (kick[k, e] + dt[e]), extent[0], dof, rotation, spin, mass, inertia, gravity,
                    force, torque, held, turned, inertia_world, turned_bar, d_rotation, d_velocity, d_spin, d_mass,
                    d_inertia, d_gravity, d_force, d_torque)
                d_kick[e] = 0.5 * length_bar
            d_dt[e] = d_dt[e] + ti.cast(h_bar + 0.5 * length_bar, ti.f64)


@ti.kernel
def near(
    dim: ti.template(), alone: ti.template(),
    sampled: ti.template(), size: A1, skin_offset: A1, collider: A1, sampling: A1, lattice_of: A1,
    sample: A1, frame: A1, origin: A1, ball: A1, hull: A1, found: A1, found_count: A1, band: A1, counts: A1,
    weld_of: A1, mpm_x: A2, mpm_id: A2, mpm_tag: A1, mpm_work: A1, plates: ti.template(), thin_of: A1, thin: A1,
    mpm_colour: A2, envs: ti.i32, k: ti.i32, epoch: ti.i32,
):
    """Find the particles of slot ``k`` near bodies, every worker its own."""
    L = ti.static(Sides(plates, thin_of, thin, mpm_colour))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * counts[PARTITIONS] * SPREAD):
        if spread % SPREAD == 0:
            search(dim, sampled, L, spread // SPREAD, k, epoch, envs * counts[PARTITIONS], mpm_x, mpm_id, mpm_tag,
                   mpm_work, size, skin_offset, collider, sampling, lattice_of, sample, frame, origin, ball, hull,
                   band, counts, weld_of, found, found_count)


@light_operator
@ti.kernel
def lie(
    dim: ti.template(), alone: ti.template(),
    sampled: ti.template(), position: A2, dt: A1, size: A1, skin_friction: A1, skin_stiction: A1,
    skin_offset: A1, skin_rate: A1, skin_cap: A1, skin_compliance: A1, collider: A1, sampling: A1, lattice_of: A1,
    sample: A1, frame: A1, origin: A1, found: A1, found_count: A1, row: A1, row_body: A1, row_count: A1, span: A2,
    band: A1, counts: A1, coupling_flag: A1, record: A1, held: A1, extent: A1, mpm_x: A2, mpm_v: A2, mpm_id: A2,
    mpm_tag: A1, mpm_material: A1, mpm_gravity: A1, mpm_work: A1, plates: ti.template(), thin_of: A1, thin: A1,
    mpm_colour: A2, envs: ti.i32, k: ti.i32, epoch: ti.i32, look: ti.i32,
):
    """Contacts of particles with bodies: with ``look`` put on the tape as ``near`` found them, then how they lie."""
    L = ti.static(Sides(plates, thin_of, thin, mpm_colour))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            if look == 1:
                keep(e, k, envs * counts[PARTITIONS], mpm_work, counts, found, found_count, record, span, coupling_flag)
            set_rows(dim, sampled, L, e, k, epoch, extent[0], held, position, dt, mpm_x, mpm_v, mpm_id, mpm_tag,
                     mpm_material, mpm_gravity, size, skin_friction, skin_stiction, skin_offset, skin_rate, skin_cap,
                     skin_compliance, collider, sampling, lattice_of, sample, frame, origin, band, counts, record, span,
                     row, row_body, row_count)


@lie.adjoint
@ti.kernel
def lie_adjoint(
    dim: ti.template(), alone: ti.template(),
    sampled: ti.template(), trees: ti.template(), dof: A2, dt: A1, centre: A1, turned: A1,
    turned_bar: A1, extent: A1, d_position: A1, d_centre: A1, d_dt: A1, place: A1, size: A1, skin_offset: A1,
    skin_rate: A1, skin_cap: A1, skin_compliance: A1, axes: A1, collider: A1, sampling: A1, lattice_of: A1, sample: A1,
    frame: A1, origin: A1, row: A1, row_body: A1, span: A2, band: A1, counts: A1, record: A1, d_place: A1, d_size: A1,
    d_skin_friction: A1, d_skin_stiction: A1, d_skin_offset: A1, d_skin_rate: A1, d_skin_cap: A1, d_skin_compliance: A1,
    mpm_x: A2, mpm_material: A1, mpm_gravity: A1, d_mpm_x: A1, d_mpm_v: A1, d_mpm_material: A2, d_mpm_gravity: A2,
    plates: ti.template(), thin_of: A1, thin: A1, mpm_colour: A2, envs: ti.i32, k: ti.i32,
):
    L = ti.static(Sides(plates, thin_of, thin, mpm_colour))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            set_rows_adjoint(dim, sampled, L, trees, spread // SPREAD, k, extent[0], dof, dt, mpm_x, mpm_material,
                             mpm_gravity, size, skin_offset, skin_rate, skin_cap, skin_compliance, axes, collider,
                             sampling, lattice_of, sample, frame, origin, band, counts, record, span, row, row_body,
                             turned, centre, place, turned_bar, d_position, d_centre, d_place, d_size, d_skin_friction,
                             d_skin_stiction, d_skin_offset, d_skin_rate, d_skin_cap, d_skin_compliance, d_dt, d_mpm_x,
                             d_mpm_v, d_mpm_material, d_mpm_gravity)


@light_operator
@ti.kernel
def answer(
    dim: ti.template(), alone: ti.template(),
    entering: ti.template(), trees: ti.template(), loops: ti.template(), events: ti.template(),
    chain: A2, pool: A1, position: A2,
    rotation: A2, velocity: A2, spin: A2, kick: A2, touching: A2, dt: A1, inertia_world: A1, heft: A1, dof: A2,
    matrix: A1, contact: A1, contact_body: A1, taped_count: A2, held: A1, settings: A1, extent: A1, flag: A1, link: A1,
    order: A1, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2, armature: A1, mass_matrix: A1,
    jacobian: A1, joint_row: A1, bond: A1, closure: A1, row: A1, row_body: A1, row_count: A1, counts: A1,
    envs: ti.i32, k: ti.i32,
):
    """Velocities of all bodies, and slot ``k + 1``. Flags of what goes wrong as in the rigid solver."""
    J = ti.static(Joints(
        trees, loops,
        Chain(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix, jacobian),
        joint_row, Bond(bond, closure)))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0 and shared(events, row_count, spread // SPREAD):
            e = spread // SPREAD
            converged, work = solve(dim, J, e, extent[0], e * extent[5], taped_count[k, e][0],
                                    settings[0], settings[0], settings[2], dof, matrix, contact, contact_body, heft,
                                    inertia_world, entering, (row, row_body, row_count, counts))
            taped_count[k, e] = ti.Vector([taped_count[k, e][0], work, ti.max(converged - 1, 0)])
            fine = drift(dim, e, k, k + 1, dt[e], NOW, extent, dof, contact, contact_body, taped_count, position,
                         rotation, velocity, spin, touching, held)
            if ti.static(trees):
                drift_joints(J.tree, e, k, dt[e])
            kick[k + 1, e] = dt[e]
            if ti.static(events):  # no piece of a step in the pool
                free = pool[1]
                if k > 0:
                    free = chain[k - 1, e][0] + 2 * chain[k - 1, e][1]
                chain[k, e] = ti.Vector([free, 0])
            if flag[e][0] == 0 and fine == 0:
                flag[e] = ti.Vector([3, k, 0])
            if flag[e][0] == 0 and converged == 0:
                flag[e] = ti.Vector([1, k, taped_count[k, e][0] + row_count[e]])


@answer.adjoint
@ti.kernel
def answer_adjoint(
    dim: ti.template(), alone: ti.template(),
    entering: ti.template(), trees: ti.template(), loops: ti.template(), events: ti.template(),
    rotation: A2, velocity: A2, spin: A2, dt: A1, turned_bar: A1, inertia_world: A1, heft: A1, dof: A2, matrix: A1,
    contact: A1, contact_body: A1, taped_count: A2, settings: A1, extent: A1, link: A1, order: A1, reduced: A2,
    motion: A1, lever: A1, coordinate: A2, rate: A2, armature: A1, mass_matrix: A1, jacobian: A1, joint_row: A1,
    bond: A1, closure: A1, d_position: A1, d_rotation: A1, d_velocity: A1, d_spin: A1, d_coordinate: A1, d_rate: A1,
    d_kick: A1, d_dt: A1, row: A1, row_body: A1, row_count: A1, counts: A1, mpm_material: A1, d_mpm_v: A1,
    envs: ti.i32, k: ti.i32,
):
    """From the adjoint of slot ``k + 1`` and of the velocities after contact to ``z`` in DELTA."""
    J = ti.static(Joints(
        trees, loops,
        Chain(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix, jacobian),
        joint_row, Bond(bond, closure)))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0 and shared(events, row_count, spread // SPREAD):
            e = spread // SPREAD
            clear_turned(e, extent[0], turned_bar)
            for b in range(e * extent[0], (e + 1) * extent[0]):
                set_motion(dim, dof, NOW, b * freedoms_of(dim), lift(dim, velocity[k + 1, b]),
                           lift_turn(dim, spin[k + 1, b]))
            h_bar = drift_adjoint(dim, e, k, dt[e], NOW, extent[0], dof, rotation, d_position, d_rotation)
            d_dt[e] = d_dt[e] + ti.cast(h_bar + d_kick[e], ti.f64)
            for b in range(e * extent[0], (e + 1) * extent[0]):
                add_wrench(dim, dof, DELTA, b * freedoms_of(dim), lift(dim, d_velocity[b]), lift_turn(dim, d_spin[b]))
                d_velocity[b] = d_velocity[b] * 0.0
                d_spin[b] = d_spin[b] * 0.0
            if ti.static(trees):
                drift_joints_adjoint(dim, J.tree, e, k, dt[e], d_velocity, d_spin, d_coordinate, d_rate, d_dt)
                spread_links(dim, J.tree, e, NOW, 0, NOW)
                for i in range(e * extent[0] * freedoms_of(dim), (e + 1) * extent[0] * freedoms_of(dim)):
                    dof[i, RESIDUAL] = 0.0
                pull_adjoint(dim, RESIDUAL, e, extent[0], dof, mpm_material, d_mpm_v, row, row_body, row_count, counts)
                pull(dim, J.tree, e, RESIDUAL)
                for i in range(e * extent[6], (e + 1) * extent[6]):
                    reduced[i, DELTA] = reduced[i, DELTA] + reduced[i, RESIDUAL]
            else:
                pull_adjoint(dim, DELTA, e, extent[0], dof, mpm_material, d_mpm_v, row, row_body, row_count, counts)
            solve_adjoint(dim, J, e, extent, taped_count[k, e][0], taped_count[k, e][2], 0, dt[e], settings, dof,
                          matrix, contact, contact_body, heft, inertia_world, entering,
                          (row, row_body, row_count, counts))


@ti.kernel
def push(
    dim: ti.template(), alone: ti.template(),
    dof: A2, touching: A2, extent: A1, row: A1, row_body: A1, span: A2, counts: A1, record: A1,
    after: A1, mpm_v: A2, mpm_material: A1, envs: ti.i32, k: ti.i32,
):
    """Leave the particles of slot ``k`` with their velocity after contact."""
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            push_particles(dim, spread // SPREAD, k, extent[0], dof, mpm_v, mpm_material, touching, record, after, span,
                           counts, row, row_body)


@ti.kernel
def impart(
    dim: ti.template(), alone: ti.template(), periodic: ti.template(), record: A1, after: A1, span: A2, counts: A1,
    mpm_x: A2, mpm_v: A2, mpm_id: A2, mpm_tag: A1, mpm_material: A1, mpm_copies: A1, mpm_lattice: A1, mpm_extent: A1,
    plates: ti.template(), mpm_colour: A2, envs: ti.i32, k: ti.i32, epoch: ti.i32,
):
    """Scatter what the particles of slot ``k`` got by contact, and give them back their velocity before."""
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            for j in range(span[k, e][0], span[k, e][0] + span[k, e][1]):
                if record[j][3] == 0:
                    p, before = record[j][0], after[j]
                    after[j] = mpm_v[k, p]
                    mass = mpm_material[e * counts[ROWS] + mpm_tag[mpm_id[epoch, p]][0]][1]
                    scatter_change(dim, periodic, plates, e * counts[PARTITIONS], k, p, mass * (mpm_v[k, p] - before),
                                   mpm_x, mpm_colour, mpm_copies, mpm_lattice, mpm_extent)
                    mpm_v[k, p] = before


@ti.kernel
def exchange(alone: ti.template(), mpm_v: A2, record: A1, after: A1, span: A2, envs: ti.i32, k: ti.i32):
    """Swap the velocities before and after contact of the particles of slot ``k``."""
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            for j in range(span[k, e][0], span[k, e][0] + span[k, e][1]):
                if record[j][3] == 0:
                    held = mpm_v[k, record[j][0]]
                    mpm_v[k, record[j][0]] = after[j]
                    after[j] = held


@ti.kernel
def find_tied(alone: ti.template(), mpm_id: A2, weld_of: A1, weld_particle: A1, counts: A1,
              envs: ti.i32, epoch: ti.i32):
    """Where welded particles are in memory."""
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            find(spread // SPREAD, epoch, mpm_id, weld_of, weld_particle, counts)


@light_operator
@ti.kernel
def tie(
    dim: ti.template(), alone: ti.template(),
    position: A2, turned: A1, dt: A1, held: A1, extent: A1, weld: A1, weld_particle: A1,
    weld_at: A2, weld_place: A1, weld_rate: A1, weld_cap: A1, row: A1, row_body: A1, row_count: A1, span: A2,
    counts: A1, mpm_x: A2, mpm_v: A2, mpm_id: A2, mpm_tag: A1, mpm_material: A1, mpm_gravity: A1, envs: ti.i32,
    attachments: ti.i32, k: ti.i32, epoch: ti.i32, look: ti.i32,
):
    """How welded particles lie to their bodies."""
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            set_welds(dim, spread // SPREAD, k, epoch, look, extent[0], held, position, turned, dt, mpm_x, mpm_v,
                      mpm_id, mpm_tag, mpm_material, mpm_gravity, weld, weld_particle, weld_at, weld_place, weld_rate,
                      weld_cap, attachments, span, counts, row, row_body, row_count)


@tie.adjoint
@ti.kernel
def tie_adjoint(
    dim: ti.template(), alone: ti.template(),
    trees: ti.template(), dof: A2, position: A2, turned: A1, turned_bar: A1, dt: A1, extent: A1,
    d_position: A1, d_dt: A1, weld: A1, weld_place: A1, weld_rate: A1, weld_cap: A1, row: A1, row_body: A1, span: A2,
    counts: A1, d_weld_place: A1, d_weld_rate: A1, d_weld_cap: A1, mpm_x: A2, mpm_material: A1, mpm_gravity: A1,
    d_mpm_x: A1, d_mpm_v: A1, d_mpm_material: A2, d_mpm_gravity: A2, envs: ti.i32, attachments: ti.i32, k: ti.i32,
):
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            set_welds_adjoint(dim, trees, spread // SPREAD, k, extent[0], dof, position, turned, turned_bar, dt, mpm_x,
                              mpm_material, mpm_gravity, weld, weld_place, weld_rate, weld_cap, attachments, span,
                              counts, row, row_body, d_position, d_dt, d_weld_place, d_weld_rate, d_weld_cap, d_mpm_x,
                              d_mpm_v, d_mpm_material, d_mpm_gravity)


@ti.kernel
def push_tied(
    dim: ti.template(), alone: ti.template(),
    dof: A2, touching: A2, extent: A1, row: A1, row_body: A1, span: A2, counts: A1, weld_after: A2,
    mpm_v: A2, mpm_material: A1, envs: ti.i32, k: ti.i32,
):
    """Leave the welded particles of slot ``k`` with their velocity after the push."""
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            push_welds(dim, spread // SPREAD, k, extent[0], dof, mpm_v, mpm_material, touching, weld_after, span,
                       counts, row, row_body)


@ti.kernel
def impart_tied(
    dim: ti.template(), alone: ti.template(), periodic: ti.template(), weld_after: A2, weld_at: A2, counts: A1,
    mpm_x: A2, mpm_v: A2, mpm_id: A2, mpm_tag: A1, mpm_material: A1, mpm_copies: A1, mpm_lattice: A1, mpm_extent: A1,
    plates: ti.template(), mpm_colour: A2, envs: ti.i32, k: ti.i32, epoch: ti.i32,
):
    """Scatter what the welded particles of slot ``k`` got, and give them back their velocity before."""
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            for i in range(e * counts[WELDS], (e + 1) * counts[WELDS]):
                p, before = weld_at[k, i], weld_after[k, i]
                weld_after[k, i] = mpm_v[k, p]
                mass = mpm_material[e * counts[ROWS] + mpm_tag[mpm_id[epoch, p]][0]][1]
                scatter_change(dim, periodic, plates, e * counts[PARTITIONS], k, p, mass * (mpm_v[k, p] - before),
                               mpm_x, mpm_colour, mpm_copies, mpm_lattice, mpm_extent)
                mpm_v[k, p] = before


@ti.kernel
def exchange_tied(mpm_v: A2, weld_after: A2, weld_at: A2, welds: ti.i32, k: ti.i32):
    """Swap the velocities before and after the push of the welded particles of slot ``k``."""
    for i in range(welds):
        held = mpm_v[k, weld_at[k, i]]
        mpm_v[k, weld_at[k, i]] = weld_after[k, i]
        weld_after[k, i] = held
