"""Mass matrix and free motion of trees, and the adjoint of both.

Newton's and Euler's equations hold for every body; :func:`~taichi_sim.solvers.rigid.tree.pull` projects them onto the
degrees of freedom: ``(M + armature) a = τ - c(q, v)``. The mass matrix is that of composite bodies (Featherstone,
"Rigid body dynamics algorithms", 2008, section 6.2). No derivative of it is ever formed: where a solution ``a`` of
these equations has the adjoint ``a_bar``, ``z = M⁻¹ a_bar`` gives all others as the derivative of the number
``-z · (M a + c - τ)``, which is one sweep over the bodies and back.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.geometry import column3
from taichi_sim.solvers.rigid.rotation import flat, flat_turn, lift, lift_inertia, lift_inertia_adjoint, lift_turn
from taichi_sim.solvers.rigid.topology import LOOSE
from taichi_sim.solvers.rigid.tree import (
    COUNT,
    FIRST,
    KIND,
    PARENT,
    column6,
    freedom_of,
    joint_freedom,
    pull,
    spread,
    spread_adjoint,
)
from taichi_sim.solvers.rigid.twist import (
    BEFORE,
    DELTA,
    EARLY,
    FREE,
    LATE,
    NOW,
    RATE,
    RATE_BAR,
    RESIDUAL,
    TRIAL,
    VELOCITY_BAR,
    ZED,
    ZED_BAR,
    add_wrench,
    body_motion,
    set_motion,
)


@ti.func
def joint_place(dim: ti.template(), T: ti.template(), e, k, b):
    """Where the joint above a body is."""
    g = e * T.extent[0] + b
    return lift(dim, T.position[k, g]) - column3(T.lever, g, 3)


@ti.func
def weigh(dim: ti.template(), T: ti.template(), e, k):
    """``M + armature`` of slot ``k`` and its Cholesky factor."""
    bodies, n = T.extent[0], T.extent[6]
    base = e * n * n
    for i in range(base, base + n * n):
        T.mass_matrix[i] = 0.0
    for g in range(e * bodies, (e + 1) * bodies):
        x = lift(dim, T.position[k, g])
        T.composite[g] = ti.Vector([T.heft[g], x[0], x[1], x[2]])
        T.composite_inertia[g] = T.inertia_world[g]
    for back in range(bodies):
        b = T.order[bodies - 1 - back]
        p, g, at = T.link[b][PARENT], e * bodies + b, joint_place(dim, T, e, k, b)
        m, s, I = T.composite[g][0], column3(T.composite, g, 1), T.composite_inertia[g]
        for i in range(T.link[b][COUNT]):
            slide, turning = column6(T, freedom_of(T, e, b) + i)
            force = m * (slide + turning.cross(s - at))
            moment = I @ turning + (s - at).cross(force)
            row, a = T.link[b][FIRST] + i, b
            while a >= 0:
                there = moment + (at - joint_place(dim, T, e, k, a)).cross(force)
                for j in range(T.link[a][COUNT]):
                    if a != b or j <= i:
                        along, about = column6(T, freedom_of(T, e, a) + j)
                        column = T.link[a][FIRST] + j
                        T.mass_matrix[base + row * n + column] = along.dot(force) + about.dot(there)
                        T.mass_matrix[base + column * n + row] = along.dot(force) + about.dot(there)
                a = T.link[a][PARENT]
        if p >= 0:
            h = e * bodies + p
            mp, sp = T.composite[h][0], column3(T.composite, h, 1)
            apart, total = s - sp, m + mp
            both = sp + (m / total) * apart
            T.composite[h] = ti.Vector([total, both[0], both[1], both[2]])
            steiner = (m * mp / total) * (
                apart.norm_sqr() * ti.Matrix.identity(float, 3) - apart.outer_product(apart))
            T.composite_inertia[h] = T.composite_inertia[h] + I + steiner
    joints = T.extent[7]
    for i in range(joints):
        d = base + (n - joints + i) * (n + 1)
        T.mass_matrix[d] = T.mass_matrix[d] + T.armature[e * joints + i]
    for i in range(base, base + n * n):
        T.factor[i] = T.mass_matrix[i]
    for j in range(n):
        for i in range(j, n):
            total = T.factor[base + i * n + j]
            for l in range(j):
                total = total - T.factor[base + i * n + l] * T.factor[base + j * n + l]
            if i == j:
                total = ti.sqrt(total)
            else:
                total = total / T.factor[base + j * n + j]
            T.factor[base + i * n + j] = total


@ti.func
def solve_mass(T: ti.template(), e, source, scale, target):
    """``target = M⁻¹ scale source``, columns of ``reduced``."""
    n = T.extent[6]
    base, at = e * n * n, e * n
    for i in range(n):
        total = scale * T.reduced[at + i, source]
        for j in range(i):
            total = total - T.factor[base + i * n + j] * T.reduced[at + j, target]
        T.reduced[at + i, target] = total / T.factor[base + i * n + i]
    for back in range(n):
        i = n - 1 - back
        total = T.reduced[at + i, target]
        for j in range(i + 1, n):
            total = total - T.factor[base + j * n + i] * T.reduced[at + j, target]
        T.reduced[at + i, target] = total / T.factor[base + i * n + i]


@ti.func
def tree_kick(dim: ti.template(), T: ti.template(), e, f, length):
    """FREE, the velocity after a kick without contacts, from BEFORE; both also in ``dof``.

    ``v* = v + κ a(v + κ/2 a(v))``: two evaluations make what depends on velocities second order in κ. EARLY and LATE
    keep ``a``, TRIAL the velocity between.
    """
    bodies, n, joints = T.extent[0], T.extent[6], T.extent[7]
    at = e * n
    for i in range(at, at + n):
        T.reduced[i, RATE] = 0.0
    for s in range(5):
        velocity = ti.select(s < 2, BEFORE, ti.select(s < 4, TRIAL, FREE))
        spread(dim, T, e, ti.select(s % 2 == 0, velocity, RATE), s % 2, velocity)
        if s % 2 == 1:
            for g in range(e * bodies, (e + 1) * bodies):
                row = g * ti.static(3 if dim == 2 else 6)
                a, q = body_motion(dim, T.dof, RATE, row)
                _v, w = body_motion(dim, T.dof, velocity, row)
                force = T.heft[g] * (lift(dim, T.gravity[e]) - a) + lift(dim, T.force[f, g])
                I = T.inertia_world[g]
                moment = lift_turn(dim, T.torque[f, g]) - I @ q - w.cross(I @ w)
                set_motion(dim, T.dof, RESIDUAL, row, force, moment)
            pull(dim, T, e, RESIDUAL)
            for i in range(joints):
                j = at + n - joints + i
                T.reduced[j, RESIDUAL] = T.reduced[j, RESIDUAL] + T.joint_force[f, e * joints + i]
            found, kept, share = ti.select(s == 1, EARLY, LATE), ti.select(s == 1, TRIAL, FREE), 1.0
            if s == 1:
                share = 0.5
            solve_mass(T, e, RESIDUAL, 1.0, found)
            for i in range(at, at + n):
                T.reduced[i, kept] = T.reduced[i, BEFORE] + share * length * T.reduced[i, found]


@ti.func
def clear_motion_bars(dim: ti.template(), T: ti.template(), e):
    """Set the adjoints of velocities, z and accelerations to zero."""
    width = ti.static(3 if dim == 2 else 6)
    for i in range(e * T.extent[0] * width, (e + 1) * T.extent[0] * width):
        for c in range(VELOCITY_BAR, RATE_BAR + 1):
            T.dof[i, c] = 0.0


@ti.func
def balance_adjoint(dim: ti.template(), T: ti.template(), B: ti.template(), e, f, velocity, loads):
    """Adjoint of ``-z · (M a + c(v) - τ)``, z in ZED, a in RATE, v in ``velocity``: the adjoint of v in VELOCITY_BAR of
    ``reduced``. Without ``loads`` (0) only of ``-z · M a``. Adjoints of the velocities of bodies that come from
    elsewhere stand in VELOCITY_BAR and ZED_BAR of ``dof``, which are zero afterwards."""
    bodies, n, joints = T.extent[0], T.extent[6], T.extent[7]
    at = e * n
    for i in range(at, at + n):
        for c in range(VELOCITY_BAR, RATE_BAR + 1):
            T.reduced[i, c] = 0.0
    for s in range(3):
        column = ti.select(s == 0, velocity, ti.select(s == 1, ZED, RATE))
        spread(dim, T, e, column, ti.select(s == 2, loads, 0), velocity)
    on = ti.cast(loads, float)
    for g in range(e * bodies, (e + 1) * bodies):
        row = g * ti.static(3 if dim == 2 else 6)
        a, q = body_motion(dim, T.dof, RATE, row)
        z, y = body_motion(dim, T.dof, ZED, row)
        _v, w = body_motion(dim, T.dof, velocity, row)
        m, I = T.heft[g], T.inertia_world[g]
        pull_free = a - on * lift(dim, T.gravity[e])
        add_wrench(dim, T.dof, RATE_BAR, row, -m * z, -(I @ y))
        across = on * y.cross(w)
        add_wrench(dim, T.dof, VELOCITY_BAR, row, z * 0.0, -on * ((I @ w).cross(y)) - I @ across)
        add_wrench(dim, T.dof, ZED_BAR, row, on * lift(dim, T.force[f, g]) - m * pull_free,
                   on * (lift_turn(dim, T.torque[f, g]) - w.cross(I @ w)) - I @ q)
        B.mass[g] = B.mass[g] - ti.cast(z.dot(pull_free), ti.f64)
        B.gravity[e] = B.gravity[e] + ti.cast(on * m * flat(dim, z), ti.f64)
        B.force[0, f, g] = B.force[0, f, g] + ti.cast(on * flat(dim, z), ti.f64)
        B.torque[0, f, g] = B.torque[0, f, g] + ti.cast(on * flat_turn(dim, y), ti.f64)
        I_bar = -y.outer_product(q) - across.outer_product(w)
        R = T.turned[g]
        B.turned[g] = B.turned[g] + (I_bar + I_bar.transpose()) @ R @ lift_inertia(dim, T.inertia[g])
        B.inertia[g] = B.inertia[g] + ti.cast(lift_inertia_adjoint(dim, R.transpose() @ I_bar @ R), ti.f64)
    for i in range(joints):
        j, p = at + n - joints + i, e * joints + i
        B.armature[p] = B.armature[p] - ti.cast(T.reduced[j, ZED] * T.reduced[j, RATE], ti.f64)
        B.joint_force[0, f, p] = B.joint_force[0, f, p] + ti.cast(on * T.reduced[j, ZED], ti.f64)
    for s in range(3):
        column = ti.select(s == 1, velocity, ti.select(s == 2, ZED, RATE))
        bar = ti.select(s == 1, VELOCITY_BAR, ti.select(s == 2, ZED_BAR, RATE_BAR))
        spread_adjoint(dim, T, B, e, column, bar, ti.select(s == 0, loads, 0), velocity)
    clear_motion_bars(dim, T, e)


@ti.func
def tree_kick_adjoint(dim: ti.template(), T: ti.template(), B: ti.template(), e, f, length, inner):
    """Adjoint of ``M (v - v*)`` and of :func:`tree_kick`, from ``z`` in DELTA; and of the velocities of links.

    Without a step (``inner`` 0) only of the latter. Returns ``length_bar``.
    """
    bodies, n = T.extent[0], T.extent[6]
    at, base = e * n, e * n * n
    length_bar = 0.0
    for i in range(n):
        total = 0.0
        if inner == 1:
            for j in range(n):
                total = total + T.mass_matrix[base + i * n + j] * T.reduced[at + j, DELTA]
        else:
            T.reduced[at + i, ZED] = 0.0
            T.reduced[at + i, RATE] = 0.0
        T.reduced[at + i, RESIDUAL] = total
    for stage in range(ti.select(inner == 1, 0, 2), 3):
        velocity = ti.select(stage == 0, NOW, ti.select(stage == 1, TRIAL, BEFORE))
        if stage == 2:
            for g in range(e * bodies, (e + 1) * bodies):
                if T.link[g - e * bodies][KIND] != LOOSE:
                    add_wrench(dim, T.dof, VELOCITY_BAR, g * ti.static(3 if dim == 2 else 6),
                               lift(dim, B.velocity[g]), lift_turn(dim, B.spin[g]))
                    B.velocity[g] = B.velocity[g] * 0.0
                    B.spin[g] = B.spin[g] * 0.0
        if inner == 1:
            if stage == 2:
                solve_mass(T, e, VELOCITY_BAR, 0.5 * length, ZED)
            for i in range(at, at + n):
                if stage == 0:
                    T.reduced[i, ZED] = T.reduced[i, DELTA]
                    T.reduced[i, RATE] = T.reduced[i, NOW] - T.reduced[i, FREE]
                    length_bar = length_bar + T.reduced[i, RESIDUAL] * T.reduced[i, LATE]
                elif stage == 1:
                    T.reduced[i, ZED] = length * T.reduced[i, DELTA]
                    T.reduced[i, RATE] = T.reduced[i, LATE]
                else:
                    T.reduced[i, RATE] = T.reduced[i, EARLY]
                    T.reduced[i, RESIDUAL] = T.reduced[i, RESIDUAL] + T.reduced[i, VELOCITY_BAR]
                    length_bar = length_bar + 0.5 * T.reduced[i, VELOCITY_BAR] * T.reduced[i, EARLY]
        balance_adjoint(dim, T, B, e, f, velocity, ti.select(inner == 1 and stage > 0, 1, 0))
    give_velocities(dim, T, B, e)
    return length_bar


@ti.func
def give_velocities(dim: ti.template(), T: ti.template(), B: ti.template(), e):
    """Add RESIDUAL and VELOCITY_BAR of ``reduced`` to the adjoints of velocities of the state."""
    bodies = T.extent[0]
    for b in range(bodies):
        g, first = e * bodies + b, freedom_of(T, e, b)
        if T.link[b][KIND] == LOOSE:
            for i in ti.static(range(3 if dim == 2 else 6)):
                bar = T.reduced[first + i, RESIDUAL] + T.reduced[first + i, VELOCITY_BAR]
                if ti.static(i < dim):
                    B.velocity[g][i] = B.velocity[g][i] + bar
                else:
                    B.spin[g][i - dim] = B.spin[g][i - dim] + bar
        else:
            for i in range(T.link[b][COUNT]):
                p = joint_freedom(T, e, b) + i
                B.rate[p] = B.rate[p] + T.reduced[first + i, RESIDUAL] + T.reduced[first + i, VELOCITY_BAR]
