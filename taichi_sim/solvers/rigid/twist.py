"""Velocities of bodies as columns of one array: a row for every degree of freedom of a body, 3 in 2-D and 6 in 3-D."""

from taichi_sim.runtime import ti

#: Columns of ``dof``: velocity without contacts, iterate, trial, residual, right side and solution, velocity before.
FREE, NOW, TRIAL, RESIDUAL, DELTA, BEFORE = 0, 1, 2, 3, 4, 5

#: What ``groups`` notes: place of a body among all, body of a place (both at a body's first row); last column of a row
#: of the matrix, last row of a column.
SEAT, SEATED, LAST_COLUMN, LAST_ROW = 6, 7, 8, 9

#: Further columns where bodies hang on joints: z of the adjoint, acceleration; adjoints of velocity, z and
#: acceleration; accelerations at both evaluations of the kick.
ZED, RATE, VELOCITY_BAR, ZED_BAR, RATE_BAR, EARLY, LATE = 10, 11, 12, 13, 14, 15, 16


@ti.func
def body_motion(dim: ti.template(), dof: ti.template(), column, first):
    """Velocity and angular velocity of the body whose degrees of freedom begin at ``first``."""
    v = ti.Vector([dof[first, column], dof[first + 1, column], 0.0])
    w = ti.Vector([0.0, 0.0, dof[first + 2, column]])
    if ti.static(dim == 3):
        v = ti.Vector([dof[first, column], dof[first + 1, column], dof[first + 2, column]])
        w = ti.Vector([dof[first + 3, column], dof[first + 4, column], dof[first + 5, column]])
    return v, w


@ti.func
def add_wrench(dim: ti.template(), dof: ti.template(), column, first, force, moment):
    """Add to a body's degrees of freedom; the transpose of :func:`body_motion`."""
    both = ti.Vector([force[0], force[1], moment[2]])
    if ti.static(dim == 3):
        both = force
    for a in range(3):
        dof[first + a, column] = dof[first + a, column] + both[a]
        if ti.static(dim == 3):
            dof[first + 3 + a, column] = dof[first + 3 + a, column] + moment[a]


@ti.func
def set_motion(dim: ti.template(), dof: ti.template(), column, first, v, w):
    """Write a body's degrees of freedom."""
    freedoms = ti.static(3 if dim == 2 else 6)
    for a in range(freedoms):
        dof[first + a, column] = 0.0
    add_wrench(dim, dof, column, first, v, w)
