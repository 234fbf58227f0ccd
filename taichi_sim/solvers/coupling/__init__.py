"""Two-way contact of MPM particles with rigid bodies, solved at once with the rigid bodies' own contacts.

The points of contact are the particles near a body, not the nodes of the grid: a node has no gap, and grid contact
ploughs, sinks in and leaks. In a substep, between gather and grid:

1. ``records``   which particles are near which body, and how they lie to it (``distance``, ``samples``)
2. ``balance``   every particle's impulse as a function of the body's velocity (``law``), entered into the velocity
                 problem of :mod:`taichi_sim.solvers.rigid.newton` as force and matrix
3. ``kernels``   solve, push particles and bodies; ``stepper`` runs both solvers substep by substep
4. ``transfer``  add to the grid what particles got, which were scattered as they were

Where a body is thinner than a stencil, the grid has two layers and particles a side (``thin``).

``welds`` holds particles at places of bodies, as a contact that holds in both ways. Bodies may be free, held, links of
trees or in loops: particles act through twists and wrenches, which ``rigid.tree`` takes to degrees of freedom.

Points of networks and grains are such particles too, each with its own mass and distance of touch (``matter``); they
meet bodies within their step, after all other forces. ``spheres`` is what points and particles of continua do to each
other. Where both meet the same bodies, contacts of points are more rows of one velocity problem (``beside``).

A particle's impulse is eliminated in closed form, so that the unknowns stay the velocities of the bodies; momentum is
conserved to rounding, and a body much lighter than what it touches is as stable as a heavy one. Every forward function
has its hand-written adjoint directly beneath it. The solvers below know nothing of each other.
"""
