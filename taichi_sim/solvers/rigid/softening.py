"""Contact-gradient policies: the backward sweep of the same forward pass, through a softer law of contact.

The exact gradient belongs to the law as it is simulated. Where that law is stiff, the exact gradient may be large,
different at every start, and zero before bodies touch; a softer law at the same velocities gives one that is biased,
and steadier. Nothing of a policy enters the forward pass.

``exact``     that of the law simulated; the default, and what parameters are identified with.
``event``     the same where bodies rebound: their impacts are events whose instants depend on everything (time of
              impact). Refused where none does: compliant contact has no instant.
``smoothed``  stiffness divided by 100, damping of at least 10 s/m, stiction speed of at least 2 cm/s, at the normal
              impulse of the exact law: for stiff, lightly damped contact, whose exact gradients explode. (A tumbling
              cube at 10⁶ N/m and 0.5 s/m, 40 frames: the standard deviation of gradients over nearby starts falls from
              5.4 to 0.3 at a trend of 0.3, their mean's cosine with it rises from 0.60 to 0.99.)
``distance``  the same, and gaps of about a millimetre already push: ``(x)₊`` becomes ``(x + √(x² + (ε/h)²))/2``, for
              searches that begin before anything touches. The most biased one.

(``randomised`` is no law: the exact one at every start, and ``optimize`` takes the mean over nearby starts; see
``optimization.randomised``.) Impacts of bodies that rebound are left exact; so is the contact of particles with bodies,
which is hard.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.geometry import BIAS, DAMPING, FRICTION, IMPULSE, STICTION, STIFF, column3
from taichi_sim.solvers.rigid.law import EXACT, impulse
from taichi_sim.solvers.rigid.newton import contact_motion
from taichi_sim.solvers.rigid.twist import NOW

#: Policies, and what of the stiffness is left, least damping (s/m), least stiction speed (m/s), and ε (m).
POLICIES: dict[str, tuple[float, float, float, float]] = {
    "exact": (1.0, 0.0, 0.0, 0.0),
    "event": (1.0, 0.0, 0.0, 0.0),
    "smoothed": (0.01, 10.0, 0.02, 0.0),
    "distance": (0.01, 10.0, 0.02, 1e-3),
    "randomised": (1.0, 0.0, 0.0, 0.0),
}

#: Where the four stand in ``settings``.
LEFT, LEAST_DAMPING, LEAST_STICTION, RANGE = 3, 4, 5, 6


@ti.func
def soften(dim: ti.template(), e, bodies, first, count, way, impact, h, settings: ti.template(), dof: ti.template(),
           contact: ti.template(), contact_body: ti.template()):
    """Before the adjoint: the impulse of every contact into IMPULSE, and its law as the policy takes it.

    A smoother positive part ``p(x)`` at ``x = b - vn``, value and slope, is that of another stiffness and bias:
    ``K p' (b' - vn)`` with ``b' = vn + p/p'``. Stiffness and damping change at the same ``gn`` likewise.
    """
    for c in range(first, first + count):
        motion = contact_motion(dim, dof, NOW, e, c, bodies, contact, contact_body)
        n = column3(contact, c, 0)
        K, b, d, vs = contact[c][STIFF], contact[c][BIAS], contact[c][DAMPING], contact[c][STICTION]
        gamma, _gn = impulse(motion, n, K, b, contact[c][FRICTION], d, vs, way, 0.0)
        for a in ti.static(range(3)):
            contact[c][IMPULSE + a] = gamma[a]
        if impact == 0 and way == EXACT:
            vn = n.dot(motion)
            x, reach = b - vn, settings[RANGE] / h
            p, slope = ti.max(x, 0.0), ti.select(x > 0.0, 1.0, 0.0)
            if reach > 0.0:
                root = ti.sqrt(x * x + reach * reach)
                p, slope = 0.5 * (x + root), 0.5 * (1.0 + x / root)
            damped = ti.max(d, settings[LEAST_DAMPING])
            B, B_damped = ti.max(1.0 - d * vn, 0.0), 1.0 - damped * vn
            if B_damped <= 0.0:
                damped, B_damped = d, B
            if slope > 0.0 and B_damped > 0.0 and (settings[LEFT] < 1.0 or reach > 0.0):
                softer = settings[LEFT] * K * slope
                contact[c][STIFF] = softer
                contact[c][BIAS] = vn + K * p * B / (softer * B_damped)
                contact[c][DAMPING] = damped
            contact[c][STICTION] = ti.max(vs, settings[LEAST_STICTION])
