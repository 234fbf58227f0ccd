"""Where two features of bodies are closest: points, lines, circles, planes; pure geometry and its adjoint.

A contact is a feature of A against a feature of B. Both are given by vectors in world axes:

============ ====================================================== ============================================
kind         A                                                      B
============ ====================================================== ============================================
POINT_PLANE  point with radius ra                                   unit normal b0, offset rb
POINT_POINT  point with radius ra                                   point b0 with radius rb
POINT_LINE   point with radius ra                                   line from b0 along b1, with radius rb
POINT_RIM    point with radius ra                                   circle around b0, axis b1, of radius rb
RIM_PLANE    circle, axis a1, of radius ra                          unit normal b0, offset rb
LINE_LINE    line along a1 with radius ra                           line from b0 along b1, with radius rb
============ ====================================================== ============================================

``P`` is A's point (centre of the circle, start of the line) as seen from the centre of mass of B. Lengths of directions
do not matter. A circle lies on a plane with six of its points, the lowest one first: with a linear law the sum of their
forces and moments does not depend on which of them is first, so that a standing cylinder knows no special direction,
while a rolling one always has its lowest point. ``part`` is the number of the point; of two lines, 1 where the normal
is the other one of the two that are square to both (sharp edges meet from one side, whatever they overlap).
"""

from taichi_sim.runtime import ti

POINT_PLANE, POINT_POINT, POINT_LINE, POINT_RIM, RIM_PLANE, LINE_LINE, POINT_GRID = 0, 1, 2, 3, 4, 5, 6

#: ``kind + PARTS * part`` is what stands on the tape.
PARTS = 16

#: Points of a circle on a plane, and the sine of the tilt below which the first of them lies in a fixed direction.
SECTORS, FLAT = 6, 1e-3

#: Nearer than this (m) there is no normal, and its derivatives are left out.
SMALL = 1e-12


@ti.func
def unit(v):
    """``v`` made a unit vector, and its length."""
    length = ti.sqrt(ti.max(v.norm_sqr(), SMALL * SMALL))
    return v / length, length


@ti.func
def unit_adjoint(n, length, bar):
    """Adjoint of :func:`unit`."""
    return (bar - n * n.dot(bar)) / length


@ti.func
def rim_direction(u, n, part):
    """Unit vector from the centre of a circle of axis ``u`` to its point ``part`` on a plane of normal ``n``."""
    ref = n
    tilted = 1
    if (n - u.dot(n) * u).norm_sqr() < FLAT * FLAT:
        tilted = 0
        first = ti.select(ti.abs(u[0]) < 0.7, 1.0, 0.0)
        ref = ti.Vector([first, 1.0 - first, 0.0])
    e, length = unit(u.dot(ref) * u - ref)
    angle = 2.0 * 3.141592653589793 / SECTORS * part
    return ti.cos(angle), ti.sin(angle), e, length, ref, tilted


@ti.func
def closest(codes: ti.template(), kind, part, P, a1, b0, b1, ra, rb):
    """Unit normal from B to A, way from A's point to the contact on its core (before ``ra`` of a point or a line is
    taken off along the normal), and gap."""
    n = b0
    way = P * 0.0
    gap = b0.dot(P) - rb - ra
    if ti.static(POINT_POINT in codes or POINT_LINE in codes or POINT_RIM in codes):
        if kind == POINT_POINT or kind == POINT_LINE or kind == POINT_RIM:
            d = P - b0
            gap = -ra - rb
            if ti.static(POINT_LINE in codes):
                if kind == POINT_LINE:
                    d = d - (b1.dot(d) / b1.norm_sqr()) * b1
            if ti.static(POINT_RIM in codes):
                if kind == POINT_RIM:
                    u, _length = unit(b1)
                    e, _far = unit(d - u.dot(d) * u)
                    d = d - rb * e
                    gap = -ra
            n, far = unit(d)
            gap = gap + far
            if far < 2.0 * SMALL:
                n = ti.Vector([0.0, 1.0, 0.0])
    if ti.static(RIM_PLANE in codes):
        if kind == RIM_PLANE:
            u, _length = unit(a1)
            c, s, e, _l, _ref, _tilted = rim_direction(u, b0, part)
            way = ra * (c * e + s * u.cross(e))
            gap = b0.dot(P + way) - rb
    if ti.static(LINE_LINE in codes):
        if kind == LINE_LINE:
            w, m = P - b0, a1.cross(b1)
            n, _length = unit(ti.select(part == 1, -1.0, 1.0) * m)
            way = -(w.dot(b1.cross(m)) / ti.max(m.norm_sqr(), SMALL * SMALL)) * a1
            gap = n.dot(w) - ra - rb
    return n, way, gap


