"""Chambers and tendons: forces on particles, of a continuum or of springs, from places on them.

An *anchor* is a place that goes with particles, ``y = offset + Σ w x`` with weights that stay: a corner of a cavity's
boundary, a point a cable runs through, or (no particles) a place that is fixed. A chamber or a tendon gives its anchors
forces; the particles of an anchor get them by the same weights. So the work of a force at its anchor is the work done
on the particles, exactly; and since weights add up to 1 and reproduce their place, forces that balance at the anchors
balance at the particles, and so do their moments.

The forces are those of the start of a substep. They know nothing of what the particles are: a continuum takes them as a
change of velocity before it is scattered, springs and grains as an impulse beside their other forces.
"""
