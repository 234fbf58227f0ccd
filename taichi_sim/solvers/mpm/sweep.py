"""What one worker does in one substep: its share of an environment's particles, and of its active nodes.

A worker is a fixed share of the work (``partitions`` of them an environment), whatever the number of threads; it
owns one private copy of the grid. Its loops are ``ti.func``s, composed by ``kernels`` into launches of one substep or
of many.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.mpm.grid import node_velocity, node_velocity_adjoint, sum_copies
from taichi_sim.solvers.mpm.layers import apart, layer_of
from taichi_sim.solvers.mpm.order import PADDING, unpack_node
from taichi_sim.solvers.mpm.spline import NODE_MASK, weights, weights_derivative
from taichi_sim.solvers.mpm.transfer import (
    gather_nodes,
    gather_nodes_adjoint,
    locate,
    node_of,
    scatter_nodes,
    scatter_nodes_adjoint,
)

# Places in the tuple that describes a law to a kernel.
STRESS, STRESS_ADJOINT, PROJECT, PROJECT_ADJOINT, COUNT_COEFFICIENTS = 0, 1, 2, 3, 4

# Places in the integer array ``extent``.
NODES, COUNT, ROWS, GROUPS, CAPACITY, LAYER = 6, 7, 8, 9, 10, 11


@ti.func
def grid_sizes(dim: ti.template(), extent: ti.template()):
    """Nodes along each axis and the strides of a linear node index."""
    sizes = ti.Vector([extent[d] for d in ti.static(range(dim))])
    strides = ti.Vector([extent[3 + d] for d in ti.static(range(dim))])
    return sizes, strides


def possible(flag: object) -> bool:
    """Whether a flag can be set: code for one that is the constant 0 is not compiled at all (a fused kernel of a 3-D
    law would take minutes)."""
    return not (isinstance(flag, int) and flag == 0)


@ti.func
def coefficients(m):
    """Law coefficients of a material row (after volume and mass)."""
    return ti.Vector([m[2], m[3], m[4], m[5], m[6], m[7]])


@ti.func
def sweep_particles(
    dim: ti.template(), law: ti.template(), loaded: ti.template(), driven: ti.template(), periodic: ti.template(),
    x: ti.template(), v: ti.template(), C: ti.template(), F: ti.template(), id: ti.template(), tag: ti.template(),
    material: ti.template(), active_stress: ti.template(), active_acceleration: ti.template(),
    particle_acceleration: ti.template(), copies: ti.template(), velocity: ti.template(), step: ti.template(),
    lattice: ti.template(), extent: ti.template(), work: ti.template(), flag: ti.template(), speed: ti.template(),
    plates: ti.template(), colour: ti.template(),
    law_index, partitions, workers, w, k, f, epoch, do_gather: ti.template(), do_scatter: ti.template(),
):
    """Gather substep ``k - 1`` into slot ``k``, then scatter slot ``k`` of frame ``f``, particle by particle."""
    sizes, strides = grid_sizes(dim, extent)
    s0 = strides[0]
    s1 = strides[1]
    env = w // partitions
    dt = step[env][0]
    inverse = lattice[1]
    plane = env * extent[NODES]
    copy = w * extent[NODES]
    rows = env * extent[ROWS]
    groups = env * extent[GROUPS]
    particles = env * extent[COUNT]
    fastest = dt * 0.0
    affine = 4.0 * inverse * dt
    for p in range(work[2 * (law_index * workers + w)], work[2 * (law_index * workers + w) + 1]):
        if ti.static(possible(do_gather)):
            if do_gather == 1:
                xo = x[k - 1, p]
                base, fx, _inside = locate(dim, periodic, xo, lattice, sizes)
                first = plane + node_of(dim, base, s0, s1)
                if ti.static(plates > 0):
                    first = first + layer_of(colour[k - 1, p]) * extent[LAYER]
                    colour[k, p] = colour[k - 1, p]
                nv, B = gather_nodes(dim, velocity, first, s0, s1, weights(dim, fx))
                fastest = ti.max(fastest, ti.abs(nv).max())
                x[k, p] = xo + dt * nv
                v[k, p] = nv
                C[k, p] = 4.0 * inverse * (B - nv.outer_product(fx))
        if ti.static(possible(do_scatter)):
            if do_scatter == 1:
                base, fx, inside = locate(dim, periodic, x[k, p], lattice, sizes)
                if inside == 0 and flag[w, 0] == 0:
                    flag[w, 0] = 1
                    flag[w, 1] = k
                    flag[w, 2] = p
                t = tag[id[epoch, p]]
                m = material[rows + t[0]]
                c = coefficients(m)
                mass = m[1]
                Cp = C[k, p]
                Fo = F[k, p]
                Fn = law[PROJECT](Fo + dt * (Cp @ Fo), c)
                F[k + 1, p] = Fn
                tau = law[STRESS](Fn, Cp, c)
                q = mass * v[k, p]
                if ti.static(loaded):
                    if t[1] > 0:
                        tau = tau + Fn @ active_stress[f, groups + t[1]] @ Fn.transpose()
                        q = q + mass * dt * active_acceleration[f, groups + t[1]]
                if ti.static(driven):
                    q = q + mass * dt * particle_acceleration[
                        ti.min(f, particle_acceleration.shape[0] - 1), particles + id[epoch, p]
                    ]
                A = (mass * lattice[0]) * Cp - (m[0] * affine) * tau
                first = copy + node_of(dim, base, s0, s1)
                if ti.static(plates > 0):
                    first = first + layer_of(colour[k, p]) * extent[LAYER]
                scatter_nodes(dim, copies, first, s0, s1, weights(dim, fx), q - A @ fx, A, mass)
    if ti.static(possible(do_gather)):
        if do_gather == 1:
            speed[w] = ti.max(speed[w], fastest)


@ti.func
def sweep_particles_adjoint(
    dim: ti.template(), law: ti.template(), loaded: ti.template(), driven: ti.template(), periodic: ti.template(),
    x: ti.template(), v: ti.template(), C: ti.template(), F: ti.template(), id: ti.template(), tag: ti.template(),
    material: ti.template(), active_stress: ti.template(), active_acceleration: ti.template(),
    particle_acceleration: ti.template(), copies: ti.template(), velocity: ti.template(), grid_bar: ti.template(),
    step: ti.template(), lattice: ti.template(), extent: ti.template(), work: ti.template(),
    d_x: ti.template(), d_v: ti.template(), d_C: ti.template(), d_F: ti.template(), d_material: ti.template(),
    d_active_stress: ti.template(), d_active_acceleration: ti.template(), d_particle_acceleration: ti.template(),
    d_step: ti.template(), plates: ti.template(), colour: ti.template(),
    law_index, partitions, workers, w, k, f, epoch, do_scatter: ti.template(), do_gather: ti.template(),
):
    """Adjoint of :func:`sweep_particles`: of the scatter of slot ``k``, then of the gather into slot ``k``.

    ``d_x … d_F`` hold the adjoint of slot ``k + 1`` (of ``F``, and of ``x`` through the gather) and become that of
    slot ``k``; after the gather's part ``d_x`` is that of slot ``k - 1`` through the gather.
    """
    sizes, strides = grid_sizes(dim, extent)
    s0 = strides[0]
    s1 = strides[1]
    env = w // partitions
    part = w - env * partitions
    dt = step[env][0]
    inverse = lattice[1]
    plane = env * extent[NODES]
    copy = w * extent[NODES]
    rows = env * extent[ROWS]
    groups = env * extent[GROUPS]
    particles = env * extent[COUNT]
    dt_bar = ti.cast(0.0, ti.f64)
    affine = 4.0 * inverse * dt
    for p in range(work[2 * (law_index * workers + w)], work[2 * (law_index * workers + w) + 1]):
        if ti.static(possible(do_scatter)):
            if do_scatter == 1:
                base, fx, _inside = locate(dim, periodic, x[k, p], lattice, sizes)
                t = tag[id[epoch, p]]
                row = rows + t[0]
                m = material[row]
                c = coefficients(m)
                mass = m[1]
                vp = v[k, p]
                Cp = C[k, p]
                Fo = F[k, p]
                Ft = Fo + dt * (Cp @ Fo)
                Fn = law[PROJECT](Ft, c)
                tau = law[STRESS](Fn, Cp, c)
                q = mass * vp
                if ti.static(loaded):
                    if t[1] > 0:
                        tau = tau + Fn @ active_stress[f, groups + t[1]] @ Fn.transpose()
                        q = q + mass * dt * active_acceleration[f, groups + t[1]]
                if ti.static(driven):
                    q = q + mass * dt * particle_acceleration[
                        ti.min(f, particle_acceleration.shape[0] - 1), particles + id[epoch, p]
                    ]
                A = (mass * lattice[0]) * Cp - (m[0] * affine) * tau
                first = plane + node_of(dim, base, s0, s1)
                if ti.static(plates > 0):
                    first = first + layer_of(colour[k, p]) * extent[LAYER]
                q_bar, A_bar, mass_bar, x_bar = scatter_nodes_adjoint(
                    dim, grid_bar, first, s0, s1, weights(dim, fx),
                    weights_derivative(dim, fx, inverse), q - A @ fx, A, mass,
                )
                A_bar = A_bar - q_bar.outer_product(fx)
                d_x[p] = d_x[p] + x_bar - inverse * (A.transpose() @ q_bar)
                d_v[p] = mass * q_bar
                mass_bar = mass_bar + q_bar.dot(vp) + lattice[0] * (A_bar * Cp).sum()
                tau_bar = (-m[0] * affine) * A_bar
                step_bar = (tau_bar * tau).sum() / dt
                F_bar, C_bar, c_bar = law[STRESS_ADJOINT](Fn, Cp, c, tau_bar)
                F_bar = F_bar + d_F[p]
                if ti.static(loaded):
                    if t[1] > 0:
                        g = groups + t[1]
                        S = active_stress[f, g]
                        b = active_acceleration[f, g]
                        F_bar = F_bar + (tau_bar + tau_bar.transpose()) @ Fn @ S
                        S_bar = Fn.transpose() @ tau_bar @ Fn
                        d_active_stress[part, f, g] = d_active_stress[part, f, g] + ti.cast(S_bar, ti.f64)
                        d_active_acceleration[part, f, g] = d_active_acceleration[part, f, g] + ti.cast(
                            mass * dt * q_bar, ti.f64
                        )
                        mass_bar = mass_bar + dt * b.dot(q_bar)
                        step_bar = step_bar + mass * b.dot(q_bar)
                if ti.static(driven):
                    fp = ti.min(f, particle_acceleration.shape[0] - 1)
                    place = particles + id[epoch, p]
                    b = particle_acceleration[fp, place]
                    d_particle_acceleration[fp, place] = d_particle_acceleration[fp, place] + ti.cast(
                        mass * dt * q_bar, ti.f64
                    )
                    mass_bar = mass_bar + dt * b.dot(q_bar)
                    step_bar = step_bar + mass * b.dot(q_bar)
                T_bar, c_project = law[PROJECT_ADJOINT](Ft, c, F_bar)
                c_bar = c_bar + c_project
                step_bar = step_bar + (T_bar * (Cp @ Fo)).sum()
                dt_bar = dt_bar + ti.cast(step_bar, ti.f64)
                d_C[p] = (mass * lattice[0]) * A_bar + dt * (T_bar @ Fo.transpose()) + C_bar
                d_F[p] = T_bar + dt * (Cp.transpose() @ T_bar)
                d_material[part, row][1] = d_material[part, row][1] + ti.cast(mass_bar, ti.f64)
                for n in ti.static(range(law[COUNT_COEFFICIENTS])):
                    d_material[part, row][2 + n] = d_material[part, row][2 + n] + ti.cast(c_bar[n], ti.f64)
        if ti.static(possible(do_gather)):
            if do_gather == 1:
                base, fx, _inside = locate(dim, periodic, x[k - 1, p], lattice, sizes)
                xb = d_x[p]
                A = (4.0 * inverse) * d_C[p]
                q = d_v[p] + dt * xb
                first = node_of(dim, base, s0, s1)
                if ti.static(plates > 0):
                    first = first + layer_of(colour[k - 1, p]) * extent[LAYER]
                nv, x_bar = gather_nodes_adjoint(
                    dim, velocity, copies, plane + first, copy + first, s0, s1, weights(dim, fx),
                    weights_derivative(dim, fx, inverse), q - A @ fx, A,
                )
                d_x[p] = xb + x_bar - inverse * (A.transpose() @ nv)
                dt_bar = dt_bar + ti.cast(xb.dot(nv), ti.f64)
    d_step[part, env][0] = d_step[part, env][0] + dt_bar


@ti.func
def sweep_nodes(
    dim: ti.template(), fields: ti.template(), periodic: ti.template(), partitions: ti.template(),
    copies: ti.template(), velocity: ti.template(), saved: ti.template(), blocks: ti.template(),
    block_count: ti.template(), step: ti.template(), gravity: ti.template(), field_acceleration: ti.template(),
    field_gain: ti.template(), contact_head: ti.template(), contact_next: ti.template(),
    contact_kind: ti.template(), contact_normal: ti.template(), contact_alpha: ti.template(),
    contact_friction: ti.template(), lattice: ti.template(), extent: ti.template(), plates: ti.template(),
    plate: ti.template(), w, f, epoch, save, env_stride, restore,
):
    """Update a worker's share of the active nodes; with ``restore`` from ``saved``, otherwise from the copies.

    Where there are plates a node has two layers, which hold the same but in the zone of one (:func:`apart`).
    """
    sizes, strides = grid_sizes(dim, extent)
    env = w // partitions
    part = w - env * partitions
    nodes = extent[NODES]
    plane = env * nodes
    heads = env * extent[LAYER]
    first = env * partitions * nodes
    dt = step[env][0]
    damping = step[env][1]
    floor = lattice[2]
    active = block_count[epoch, env]
    per_block = ti.static(4**dim)
    for i in range(active * part // partitions * per_block, active * (part + 1) // partitions * per_block):
        J = unpack_node(dim, blocks[epoch, env * extent[CAPACITY] + i // per_block], i & (per_block - 1))
        node = node_of(dim, J, strides[0], strides[1])
        at = (save + env * env_stride + ti.static(2 if plates > 0 else 1) * i) & NODE_MASK
        m = saved[at]
        if restore == 0:
            m = sum_copies(dim, periodic, partitions, copies, first, nodes, J, node, sizes, strides, lattice)
            if ti.static(plates > 0):
                other = sum_copies(
                    dim, periodic, partitions, copies, first, nodes, J, node + extent[LAYER], sizes, strides, lattice
                )
                if apart(dim, plates, J, env, plate, lattice) == 0:
                    m = m + other
                    other = m
                saved[(at + 1) & NODE_MASK] = other
            saved[at] = m
        velocity[(plane + node) & NODE_MASK] = node_velocity(
            dim, fields, m, node, f, env, heads, gravity, field_acceleration, field_gain, dt, damping, floor,
            contact_head, contact_next, contact_kind, contact_normal, contact_alpha, contact_friction,
        )
        if ti.static(plates > 0):
            velocity[(plane + node + extent[LAYER]) & NODE_MASK] = node_velocity(
                dim, fields, saved[(at + 1) & NODE_MASK], node, f, env, heads, gravity, field_acceleration, field_gain,
                dt, damping, floor, contact_head, contact_next, contact_kind, contact_normal, contact_alpha,
                contact_friction,
            )


@ti.func
def sweep_nodes_adjoint(
    dim: ti.template(), fields: ti.template(), periodic: ti.template(), partitions: ti.template(),
    copies: ti.template(), velocity: ti.template(), grid_bar: ti.template(), saved: ti.template(),
    blocks: ti.template(), block_count: ti.template(), step: ti.template(), gravity: ti.template(),
    field_acceleration: ti.template(), field_gain: ti.template(), contact_head: ti.template(),
    contact_next: ti.template(), contact_kind: ti.template(), contact_normal: ti.template(),
    contact_alpha: ti.template(), contact_friction: ti.template(), lattice: ti.template(), extent: ti.template(),
    d_step: ti.template(), d_gravity: ti.template(), d_field_gain: ti.template(), d_contact_normal: ti.template(),
    d_contact_alpha: ti.template(), d_contact_friction: ti.template(), plates: ti.template(), plate: ti.template(),
    w, f, epoch, save, before, f_before, env_stride, restore,
):
    """Adjoint of :func:`sweep_nodes`; on the way the velocities of the substep before are restored."""
    sizes, strides = grid_sizes(dim, extent)
    env = w // partitions
    part = w - env * partitions
    nodes = extent[NODES]
    plane = env * nodes
    heads = env * extent[LAYER]
    first = env * partitions * nodes
    dt = step[env][0]
    damping = step[env][1]
    floor = lattice[2]
    gravity_sum = ti.Vector.zero(ti.f64, dim)
    dt_sum = ti.cast(0.0, ti.f64)
    damping_sum = ti.cast(0.0, ti.f64)
    active = block_count[epoch, env]
    per_block = ti.static(4**dim)
    for i in range(active * part // partitions * per_block, active * (part + 1) // partitions * per_block):
        J = unpack_node(dim, blocks[epoch, env * extent[CAPACITY] + i // per_block], i & (per_block - 1))
        node = node_of(dim, J, strides[0], strides[1])
        out_bar = sum_copies(dim, periodic, partitions, copies, first, nodes, J, node, sizes, strides, lattice)
        counts = 1
        for d in ti.static(range(dim)):
            if ti.static(periodic[d]):
                period = ti.cast(lattice[6 + d] * lattice[1] + 0.5, ti.i32)
                if J[d] < PADDING or J[d] >= PADDING + period:
                    counts = 0
        at = save + env * env_stride + ti.static(2 if plates > 0 else 1) * i
        was = before + env * env_stride + ti.static(2 if plates > 0 else 1) * i
        m_bar, a_bar, dt_bar, damping_bar = node_velocity_adjoint(
            dim, fields, saved[at & NODE_MASK], out_bar, counts, node, f, env, part, heads, gravity,
            field_acceleration, field_gain, d_field_gain, dt, damping, floor, contact_head, contact_next, contact_kind,
            contact_normal, contact_alpha, contact_friction, d_contact_normal, d_contact_alpha, d_contact_friction,
        )
        if ti.static(plates > 0):
            other_bar = sum_copies(
                dim, periodic, partitions, copies, first, nodes, J, node + extent[LAYER], sizes, strides, lattice
            )
            m_other, a_other, dt_other, damping_other = node_velocity_adjoint(
                dim, fields, saved[(at + 1) & NODE_MASK], other_bar, counts, node, f, env, part, heads, gravity,
                field_acceleration, field_gain, d_field_gain, dt, damping, floor, contact_head, contact_next,
                contact_kind, contact_normal, contact_alpha, contact_friction, d_contact_normal, d_contact_alpha,
                d_contact_friction,
            )
            a_bar = a_bar + a_other
            dt_bar = dt_bar + dt_other
            damping_bar = damping_bar + damping_other
            if apart(dim, plates, J, env, plate, lattice) == 0:
                m_bar = m_bar + m_other
                m_other = m_bar
            grid_bar[(plane + node + extent[LAYER]) & NODE_MASK] = m_other
            if restore == 1:
                velocity[(plane + node + extent[LAYER]) & NODE_MASK] = node_velocity(
                    dim, fields, saved[(was + 1) & NODE_MASK], node, f_before, env, heads, gravity, field_acceleration,
                    field_gain, dt, damping, floor, contact_head, contact_next, contact_kind, contact_normal,
                    contact_alpha, contact_friction,
                )
        grid_bar[(plane + node) & NODE_MASK] = m_bar
        if counts == 1:
            gravity_sum = gravity_sum + ti.cast(a_bar, ti.f64)
            dt_sum = dt_sum + ti.cast(dt_bar, ti.f64)
            damping_sum = damping_sum + ti.cast(damping_bar, ti.f64)
        if restore == 1:
            velocity[(plane + node) & NODE_MASK] = node_velocity(
                dim, fields, saved[was & NODE_MASK], node, f_before, env, heads, gravity, field_acceleration,
                field_gain, dt, damping, floor, contact_head, contact_next, contact_kind, contact_normal,
                contact_alpha, contact_friction,
            )
    d_gravity[part, env] = d_gravity[part, env] + gravity_sum
    d_step[part, env] = d_step[part, env] + ti.Vector([dt_sum, damping_sum])


@ti.func
def clear_nodes(
    dim: ti.template(), partitions: ti.template(), copies: ti.template(), blocks: ti.template(),
    block_count: ti.template(), extent: ti.template(), plates: ti.template(), w, epoch,
):
    """Clear a worker's share of the active nodes in every copy (where images kept it from being done on the way)."""
    _sizes, strides = grid_sizes(dim, extent)
    env = w // partitions
    part = w - env * partitions
    nodes = extent[NODES]
    first = env * partitions * nodes
    active = block_count[epoch, env]
    per_block = ti.static(4**dim)
    for i in range(active * part // partitions * per_block, active * (part + 1) // partitions * per_block):
        J = unpack_node(dim, blocks[epoch, env * extent[CAPACITY] + i // per_block], i & (per_block - 1))
        for c in ti.static(range(partitions)):
            at = (first + c * nodes + node_of(dim, J, strides[0], strides[1])) & NODE_MASK
            copies[at] = copies[at] * 0.0
            if ti.static(plates > 0):
                above = (at + extent[LAYER]) & NODE_MASK
                copies[above] = copies[above] * 0.0
