"""Particle-grid transfer of MLS-MPM (Hu et al. 2018, eq. 29) and its adjoint.

``A`` is the affine momentum of a particle per cell, ``q`` its momentum at the first node: the node at offset ``o``
receives ``w (q + A o, mass)``. Nodes are visited in lines of three along the last axis, which is contiguous in memory;
``o`` below counts the lines. A node is four equal lanes (vector, zero in 2-D, scalar), kept together throughout: that
is what LLVM turns into vector instructions. All loops are unrolled (the kernels still compile in seconds, which
Taichi's own differentiation of unrolled loops does not).

Local vectors are built whole, never element by element and then assigned again: Taichi 1.7.4 loses such a second
assignment when a loop follows (``tests/core/test_taichi_traps.py``).
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.mpm.order import in_cells
from taichi_sim.solvers.mpm.spline import NODE_MASK


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
def columns(dim: ti.template(), a, b, c):
    """Matrix of two or three columns, the first ``dim`` components of each."""
    if ti.static(dim == 3):
        return ti.Matrix.cols([xyz(dim, a), xyz(dim, b), xyz(dim, c)])
    else:
        return ti.Matrix.cols([xyz(dim, a), xyz(dim, c)])


@ti.func
def locate(dim: ti.template(), periodic: ti.template(), x, lattice: ti.template(), sizes):
    """Lower node of the stencil, offset from it in cells, and whether the particle is inside the grid.

    The test is on integers: a NaN position turns into a node far outside, and fast maths may not remove it.
    """
    xi = in_cells(dim, periodic, x, lattice)
    raw = ti.cast(xi - 0.5, ti.i32)
    base = ti.max(ti.min(raw, sizes - 4), 1)
    inside = ti.select((raw == base).all(), 1, 0)
    fx = ti.max(ti.min(xi - base, 1.5), 0.5)
    return base, fx, inside


@ti.func
def line_start(dim: ti.template(), o: ti.template(), first, s0, s1):
    """First node of line ``o``."""
    r = first + ti.static(o[0]) * s0
    if ti.static(dim == 3):
        r = first + ti.static(o[0]) * s0 + ti.static(o[dim - 2]) * s1
    return r


@ti.func
def line_weight(dim: ti.template(), w, o: ti.template()):
    """Product of the weights of line ``o`` along all axes but the last."""
    r = w[o[0], 0]
    if ti.static(dim == 3):
        r = w[o[0], 0] * w[o[dim - 2], 1]
    return r


@ti.func
def line_shift(dim: ti.template(), q, a0, a1, o: ti.template()):
    """``q + A o`` at the first node of line ``o``; ``a0``, ``a1`` are the columns of ``A``."""
    r = q
    if ti.static(o[0] > 0):
        r = r + ti.static(float(o[0])) * a0
    if ti.static(dim == 3 and o[dim - 2] > 0):
        r = r + ti.static(float(o[dim - 2])) * a1
    return r


@ti.func
def line_gradient(dim: ti.template(), w, dw, o: ti.template(), along, across):
    """Derivative of ``Σ w φ`` over line ``o`` with respect to position: ``along`` is ``Σ dw φ`` and ``across``
    ``Σ w φ``, both along the last axis only."""
    if ti.static(dim == 3):
        return ti.Vector([
            dw[o[0], 0] * w[o[dim - 2], 1] * across,
            w[o[0], 0] * dw[o[dim - 2], 1] * across,
            w[o[0], 0] * w[o[dim - 2], 1] * along,
        ])
    else:
        return ti.Vector([dw[o[0], 0] * across, w[o[0], 0] * along])


@ti.func
def scatter_nodes(dim: ti.template(), grid: ti.template(), first, s0, s1, w, q, A, mass):
    """Add ``w (q + A o, mass)`` to the 3^dim nodes; nobody else writes to this copy, so no atomics."""
    q4 = vec4(dim, q, mass)
    a0 = vec4(dim, column(dim, A, 0), mass * 0.0)
    a1 = vec4(dim, column(dim, A, 1), mass * 0.0)
    last = vec4(dim, column(dim, A, dim - 1), mass * 0.0)
    for o in ti.static(ti.grouped(ti.ndrange(*((3,) * (dim - 1))))):
        weight = line_weight(dim, w, o)
        r = line_start(dim, o, first, s0, s1)
        value = line_shift(dim, q4, a0, a1, o)
        for l in ti.static(range(3)):
            c = (r + l) & NODE_MASK
            grid[c] = grid[c] + (weight * w[l, dim - 1]) * value
            value = value + last


@ti.func
def scatter_nodes_adjoint(dim: ti.template(), grid_bar: ti.template(), first, s0, s1, w, dw, q, A, mass):
    """Adjoint of :func:`scatter_nodes`: ``q_bar = Σ w g``, ``A_bar = Σ w g ⊗ o``, ``mass_bar = Σ w g_m`` and
    the derivative with respect to position at fixed ``q`` and ``A``; ``g`` is the adjoint of a node's momentum."""
    q4 = vec4(dim, q, mass)
    a0 = vec4(dim, column(dim, A, 0), mass * 0.0)
    a1 = vec4(dim, column(dim, A, 1), mass * 0.0)
    last = vec4(dim, column(dim, A, dim - 1), mass * 0.0)
    sum_bar = q4 * 0.0
    b0 = q4 * 0.0
    b1 = q4 * 0.0
    b2 = q4 * 0.0
    x_bar = q * 0.0
    for o in ti.static(ti.grouped(ti.ndrange(*((3,) * (dim - 1))))):
        weight = line_weight(dim, w, o)
        r = line_start(dim, o, first, s0, s1)
        value = line_shift(dim, q4, a0, a1, o)
        g0 = grid_bar[r & NODE_MASK]
        g1 = grid_bar[(r + 1) & NODE_MASK]
        g2 = grid_bar[(r + 2) & NODE_MASK]
        f0 = g0.dot(value)
        f1 = g1.dot(value + last)
        f2 = g2.dot(value + 2.0 * last)
        u1 = w[1, dim - 1] * g1
        u2 = w[2, dim - 1] * g2
        line = weight * (w[0, dim - 1] * g0 + u1 + u2)
        sum_bar = sum_bar + line
        b2 = b2 + weight * (u1 + 2.0 * u2)
        if ti.static(o[0] > 0):
            b0 = b0 + ti.static(float(o[0])) * line
        if ti.static(dim == 3 and o[dim - 2] > 0):
            b1 = b1 + ti.static(float(o[dim - 2])) * line
        x_bar = x_bar + line_gradient(
            dim, w, dw, o,
            dw[0, dim - 1] * f0 + dw[1, dim - 1] * f1 + dw[2, dim - 1] * f2,
            w[0, dim - 1] * f0 + w[1, dim - 1] * f1 + w[2, dim - 1] * f2,
        )
    return xyz(dim, sum_bar), columns(dim, b0, b1, b2), sum_bar[3], x_bar


