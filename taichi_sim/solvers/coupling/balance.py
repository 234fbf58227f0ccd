"""What particles add to the velocity problem of bodies: ``Σ Jᵀ λ(J v)`` to its residual, ``Σ Jᵀ G J`` to its matrix.

Both act through a body's twist and wrench only, at one body each: a particle's own velocity is eliminated. Where bodies
hang on joints the matrix is that of the degrees of freedom (``articulated.add_block``); the velocity problem itself
projects the residual.
"""

from taichi_sim.core.maths import skew
from taichi_sim.runtime import ti
from taichi_sim.solvers.coupling.arrays import (
    ALPHA,
    ARM,
    BAR,
    BIAS,
    FRICTION,
    FROZEN,
    MASS,
    NORMAL,
    PRESS,
    ROOM,
    SPEED,
    STICTION,
)
from taichi_sim.solvers.coupling.law import meet, meet_lagged, meet_lagged_slope, meet_slope
from taichi_sim.solvers.rigid.articulated import add_block
from taichi_sim.solvers.rigid.geometry import column3
from taichi_sim.solvers.rigid.groups import place_of
from taichi_sim.solvers.rigid.law import LAGGED
from taichi_sim.solvers.rigid.rotation import lift
from taichi_sim.solvers.rigid.twist import NOW, RESIDUAL, add_wrench, body_motion


@ti.func
def surface_motion(dim: ti.template(), dof: ti.template(), column, e, bodies, i, row: ti.template(),
                   row_body: ti.template()):
    """Velocity of the body's surface at contact ``i``; 0 for the world."""
    freedoms = ti.static(3 if dim == 2 else 6)
    out = ti.Vector([0.0, 0.0, 0.0])
    if row_body[i][0] >= 0:
        v, w = body_motion(dim, dof, column, (e * bodies + row_body[i][0]) * freedoms)
        out = v + w.cross(column3(row, i, ARM))
    return out


#: Friction of a row that is a weld.
WELDED = -1.0


@ti.func
def particle_impulse(row: ti.template(), i, moving, soft):
    """``λ`` of contact or weld ``i`` at a surface that moves with ``moving``."""
    u = column3(row, i, SPEED) - moving
    out = row[i][MASS] * (column3(row, i, NORMAL) - u)
    if row[i][FRICTION] >= 0.0:
        out = meet(u, column3(row, i, NORMAL), row[i][MASS], row[i][ALPHA], row[i][BIAS], row[i][FRICTION],
                   soft * row[i][STICTION])
    return out


@ti.func
def particle_slope(row: ti.template(), i, moving, soft):
    """``G`` of contact or weld ``i``."""
    out = row[i][MASS] * ti.Matrix.identity(float, 3)
    if row[i][FRICTION] >= 0.0:
        out = meet_slope(column3(row, i, SPEED) - moving, column3(row, i, NORMAL), row[i][MASS], row[i][ALPHA],
                         row[i][BIAS], row[i][FRICTION], soft * row[i][STICTION])
    return out


@ti.func
def lagged_impulse(row: ti.template(), i, moving, soft):
    """``λ`` with the normal impulse in the friction frozen."""
    return meet_lagged(column3(row, i, SPEED) - moving, column3(row, i, NORMAL), row[i][MASS], row[i][ALPHA],
                       row[i][BIAS], row[i][FRICTION] * row[i][ALPHA] * row[i][FROZEN], soft * row[i][STICTION])


@ti.func
def lagged_slope(row: ti.template(), i, moving, soft):
    """``G`` of that."""
    return meet_lagged_slope(column3(row, i, SPEED) - moving, column3(row, i, NORMAL), row[i][MASS], row[i][ALPHA],
                             row[i][BIAS], row[i][FRICTION] * row[i][ALPHA] * row[i][FROZEN],
                             soft * row[i][STICTION])


@ti.func
def freeze(e, others: ti.template()):
    """Freeze the normal impulses of the last :func:`pull`."""
    freeze_rows(e, others[0], others[2], others[3])


@ti.func
def freeze_rows(e, row: ti.template(), row_count: ti.template(), counts: ti.template()):
    """:func:`freeze` of an environment's contacts."""
    for i in range(e * counts[ROOM], e * counts[ROOM] + row_count[e]):
        row[i][FROZEN] = row[i][PRESS]


@ti.func
def pull(dim: ti.template(), column, e, bodies, lagged, soft, dof: ti.template(), heft: ti.template(),
         others: ti.template()):
    """:func:`pull_rows` as the velocity problem calls it."""
    return pull_rows(dim, column, e, bodies, lagged, soft, dof, heft, others[0], others[1], others[2], others[3])


