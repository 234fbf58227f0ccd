"""Particle-grid transfer of MLS-MPM (Hu et al. 2018, eqs. 16-17) and its adjoint.

One line of nodes is handled at a time: the outer axis is a run-time loop and the inner axes are unrolled, which
compiles in seconds and keeps the three nodes of a line in registers. ``A`` is the affine momentum of a particle per
cell, ``q`` its momentum at the first node: node ``(i, j, l)`` receives ``q + i A[:,0] + j A[:,1] + l A[:,2]``.

Local vectors are built whole, never element by element and then assigned again: Taichi 1.7.4 loses such a second
assignment when a loop follows (``tests/core/test_taichi_traps.py``).
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.mpm.spline import NODE_MASK


@ti.func
def row_offset(dim: ti.template(), o: ti.template(), s1):
    """Node offset of the inner axes ``o`` within one row block; the last axis is contiguous."""
    if ti.static(dim == 3):
        return ti.static(o[0]) * s1 + ti.static(o[dim - 2])
    else:
        return ti.static(o[0])


@ti.func
def node_of(dim: ti.template(), base, s0, s1):
    """Linear index of a node."""
    r = base[0] * s0 + base[1]
    if ti.static(dim == 3):
        r = base[0] * s0 + base[1] * s1 + base[2]
    return r


@ti.func
def column(dim: ti.template(), A, j: ti.template()):
    """Column ``j`` of a matrix."""
    return ti.Vector([A[d, j] for d in ti.static(range(dim))])


@ti.func
def vec4(dim: ti.template(), v, m):
    """A vector and a scalar as one node value: the scalar comes last."""
    r = ti.Vector([v[0], v[1], m * 0.0, m])
    if ti.static(dim == 3):
        r = ti.Vector([v[0], v[1], v[dim - 1], m])
    return r


@ti.func
def xyz(dim: ti.template(), g):
    """The vector of a node value."""
    return ti.Vector([g[d] for d in ti.static(range(dim))])


@ti.func
def inner_weight(dim: ti.template(), w, o: ti.template()):
    """Product of the weights of the inner axes."""
    r = w[o[0], 1]
    if ti.static(dim == 3):
        r = w[o[0], 1] * w[o[dim - 2], dim - 1]
    return r


@ti.func
def inner_shift(dim: ti.template(), q, A, o: ti.template()):
    """``q + j A[:,1] + l A[:,2]`` for inner offsets ``o = (j, l)``."""
    r = q
    if ti.static(o[0] > 0):
        r = r + ti.static(o[0]) * column(dim, A, 1)
    if ti.static(dim == 3 and o[dim - 2] > 0):
        r = r + ti.static(o[dim - 2]) * column(dim, A, dim - 1)
    return r


@ti.func
def position_bar(dim: ti.template(), w, dw, i, o: ti.template(), inner, product):
    """Derivative of a node's weight with respect to position, times ``product``."""
    if ti.static(dim == 3):
        return ti.Vector([
            dw[i, 0] * inner * product,
            w[i, 0] * dw[o[0], 1] * w[o[dim - 2], dim - 1] * product,
            w[i, 0] * w[o[0], 1] * dw[o[dim - 2], dim - 1] * product,
        ])
    else:
        return ti.Vector([dw[i, 0] * inner * product, w[i, 0] * dw[o[0], 1] * product])


@ti.func
def columns(dim: ti.template(), a, b, c):
    """Matrix of two or three columns."""
    if ti.static(dim == 3):
        return ti.Matrix.cols([a, b, c])
    else:
        return ti.Matrix.cols([a, b])


@ti.func
def locate(dim: ti.template(), x, lattice: ti.template(), sizes):
    """Lower node of the stencil, offset from it in cells, and whether the particle is inside the grid.

    The test is on integers: a NaN position turns into a node far outside, and fast maths may not remove it.
    """
    xi = ti.Vector([(x[d] - lattice[3 + d]) * lattice[1] for d in ti.static(range(dim))])
    raw = ti.cast(xi - 0.5, ti.i32)
    base = ti.max(ti.min(raw, sizes - 4), 1)
    inside = ti.select((raw == base).all(), 1, 0)
    fx = ti.max(ti.min(xi - base, 1.5), 0.5)
    return base, fx, inside


