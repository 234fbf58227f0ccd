"""Particles: mass-spring networks and granular discrete elements, in the plane and in space.

A step is symplectic Euler: forces from slot ``k``, velocities with them, positions with the new velocities.

1. ``springs``   force of springs and bending
2. ``contact``   law of touching grains, compliant walls and an ``obstacle``
3. ``forces``    both gathered for one particle
4. ``move``      the particle moves; ``walls`` stops it at hard walls

A particle gathers what acts on it: a pair is looked at twice, and nothing is ever added by two threads at once.
Neighbours of grains come from lists (``search``) in ascending order, so that a sum does not depend on when a list was
made. ``network`` and ``limits`` are the host's part: topology of lattices, rods and cloth, and the largest stable step.

Every forward function has its hand-written adjoint directly beneath it.
"""