@ti.func
def pull_rows(dim: ti.template(), column, e, bodies, lagged, soft, dof: ti.template(), heft: ti.template(),
              row: ti.template(), row_body: ti.template(), row_count: ti.template(), counts: ti.template()):
    """Add the particles' share to RESIDUAL, at the velocities in ``column``. Returns the size of the terms, J."""
    freedoms = ti.static(3 if dim == 2 else 6)
    size = 0.0
    for i in range(e * counts[ROOM], e * counts[ROOM] + row_count[e]):
        if row_body[i][0] >= 0:
            moving = surface_motion(dim, dof, column, e, bodies, i, row, row_body)
            row[i][PRESS] = ti.max(row[i][BIAS] - column3(row, i, NORMAL).dot(column3(row, i, SPEED) - moving), 0.0)
            impulse = moving * 0.0
            if lagged == LAGGED and row[i][FRICTION] >= 0.0:
                impulse = lagged_impulse(row, i, moving, soft)
            else:
                impulse = particle_impulse(row, i, moving, soft)
            b = e * bodies + row_body[i][0]
            add_wrench(dim, dof, RESIDUAL, b * freedoms, impulse, column3(row, i, ARM).cross(impulse))
            size = size + impulse.norm_sqr() / heft[b]
    return size


@ti.func
def stiffen(dim: ti.template(), J: ti.template(), column, e, bodies, lagged, soft, transposed, dof: ti.template(),
            matrix: ti.template(), others: ti.template()):
    """:func:`stiffen_rows` as the velocity problem calls it."""
    stiffen_rows(dim, J, column, e, bodies, lagged, soft, transposed, dof, matrix, others[0], others[1], others[2],
                 others[3])


@ti.func
def stiffen_rows(dim: ti.template(), J: ti.template(), column, e, bodies, lagged, soft, transposed, dof: ti.template(),
                 matrix: ti.template(), row: ti.template(), row_body: ti.template(), row_count: ti.template(),
                 counts: ti.template()):
    """Add the particles' share to the matrix, at the velocities in ``column``: ``J = [1, -[r]]`` at the arm ``r``."""
    freedoms = ti.static(3 if dim == 2 else 6)
    n = bodies * freedoms
    for i in range(e * counts[ROOM], e * counts[ROOM] + row_count[e]):
        if row_body[i][0] >= 0:
            moving = surface_motion(dim, dof, column, e, bodies, i, row, row_body)
            G = moving.outer_product(moving) * 0.0
            if lagged == LAGGED and row[i][FRICTION] >= 0.0:
                G = lagged_slope(row, i, moving, soft)
            else:
                G = particle_slope(row, i, moving, soft)
            if G.norm_sqr() > 0.0:
                if transposed == 1:
                    G = G.transpose()
                if ti.static(J.on):
                    arm = column3(row, i, ARM)
                    add_block(dim, J.tree, matrix, e, G, row_body[i][0], arm, -1, arm, 0)
                else:
                    S = skew(column3(row, i, ARM))
                    turned = -(G @ S)
                    moment = S @ G
                    both = S @ turned
                    at = place_of(freedoms, e * n, row_body[i][0], dof) * freedoms * (n + 1) + e * n * n
                    for a in ti.static(range(3)):
                        for d in ti.static(range(3)):
                            if ti.static(dim == 3):
                                matrix[at + a * n + d] = matrix[at + a * n + d] + G[a, d]
                                matrix[at + a * n + 3 + d] = matrix[at + a * n + 3 + d] + turned[a, d]
                                matrix[at + (3 + a) * n + d] = matrix[at + (3 + a) * n + d] + moment[a, d]
                                matrix[at + (3 + a) * n + 3 + d] = matrix[at + (3 + a) * n + 3 + d] + both[a, d]
                            elif ti.static(a < 2 and d < 2):
                                matrix[at + a * n + d] = matrix[at + a * n + d] + G[a, d]
                            elif ti.static(a < 2):
                                matrix[at + a * n + 2] = matrix[at + a * n + 2] + turned[a, 2]
                            elif ti.static(d < 2):
                                matrix[at + 2 * n + d] = matrix[at + 2 * n + d] + moment[2, d]
                            else:
                                matrix[at + 2 * n + 2] = matrix[at + 2 * n + 2] + both[2, 2]


@ti.func
def pull_adjoint(dim: ti.template(), target, e, bodies, dof: ti.template(), material: ti.template(),
                 d_v: ti.template(), row: ti.template(), row_body: ti.template(), row_count: ti.template(),
                 counts: ti.template()):
    """What adjoints of particles after contact add to those of bodies: ``Σ Jᵀ Gᵀ v_bar/m`` to the column
    ``target``, ``G`` taken at the velocities in NOW. ``v_bar`` is kept in the row."""
    freedoms = ti.static(3 if dim == 2 else 6)
    for i in range(e * counts[ROOM], e * counts[ROOM] + row_count[e]):
        bar = lift(dim, d_v[row_body[i][2]])
        for d in ti.static(range(3)):
            row[i][BAR + d] = bar[d]
        if row_body[i][0] >= 0:
            G = particle_slope(row, i, surface_motion(dim, dof, NOW, e, bodies, i, row, row_body), 1.0)
            force = G.transpose() @ (bar / material[row_body[i][1]][1])
            add_wrench(dim, dof, target, (e * bodies + row_body[i][0]) * freedoms, force,
                       column3(row, i, ARM).cross(force))