@ti.func
def gather_nodes(dim: ti.template(), grid: ti.template(), first, s0, s1, w):
    """Velocity ``Σ w V`` and first moments ``B[:, d] = Σ w V o_d`` (offsets in cells from the first node)."""
    velocity = grid[first & NODE_MASK] * 0.0
    b0 = velocity
    b1 = velocity
    b2 = velocity
    for o in ti.static(ti.grouped(ti.ndrange(*((3,) * (dim - 1))))):
        weight = line_weight(dim, w, o)
        r = line_start(dim, o, first, s0, s1)
        u1 = w[1, dim - 1] * grid[(r + 1) & NODE_MASK]
        u2 = w[2, dim - 1] * grid[(r + 2) & NODE_MASK]
        line = weight * (w[0, dim - 1] * grid[r & NODE_MASK] + u1 + u2)
        velocity = velocity + line
        b2 = b2 + weight * (u1 + 2.0 * u2)
        if ti.static(o[0] > 0):
            b0 = b0 + ti.static(float(o[0])) * line
        if ti.static(dim == 3 and o[dim - 2] > 0):
            b1 = b1 + ti.static(float(o[dim - 2])) * line
    return xyz(dim, velocity), columns(dim, b0, b1, b2)


@ti.func
def gather_nodes_adjoint(
    dim: ti.template(), grid: ti.template(), copies: ti.template(), first, copy, s0, s1, w, dw, q, A
):
    """Adjoint of :func:`gather_nodes` with node adjoint ``w (q + A o)``, scattered into ``copies``.

    Returns ``Σ w V`` and the derivative of ``Σ w V·(q + A o)`` with respect to the particle's position at fixed
    ``q`` and ``A``.
    """
    q4 = vec4(dim, q, q[0] * 0.0)
    a0 = vec4(dim, column(dim, A, 0), q[0] * 0.0)
    a1 = vec4(dim, column(dim, A, 1), q[0] * 0.0)
    last = vec4(dim, column(dim, A, dim - 1), q[0] * 0.0)
    velocity = q4 * 0.0
    x_bar = q * 0.0
    for o in ti.static(ti.grouped(ti.ndrange(*((3,) * (dim - 1))))):
        weight = line_weight(dim, w, o)
        r = line_start(dim, o, first, s0, s1)
        t = line_start(dim, o, copy, s0, s1)
        value = line_shift(dim, q4, a0, a1, o)
        g0 = grid[r & NODE_MASK]
        g1 = grid[(r + 1) & NODE_MASK]
        g2 = grid[(r + 2) & NODE_MASK]
        f0 = g0.dot(value)
        f1 = g1.dot(value + last)
        f2 = g2.dot(value + 2.0 * last)
        for l in ti.static(range(3)):
            c = (t + l) & NODE_MASK
            copies[c] = copies[c] + (weight * w[l, dim - 1]) * value
            value = value + last
        velocity = velocity + weight * (w[0, dim - 1] * g0 + w[1, dim - 1] * g1 + w[2, dim - 1] * g2)
        x_bar = x_bar + line_gradient(
            dim, w, dw, o,
            dw[0, dim - 1] * f0 + dw[1, dim - 1] * f1 + dw[2, dim - 1] * f2,
            w[0, dim - 1] * f0 + w[1, dim - 1] * f1 + w[2, dim - 1] * f2,
        )
    return xyz(dim, velocity), x_bar
