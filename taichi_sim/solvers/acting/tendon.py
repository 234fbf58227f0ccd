"""A tendon: a cable that pulls, never pushes, along the straight lines between the anchors it runs through.

It is driven at its first anchor: there its tension is ``tension + stiffness · (length − rest + shortening)`` where that
is positive, else nothing. At every anchor it turns about by an angle θ friction takes its share, T ← T exp(−μ θ)
(capstan equation, Euler 1762; e.g. Palli et al., "Modeling, identification and control of tendon-based actuation
systems", IEEE T-RO 2012): the loss of a cable that is being pulled in. One that is let out would lose the other way,
which is not modelled. Every line pulls its two anchors together, so that forces and moments add up to nothing.

The angle between directions t, t' is 2 asin(|t' − t| / 2), smooth in its square; √(θ² + ε²) − ε is smooth at 0 as well.
"""

from taichi_sim.runtime import ti

#: Angle, rad, below which friction is quadratic in it.
SMOOTH = 0.02
#: A line shorter than this, m, has no direction.
SHORTEST = 1e-12


@ti.func
def turning(chord):
    """Angle between unit vectors whose difference has the square ``chord``, smooth at 0; and its derivative."""
    h = ti.min(ti.max(chord, 0.0), 3.9999)
    half = 0.5 * ti.sqrt(h)
    angle, slope = 2.0 * ti.asin(half), 1.0 + 0.0 * h  # slope of the angle's square by h; 1 at 0
    if half > 1e-6:
        slope = ti.asin(half) / (half * ti.sqrt(1.0 - half * half))
    smooth = ti.sqrt(angle * angle + SMOOTH * SMOOTH)
    if chord > 3.9999:
        slope = 0.0 * h
    return smooth - SMOOTH, 0.5 * slope / smooth


@ti.func
def lay(i0, first, last, y: ti.template(), along: ti.template(), wrapped: ti.template()):
    """Directions and turnings of a tendon; returns its length."""
    total = 0.0 * y[i0 + first][0]
    sum_ = total
    for i in range(i0 + first, i0 + last - 1):
        e = y[i + 1] - y[i]
        length = e.norm()
        t = 0.0 * e
        if length > SHORTEST:
            t = e / length
        along[i] = t
        if i > i0 + first:
            sum_ = sum_ + turning((t - along[i - 1]).norm_sqr())[0]
        wrapped[i] = sum_
        total = total + length
    return total


@ti.func
def pull_of(length, drive, trait):
    """Tension at the driven end, N; ``drive`` is tension, shortening, ``trait`` is stiffness, rest length, friction."""
    return ti.max(0.0, drive[0] + trait[0] * (length - trait[1] + drive[1]))


@ti.func
def tendon(
    i0, first, last, drive, trait, y: ti.template(), along: ti.template(), wrapped: ti.template(), g: ti.template()
):
    """Add the forces of a tendon to ``g``; ``i0`` is the first anchor of its environment."""
    pull = pull_of(lay(i0, first, last, y, along, wrapped), drive, trait)
    for i in range(i0 + first, i0 + last - 1):
        f = pull * ti.exp(-trait[2] * wrapped[i]) * along[i]
        g[i] = g[i] + f
        g[i + 1] = g[i + 1] - f


@ti.func
def tendon_adjoint(
    i0,
    first,
    last,
    drive,
    trait,
    y: ti.template(),
    along: ti.template(),
    along_bar: ti.template(),
    wrapped: ti.template(),
    g_bar: ti.template(),
    y_bar: ti.template(),
):
    """Adjoint of :func:`tendon`: adds to ``y_bar``; returns ``drive_bar`` and ``trait_bar``."""
    length = lay(i0, first, last, y, along, wrapped)
    pull = pull_of(length, drive, trait)
    pull_bar, friction_bar, turned_bar = 0.0 * pull, 0.0 * pull, 0.0 * pull
    for back in range(last - 1 - first):
        i = i0 + last - 2 - back
        share = ti.exp(-trait[2] * wrapped[i])
        apart = g_bar[i] - g_bar[i + 1]
        tension_bar = apart.dot(along[i])
        pull_bar = pull_bar + tension_bar * share
        friction_bar = friction_bar - wrapped[i] * pull * share * tension_bar
        along_bar[i] = (pull * share) * apart
        turned_bar = turned_bar - trait[2] * pull * share * tension_bar  # of all angles up to this anchor
        if back > 0:  # the angle at the next anchor counts for all lines beyond it, not for this one
            later = turned_bar + trait[2] * pull * share * tension_bar
            difference = along[i + 1] - along[i]
            d_bar = (2.0 * later * turning(difference.norm_sqr())[1]) * difference
            along_bar[i + 1] = along_bar[i + 1] + d_bar
            along_bar[i] = along_bar[i] - d_bar
    length_bar = 0.0 * pull
    drive_bar, trait_bar = ti.Vector([length_bar, length_bar]), ti.Vector([length_bar, length_bar, friction_bar])
    if pull > 0.0:
        length_bar = trait[0] * pull_bar
        drive_bar = ti.Vector([pull_bar, length_bar])
        trait_bar = ti.Vector([(length - trait[1] + drive[1]) * pull_bar, -length_bar, friction_bar])
    for i in range(i0 + first, i0 + last - 1):
        t = along[i]
        size = (y[i + 1] - y[i]).norm()
        e_bar = length_bar * t
        if size > SHORTEST:
            e_bar = e_bar + (along_bar[i] - along_bar[i].dot(t) * t) / size
        y_bar[i + 1] = y_bar[i + 1] + e_bar
        y_bar[i] = y_bar[i] - e_bar
    return drive_bar, trait_bar
