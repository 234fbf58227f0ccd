"""Rigid bodies: one implicit velocity problem a step, with compliant contact and regularised Coulomb friction.

A step from slot ``k`` to ``k + 1`` (composed in ``step``):

1. ``free``      velocity without contacts, second order in time
2. ``detect``    which contacts there are: pairs of near shapes, then what of them is ``nearest`` or lies on what
   (``manifold``); ``geometry`` where they are, by what is ``closest`` of two features
3. ``newton``    the velocity that satisfies momentum balance and the law of contact (``law``) at once, for each of the
   ``groups`` of bodies that touch, by ``elimination`` within the envelope of its matrix
4. ``rotation``  drift of the poses with that velocity

Where bodies rebound (``RigidPlan.events``), impacts split a step: ``events`` finds them and ends the flight to each at
its time, ``impact`` gives the velocities after it.

Bodies may hang on joints (``topology``): trees in reduced coordinates. ``pose`` places the links, ``dynamics`` has the
mass matrix and the kick, ``drive`` what acts along a joint, ``closure`` what closes a loop; ``tree`` leads from
velocities of joints to those of bodies and back, so that contact sees every body alike. ``march`` runs whole segments;
``kinematics`` and ``mechanism`` are the same on the host. ``softening`` has the laws of contact the backward sweep may
take, ``sensing`` what can be read of a step.

``colliders`` makes shapes (kinds in ``shapes``), ``layout`` puts them in a row; ``overlap`` finds those that overlap
at the start. Inside, everything is three-dimensional: a plane body is one that moves in z = 0 and turns about z. What
differs between 2-D and 3-D is how arrays store it, and that stands in ``rotation``. Every forward function has its
hand-written adjoint directly beneath it. Environments are independent; each is stepped by one task, so that no sum
depends on threads.
"""
