"""Particles: mass-spring networks and granular discrete elements, in the plane and in space.

A step is symplectic Euler: forces from slot ``k``, velocities with them, positions with the new velocities. ``springs``
has the forces of springs and bending, ``contact`` the law of touching grains and walls, ``walls`` the rigid walls that
act on velocities, ``step`` gathers all of it for one particle and moves it. Every particle gathers what acts on it, so
that a pair is looked at twice and nothing is ever added by two threads at once. Neighbours of grains come from lists
(``search``) in ascending order: a sum does not depend on when a list was made. ``network`` and ``limits`` are the host's
part: topology of lattices, rods and cloth, and the largest stable step.

Every forward function has its hand-written adjoint directly beneath it.
"""
