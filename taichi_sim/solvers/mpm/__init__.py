"""Moving-least-squares material point method (Hu et al. 2018) with APIC transfer and quadratic B-splines.

Every forward function has its hand-written adjoint directly beneath it. ``transfer`` moves between particles and
grid, ``contact`` and ``grid`` update the grid, ``order`` keeps particles sorted in memory, ``kernels`` composes them
into launches, ``solver`` declares the arrays and runs substeps.
"""
