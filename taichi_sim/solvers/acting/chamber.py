"""A chamber: the gauge pressure p of a closed surface pushes its corners by p ∂V/∂y.

The volume V of a closed polygon or triangle surface is a polynomial of its corners (divergence theorem: ½ Σ a × b over
segments, ⅙ Σ a · (b × c) over triangles). Its gradient is the exact force of a uniform pressure on flat faces, spread
to their corners: forces add up to nothing, so do their moments, and p dV is the work done. No other choice has an
adjoint this simple: the Hessian of V times a vector is again a sum of cross products.

What fills it is an ideal gas that keeps its temperature: p = pressure + (air + p₀ V₀) / V − p₀, with ``air`` = m R T of
what was added to the air of ambient pressure p₀ that the volume V₀ held. Without p₀ and air only ``pressure`` is left.
"""

from taichi_sim.runtime import ti

#: Gas in less than this share of V₀ is taken as if it had that much room: it presses hard, not infinitely.
LEAST = 1e-3


@ti.func
def face_slopes(dim: ti.template(), a, b, c):
    """Volume of a face with the origin, and its gradient by the corners (``c`` counts in space only)."""
    if ti.static(dim == 2):
        w = 0.5 * (a[0] * b[1] - a[1] * b[0])
        return w, 0.5 * ti.Vector([b[1], -b[0]]), 0.5 * ti.Vector([-a[1], a[0]]), 0.0 * a
    else:
        q = b.cross(c)
        return a.dot(q) / 6.0, q / 6.0, c.cross(a) / 6.0, a.cross(b) / 6.0


@ti.func
def face_slopes_adjoint(dim: ti.template(), a, b, c, u, v, w):
    """Adjoint of the gradients in :func:`face_slopes`, ``u, v, w`` those of the corners: Hessian times vector."""
    if ti.static(dim == 2):
        return 0.5 * ti.Vector([v[1], -v[0]]), 0.5 * ti.Vector([-u[1], u[0]]), 0.0 * a
    else:
        return (v.cross(c) + b.cross(w)) / 6.0, (c.cross(u) + w.cross(a)) / 6.0, (u.cross(b) + a.cross(v)) / 6.0


@ti.func
def chamber_volume(dim: ti.template(), i0, first, last, y: ti.template(), face: ti.template()):
    """Volume within faces ``first … last``, about the first corner: far from the origin less is lost by rounding."""
    o = y[i0 + face[first][0]]
    V = 0.0 * o[0]
    for f in range(first, last):
        s = face[f]
        V = V + face_slopes(dim, y[i0 + s[0]] - o, y[i0 + s[1]] - o, y[i0 + s[dim - 1]] - o)[0]
    return V


@ti.func
def gauge_pressure(V, drive, trait):
    """Pressure above ambient, Pa, and its derivative by the volume. ``drive`` is pressure, air; ``trait`` is p₀, V₀."""
    gas, room = drive[1] + trait[0] * trait[1], ti.max(V, LEAST * trait[1])
    p, slope = drive[0] - trait[0], 0.0 * V
    if gas > 0.0:
        p = p + gas / room
        if V >= LEAST * trait[1]:
            slope = -gas / (room * room)
    return p, slope


@ti.func
def chamber(dim: ti.template(), i0, first, last, drive, trait, y: ti.template(), face: ti.template(), g: ti.template()):
    """Add the forces of a chamber to ``g``; ``i0`` is the first anchor of its environment."""
    p, _slope = gauge_pressure(chamber_volume(dim, i0, first, last, y, face), drive, trait)
    o = y[i0 + face[first][0]]
    for f in range(first, last):
        s = face[f]
        a, b, c = i0 + s[0], i0 + s[1], i0 + s[dim - 1]
        _w, u, v, w = face_slopes(dim, y[a] - o, y[b] - o, y[c] - o)
        g[a] = g[a] + p * u
        g[b] = g[b] + p * v
        if ti.static(dim == 3):
            g[c] = g[c] + p * w


@ti.func
def chamber_adjoint(
    dim: ti.template(),
    i0,
    first,
    last,
    drive,
    trait,
    y: ti.template(),
    face: ti.template(),
    g_bar: ti.template(),
    y_bar: ti.template(),
):
    """Adjoint of :func:`chamber`: adds to ``y_bar``; returns ``drive_bar`` and ``trait_bar``."""
    V = chamber_volume(dim, i0, first, last, y, face)
    p, slope = gauge_pressure(V, drive, trait)
    o = y[i0 + face[first][0]]
    p_bar = 0.0 * V
    for f in range(first, last):
        s = face[f]
        a, b, c = i0 + s[0], i0 + s[1], i0 + s[dim - 1]
        _w, u, v, w = face_slopes(dim, y[a] - o, y[b] - o, y[c] - o)
        p_bar = p_bar + u.dot(g_bar[a]) + v.dot(g_bar[b])
        if ti.static(dim == 3):
            p_bar = p_bar + w.dot(g_bar[c])
    for f in range(first, last):
        s = face[f]
        a, b, c = i0 + s[0], i0 + s[1], i0 + s[dim - 1]
        _w, u, v, w = face_slopes(dim, y[a] - o, y[b] - o, y[c] - o)
        a_bar, b_bar, c_bar = face_slopes_adjoint(dim, y[a] - o, y[b] - o, y[c] - o, g_bar[a], g_bar[b], g_bar[c])
        y_bar[a] = y_bar[a] + p * a_bar + (slope * p_bar) * u
        y_bar[b] = y_bar[b] + p * b_bar + (slope * p_bar) * v
        if ti.static(dim == 3):
            y_bar[c] = y_bar[c] + p * c_bar + (slope * p_bar) * w
    room, gas_bar, volume_bar = ti.max(V, LEAST * trait[1]), 0.0 * V, 0.0 * V
    if drive[1] + trait[0] * trait[1] > 0.0:
        gas_bar = p_bar / room
        if V < LEAST * trait[1]:
            volume_bar = -LEAST * (drive[1] + trait[0] * trait[1]) / (room * room) * p_bar
    return (
        ti.Vector([p_bar, gas_bar]),
        ti.Vector([gas_bar * trait[1] - p_bar, gas_bar * trait[0] + volume_bar, 0.0 * V]),
    )