@ti.func
def closest_adjoint(codes: ti.template(), kind, part, P, a1, b0, b1, ra, rb, n_bar, way_bar, gap_bar):
    """Adjoint of :func:`closest`: of ``P``, ``a1``, ``b0``, ``b1``, ``ra``, ``rb``; and the normal again."""
    n = b0
    P_bar, a1_bar, b0_bar, b1_bar = gap_bar * b0, P * 0.0, n_bar + gap_bar * P, P * 0.0
    ra_bar, rb_bar = -gap_bar, -gap_bar
    if ti.static(POINT_POINT in codes or POINT_LINE in codes or POINT_RIM in codes):
        if kind == POINT_POINT or kind == POINT_LINE or kind == POINT_RIM:
            start = P - b0
            d, along, square = start, 0.0 * ra, 1.0 + 0.0 * ra
            u, e, length, wide = n, n, 1.0 + 0.0 * ra, 1.0 + 0.0 * ra
            if ti.static(POINT_LINE in codes):
                if kind == POINT_LINE:
                    square = b1.norm_sqr()
                    along = b1.dot(start) / square
                    d = start - along * b1
            if ti.static(POINT_RIM in codes):
                if kind == POINT_RIM:
                    u, length = unit(b1)
                    e, wide = unit(start - u.dot(start) * u)
                    d = start - rb * e
            n, far = unit(d)
            d_bar = gap_bar * n + unit_adjoint(n, far, n_bar)
            if far < 2.0 * SMALL:
                n = ti.Vector([0.0, 1.0, 0.0])
                d_bar = gap_bar * n
            start_bar = d_bar
            if ti.static(POINT_LINE in codes):
                if kind == POINT_LINE:
                    along_bar = -b1.dot(d_bar) / square
                    b1_bar = -along * d_bar + along_bar * (start - 2.0 * along * b1)
                    start_bar = d_bar + along_bar * b1
            if ti.static(POINT_RIM in codes):
                if kind == POINT_RIM:
                    rb_bar = -e.dot(d_bar)
                    out_bar = unit_adjoint(e, wide, -rb * d_bar)
                    start_bar = d_bar + out_bar - u.dot(out_bar) * u
                    b1_bar = unit_adjoint(u, length, -u.dot(start) * out_bar - u.dot(out_bar) * start)
            P_bar, b0_bar = start_bar, -start_bar
    if ti.static(RIM_PLANE in codes):
        if kind == RIM_PLANE:
            u, length = unit(a1)
            c, s, e, wide, ref, tilted = rim_direction(u, b0, part)
            P_bar = gap_bar * b0
            total = way_bar + P_bar
            b0_bar = n_bar + gap_bar * (P + ra * (c * e + s * u.cross(e)))
            ra_bar = total.dot(c * e + s * u.cross(e))
            e_bar = ra * (c * total + s * total.cross(u))
            u_bar = (ra * s) * e.cross(total)
            g_bar = -unit_adjoint(e, wide, e_bar)
            u_bar = u_bar - u.dot(ref) * g_bar - u.dot(g_bar) * ref
            if tilted == 1:
                b0_bar = b0_bar + g_bar - u.dot(g_bar) * u
            a1_bar = unit_adjoint(u, length, u_bar)
    if ti.static(LINE_LINE in codes):
        if kind == LINE_LINE:
            w, m = P - b0, a1.cross(b1)
            turned = ti.select(part == 1, -1.0, 1.0)
            n, length = unit(turned * m)
            square = ti.max(m.norm_sqr(), SMALL * SMALL)
            across = b1.cross(m)
            share = -w.dot(across) / square
            share_bar = a1.dot(way_bar)
            P_bar = gap_bar * n - (share_bar / square) * across
            b0_bar = -P_bar
            m_bar = turned * unit_adjoint(n, length, n_bar + gap_bar * w) - (share_bar / square) * (
                w.cross(b1) + 2.0 * share * m)
            a1_bar = share * way_bar + b1.cross(m_bar)
            b1_bar = m_bar.cross(a1) - (share_bar / square) * m.cross(w)
    return P_bar, a1_bar, b0_bar, b1_bar, ra_bar, rb_bar, n