@ti.func
def scatter_nodes(dim: ti.template(), grid: ti.template(), first, s0, s1, w, q, A, mass):
    """Add ``w (q + A·offset, mass)`` to the 3^dim nodes; nobody else writes to this copy, so no atomics."""
    for i in range(3):
        qi = q + i * column(dim, A, 0)
        row = first + i * s0
        for o in ti.static(ti.grouped(ti.ndrange(*((3,) * (dim - 1))))):
            weight = w[i, 0] * inner_weight(dim, w, o)
            c = (row + row_offset(dim, o, s1)) & NODE_MASK
            grid[c] = grid[c] + weight * vec4(dim, inner_shift(dim, qi, A, o), mass)


@ti.func
def scatter_nodes_adjoint(dim: ti.template(), grid_bar: ti.template(), first, s0, s1, w, dw, q, A, mass):
    """Adjoint of :func:`scatter_nodes`: ``q_bar = Σ w g``, ``A_bar = Σ w g ⊗ offset``, ``mass_bar = Σ w g_m`` and
    the derivative with respect to position at fixed ``q`` and ``A``; ``g`` is the adjoint of a node's momentum."""
    q_bar = q * 0.0
    x_bar = q * 0.0
    b0 = q * 0.0
    b1 = q * 0.0
    b2 = q * 0.0
    mass_bar = mass * 0.0
    for i in range(3):
        qi = q + i * column(dim, A, 0)
        line = q * 0.0
        row = first + i * s0
        for o in ti.static(ti.grouped(ti.ndrange(*((3,) * (dim - 1))))):
            inner = inner_weight(dim, w, o)
            weight = w[i, 0] * inner
            g = grid_bar[(row + row_offset(dim, o, s1)) & NODE_MASK]
            gv = xyz(dim, g)
            x_bar = x_bar + position_bar(
                dim, w, dw, i, o, inner, gv.dot(inner_shift(dim, qi, A, o)) + g[3] * mass
            )
            u = weight * gv
            line = line + u
            mass_bar = mass_bar + weight * g[3]
            if ti.static(o[0] > 0):
                b1 = b1 + ti.static(o[0]) * u
            if ti.static(dim == 3 and o[dim - 2] > 0):
                b2 = b2 + ti.static(o[dim - 2]) * u
        q_bar = q_bar + line
        b0 = b0 + i * line
    return q_bar, columns(dim, b0, b1, b2), mass_bar, x_bar


@ti.func
def gather_nodes(dim: ti.template(), grid: ti.template(), first, s0, s1, w, zero):
    """Velocity ``Σ w V`` and first moments ``B[:, d] = Σ w V offset_d`` (offsets in cells from the first node)."""
    velocity = ti.Vector([zero for d in ti.static(range(dim))])
    b0 = velocity
    b1 = velocity
    b2 = velocity
    for i in range(3):
        line = ti.Vector([zero for d in ti.static(range(dim))])
        row = first + i * s0
        for o in ti.static(ti.grouped(ti.ndrange(*((3,) * (dim - 1))))):
            weight = w[i, 0] * inner_weight(dim, w, o)
            u = weight * xyz(dim, grid[(row + row_offset(dim, o, s1)) & NODE_MASK])
            line = line + u
            if ti.static(o[0] > 0):
                b1 = b1 + ti.static(o[0]) * u
            if ti.static(dim == 3 and o[dim - 2] > 0):
                b2 = b2 + ti.static(o[dim - 2]) * u
        velocity = velocity + line
        b0 = b0 + i * line
    return velocity, columns(dim, b0, b1, b2)


@ti.func
def gather_nodes_adjoint(
    dim: ti.template(), grid: ti.template(), copies: ti.template(), first, copy, s0, s1, w, dw, q, A
):
    """Adjoint of :func:`gather_nodes` with node adjoint ``w (q + A·offset)``, scattered into ``copies``.

    Returns ``Σ w V`` and the derivative of ``Σ w V·(q + A·offset)`` with respect to the particle's position at fixed
    ``q`` and ``A``.
    """
    velocity = q * 0.0
    x_bar = q * 0.0
    for i in range(3):
        qi = q + i * column(dim, A, 0)
        row = first + i * s0
        target = copy + i * s0
        for o in ti.static(ti.grouped(ti.ndrange(*((3,) * (dim - 1))))):
            inner = inner_weight(dim, w, o)
            weight = w[i, 0] * inner
            offset = row_offset(dim, o, s1)
            gv = xyz(dim, grid[(row + offset) & NODE_MASK])
            value = inner_shift(dim, qi, A, o)
            c = (target + offset) & NODE_MASK
            copies[c] = copies[c] + weight * vec4(dim, value, weight * 0.0)
            x_bar = x_bar + position_bar(dim, w, dw, i, o, inner, gv.dot(value))
            velocity = velocity + weight * gv
    return velocity, x_bar
