"""Signed distance of simple shapes in their own axes, with its gradient and its second derivative.

A place ``y`` (3-vector, m; z = 0 in 2-D) has the distance ``φ`` (negative inside), the unit normal ``n = dφ/dy`` of
the closest point of the surface, and ``bend = dn/dy``. Outside, all are exact; inside, the nearest face counts. Edges
are as round as ``size`` says, and seen from outside always are: the normal turns about a corner, it does not jump.

======== ====================================================== ==========================
kind     size (m)                                               axis
======== ====================================================== ==========================
SPHERE   radius                                                 (a disc in 2-D)
BOX      half widths x, y, z, radius of the edges               (z: anything large in 2-D)
CAPSULE  radius, half length of its line                        x
CYLINDER radius, half length, radius of the edges               x
PLANE    none: the solid is x < 0                               x
GRID     factor of a lattice of samples (``samples``)
======== ====================================================== ==========================

Half widths and lengths of boxes and cylinders are those of the whole shape, edges included.
"""

from taichi_sim.runtime import ti

SPHERE, BOX, CAPSULE, CYLINDER, PLANE, GRID = 0, 1, 2, 3, 4, 5

#: Nearer to a centre, an axis or an edge than this (m) there is no normal, and the derivatives are left out.
SMALL = 1e-12


@ti.func
def sign_of(x):
    """1 or -1."""
    return ti.select(x < 0.0, -1.0, 1.0)


@ti.func
def diagonal(a):
    """Diagonal matrix of a 3-vector."""
    return ti.Matrix([[a[0], 0.0, 0.0], [0.0, a[1], 0.0], [0.0, 0.0, a[2]]])


@ti.func
def from_core(w, active):
    """Distance, normal and bend from the vector ``w`` to the closest point of a core (a point, a line, a smaller box).

    ``active`` marks the axes along which the closest point stays where it is when the place moves.
    """
    far = ti.sqrt(ti.max(w.norm_sqr(), SMALL * SMALL))
    n = w / far
    bend = (diagonal(active) - n.outer_product(n)) / far
    if far < 2.0 * SMALL:
        n = ti.Vector([0.0, 1.0, 0.0])
        bend = bend * 0.0
    return far, n, bend


@ti.func
def box_distance(y, half, edge):
    """Box of half widths ``half``, edges rounded with the radius ``edge``."""
    turned = ti.Vector([sign_of(y[0]), sign_of(y[1]), sign_of(y[2])])
    q = turned * y - half + edge
    phi, n, bend = from_core(turned * ti.max(q, 0.0), ti.select(q > 0.0, turned * turned, 0.0 * turned))
    if q.max() <= 0.0:  # the nearest face
        phi = q.max()
        bend = bend * 0.0
        first = ti.select(q[0] >= q[1] and q[0] >= q[2], 1.0, 0.0)
        second = (1.0 - first) * ti.select(q[1] >= q[2], 1.0, 0.0)
        n = turned * ti.Vector([first, second, 1.0 - first - second])
    return phi - edge, n, bend


@ti.func
def radial(y):
    """Distance from the x axis, and the unit vector away from it."""
    far = ti.sqrt(ti.max(y[1] * y[1] + y[2] * y[2], SMALL * SMALL))
    return far, ti.Vector([0.0, y[1] / far, y[2] / far])


@ti.func
def cylinder_distance(y, radius, half, edge):
    """Cylinder along x; in the half plane of x and the distance from x it is a box."""
    far, out = radial(y)
    phi, n, bend = box_distance(ti.Vector([y[0], far, 0.0]), ti.Vector([half, radius, 1e9]), edge)
    axis = ti.Vector([1.0, 0.0, 0.0])
    around = diagonal(ti.Vector([0.0, 1.0, 1.0])) - out.outer_product(out)
    full = (
        bend[0, 0] * axis.outer_product(axis) + bend[1, 1] * out.outer_product(out)
        + bend[0, 1] * (axis.outer_product(out) + out.outer_product(axis))
    )  # fmt: skip
    if far > 2.0 * SMALL:
        full = full + (n[1] / far) * around
    return phi, n[0] * axis + n[1] * out, full


@ti.func
def shape_distance(kind, size, y):
    """``φ``, ``n`` and ``bend`` of a shape at ``y``."""
    phi, n, bend = y[0], ti.Vector([1.0, 0.0, 0.0]), y.outer_product(y) * 0.0
    if kind == SPHERE or kind == CAPSULE:
        over = ti.select(kind == CAPSULE, ti.max(ti.abs(y[0]) - size[1], 0.0), ti.abs(y[0]))
        along = ti.select(kind == CAPSULE and over == 0.0, 0.0, 1.0)
        phi, n, bend = from_core(ti.Vector([sign_of(y[0]) * over, y[1], y[2]]), ti.Vector([along, 1.0, 1.0]))
        phi = phi - size[0]
    elif kind == BOX:
        phi, n, bend = box_distance(y, ti.Vector([size[0], size[1], size[2]]), size[3])
    elif kind == CYLINDER:
        phi, n, bend = cylinder_distance(y, size[0], size[1], size[2])
    return phi, n, bend


@ti.func
def shape_distance_adjoint(kind, size, y, y_bar, phi_bar):
    """``size_bar`` from the adjoint ``y_bar`` of the place.

    A half width moves a face as the place would move the other way; a radius moves the surface along the normal and
    leaves the normal alone.
    """
    size_bar = ti.Vector([-phi_bar, 0.0, 0.0, 0.0])
    out = ti.Vector([sign_of(y[0]) * y_bar[0], sign_of(y[1]) * y_bar[1], sign_of(y[2]) * y_bar[2]])
    if kind == CAPSULE:
        size_bar = ti.Vector([-phi_bar, -out[0], 0.0, 0.0])
    elif kind == BOX:
        size_bar = ti.Vector([-out[0], -out[1], -out[2], out.sum() - phi_bar])
    elif kind == CYLINDER:
        _far, away = radial(y)
        wide = away.dot(y_bar)
        size_bar = ti.Vector([-wide, -out[0], wide + out[0] - phi_bar, 0.0])
    elif kind != SPHERE:
        size_bar = size_bar * 0.0
    return size_bar
