"""Signed distance from samples on a lattice, for shapes without a formula (meshes, unions, polygons).

The samples are coefficients of quadratic B-splines: the distance is smooth, its normal continuous, so that contact
forces are continuous too; edges are rounded over about one spacing. The normal is the gradient made a unit vector.
"""

from taichi_sim.runtime import ti

#: Distance reported beyond the lattice (m): no contact there.
BEYOND = 1e9


@ti.func
def spline(i, f):
    """Quadratic B-spline weight ``i`` (0 … 2) at ``f`` in [0.5, 1.5), its first and its second derivative."""
    w, d, c = 0.5 * (1.5 - f) * (1.5 - f), f - 1.5, f * 0.0 + 1.0
    if i == 1:
        w, d, c = 0.75 - (f - 1.0) * (f - 1.0), -2.0 * (f - 1.0), f * 0.0 - 2.0
    elif i == 2:
        w, d, c = 0.5 * (f - 0.5) * (f - 0.5), f - 0.5, f * 0.0 + 1.0
    return w, d, c


@ti.func
def sampled_distance(dim: ti.template(), first, sizes, spacing, y, sample: ti.template()):
    """``φ``, ``dφ/dy``, ``n`` and ``bend = dn/dy`` at ``y``, m from the first node; ``sizes`` are nodes an axis (1
    along z in 2-D), the last axis is contiguous."""
    xi = y / spacing
    base = ti.Vector([ti.cast(ti.floor(xi[0] - 0.5), ti.i32), ti.cast(ti.floor(xi[1] - 0.5), ti.i32), 0])
    if ti.static(dim == 3):
        base = ti.cast(ti.floor(xi - 0.5), ti.i32)
    phi, g, H = y[0] * 0.0, y * 0.0, y.outer_product(y) * 0.0
    lines = ti.static(1 if dim == 2 else 3)
    inside = 1
    for d in ti.static(range(dim)):
        if base[d] < 0 or base[d] + 2 >= sizes[d]:
            inside = 0
    if inside == 1:
        for i in range(3):
            w0, d0, c0 = spline(i, xi[0] - base[0])
            for j in range(3):
                w1, d1, c1 = spline(j, xi[1] - base[1])
                for l in range(lines):
                    w2, d2, c2 = y[0] * 0.0 + 1.0, y[0] * 0.0, y[0] * 0.0
                    if ti.static(dim == 3):
                        w2, d2, c2 = spline(l, xi[2] - base[2])
                    s = sample[first + ((base[0] + i) * sizes[1] + base[1] + j) * sizes[2] + base[2] + l]
                    phi = phi + s * w0 * w1 * w2
                    g = g + s * ti.Vector([d0 * w1 * w2, w0 * d1 * w2, w0 * w1 * d2])
                    xy, xz, yz = d0 * d1 * w2, d0 * w1 * d2, w0 * d1 * d2
                    H = H + s * ti.Matrix([[c0 * w1 * w2, xy, xz], [xy, w0 * c1 * w2, yz], [xz, yz, w0 * w1 * c2]])
        g = g / spacing
        H = H / (spacing * spacing)
    else:
        phi = BEYOND
    length = ti.sqrt(g.norm_sqr())
    n = ti.Vector([1.0, 0.0, 0.0])
    bend = H * 0.0
    if length > 1e-6:
        n = g / length
        bend = (H - n.outer_product(H.transpose() @ n)) / length
    return phi, g, n, bend
