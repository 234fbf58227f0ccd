"""Kernels of chambers and tendons, one task an environment. ``host_…`` are arrays of the solver whose particles they
act on."""

from taichi_sim.core.operator import operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.acting.arrays import CHAMBER
from taichi_sim.solvers.acting.chamber import chamber, chamber_adjoint
from taichi_sim.solvers.acting.tendon import tendon, tendon_adjoint

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)
A3 = ti.types.ndarray(ndim=3)

#: A loop of few iterations runs on one thread; iterate so often and act on every ``SPREAD``-th.
SPREAD = 64

# Places in ``counts``.
ANCHORS, LINKS, BOUND, UNITS = 0, 1, 2, 3


@ti.func
def place_anchors(
    e,
    k,
    host_x: ti.template(),
    place: ti.template(),
    weight: ti.template(),
    offset: ti.template(),
    link: ti.template(),
    head: ti.template(),
    counts: ti.template(),
    y: ti.template(),
):
    """Places of all anchors of an environment at slot ``k``."""
    for a in range(counts[ANCHORS]):
        at = offset[e * counts[ANCHORS] + a]
        for l in range(head[a], head[a + 1]):
            at = at + weight[e * counts[LINKS] + l] * host_x[k, place[e * counts[BOUND] + link[l]]]
        y[e * counts[ANCHORS] + a] = at


@operator
@ti.kernel
def pull(
    dim: ti.template(),
    host_x: A2,
    place: A1,
    weight: A1,
    offset: A1,
    link: A1,
    head: A1,
    face: A1,
    unit: A1,
    drive: A2,
    trait: A1,
    counts: A1,
    y: A1,
    g: A1,
    along: A1,
    wrapped: A1,
    force: A1,
    envs: ti.i32,
    k: ti.i32,
    f: ti.i32,
):
    """Forces on bound particles at slot ``k`` of frame ``f``."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            i0, b0 = e * counts[ANCHORS], e * counts[BOUND]
            place_anchors(e, k, host_x, place, weight, offset, link, head, counts, y)
            for a in range(i0, i0 + counts[ANCHORS]):
                g[a] = 0.0 * y[a]
            for u in range(counts[UNITS]):
                at, one = e * counts[UNITS] + u, unit[u]
                if one[0] == CHAMBER:
                    chamber(dim, i0, one[1], one[2], drive[f, at], trait[at], y, face, g)
                else:
                    tendon(i0, one[1], one[2], drive[f, at], trait[at], y, along, wrapped, g)
            for b in range(b0, b0 + counts[BOUND]):
                force[b] = 0.0 * force[b]
            for a in range(counts[ANCHORS]):
                for l in range(head[a], head[a + 1]):
                    b = b0 + link[l]
                    force[b] = force[b] + weight[e * counts[LINKS] + l] * g[i0 + a]


@pull.adjoint
@ti.kernel
def pull_adjoint(
    dim: ti.template(),
    host_x: A2,
    place: A1,
    weight: A1,
    offset: A1,
    link: A1,
    head: A1,
    face: A1,
    unit: A1,
    drive: A2,
    trait: A1,
    counts: A1,
    y: A1,
    y_bar: A1,
    g: A1,
    g_bar: A1,
    along: A1,
    along_bar: A1,
    wrapped: A1,
    force_bar: A1,
    d_host_x: A1,
    d_weight: A1,
    d_offset: A1,
    d_drive: A3,
    d_trait: A1,
    envs: ti.i32,
    k: ti.i32,
    f: ti.i32,
):
    """After :func:`pull` of the same slot, which leaves ``y`` and ``g``."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            i0, b0, l0 = e * counts[ANCHORS], e * counts[BOUND], e * counts[LINKS]
            for a in range(counts[ANCHORS]):
                bar = 0.0 * y[i0 + a]
                for l in range(head[a], head[a + 1]):
                    bar = bar + weight[l0 + l] * force_bar[b0 + link[l]]
                    d_weight[l0 + l] = d_weight[l0 + l] + g[i0 + a].dot(force_bar[b0 + link[l]])
                g_bar[i0 + a] = bar
                y_bar[i0 + a] = 0.0 * bar
            for u in range(counts[UNITS]):
                at, one = e * counts[UNITS] + u, unit[u]
                drive_bar, trait_bar = 0.0 * drive[f, at], 0.0 * trait[at]
                if one[0] == CHAMBER:
                    drive_bar, trait_bar = chamber_adjoint(
                        dim, i0, one[1], one[2], drive[f, at], trait[at], y, face, g_bar, y_bar
                    )
                else:
                    drive_bar, trait_bar = tendon_adjoint(
                        i0, one[1], one[2], drive[f, at], trait[at], y, along, along_bar, wrapped, g_bar, y_bar
                    )
                d_drive[0, f, at] = d_drive[0, f, at] + drive_bar
                d_trait[at] = d_trait[at] + trait_bar
            for a in range(counts[ANCHORS]):
                bar = y_bar[i0 + a]
                d_offset[i0 + a] = d_offset[i0 + a] + bar
                for l in range(head[a], head[a + 1]):
                    p = place[b0 + link[l]]
                    d_weight[l0 + l] = d_weight[l0 + l] + bar.dot(host_x[k, p])
                    d_host_x[p] = d_host_x[p] + weight[l0 + l] * bar


@operator
@ti.kernel
def kick(
    host_v: A2, place: A1, force: A1, mass: A1, dt: A1, kept: A1, counts: A1, envs: ti.i32, k: ti.i32, undo: ti.i32
):
    """Velocities of slot ``k`` after the forces of a substep; with ``undo`` those before again."""
    for b in range(envs * counts[BOUND]):
        p = place[b]
        if undo == 0:
            kept[b] = host_v[k, p]
            host_v[k, p] = host_v[k, p] + (dt[b // counts[BOUND]] / mass[b]) * force[b]
        else:
            host_v[k, p] = kept[b]


@kick.adjoint
@ti.kernel
def kick_adjoint(
    place: A1, force: A1, force_bar: A1, mass: A1, dt: A1, counts: A1, d_host_v: A1, d_mass: A1, d_dt: A1, envs: ti.i32
):
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            for b in range(e * counts[BOUND], (e + 1) * counts[BOUND]):
                bar = d_host_v[place[b]] / mass[b]
                force_bar[b] = dt[e] * bar
                d_dt[e] = d_dt[e] + bar.dot(force[b])
                d_mass[b] = d_mass[b] - dt[e] * bar.dot(force[b]) / mass[b]


@operator
@ti.kernel
def give(host_impulse: A2, place: A1, force: A1, dt: A1, counts: A1, envs: ti.i32, k: ti.i32):
    """Impulses of the step of slot ``k``."""
    for b in range(envs * counts[BOUND]):
        host_impulse[k, place[b]] = dt[b // counts[BOUND]] * force[b]


@give.adjoint
@ti.kernel
def give_adjoint(
    place: A1, force: A1, force_bar: A1, dt: A1, counts: A1, d_host_impulse: A2, d_dt: A1, envs: ti.i32, k: ti.i32
):
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            for b in range(e * counts[BOUND], (e + 1) * counts[BOUND]):
                bar = d_host_impulse[k, place[b]]
                force_bar[b] = dt[e] * bar
                d_dt[e] = d_dt[e] + bar.dot(force[b])
