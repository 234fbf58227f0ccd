"""One renderer of ours, whose picture goes to video files and to a window.

Knows no simulation: it draws :class:`~taichi_sim.viz.picture.Picture` values, which anybody can fill from arrays.
"""
