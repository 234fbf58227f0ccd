"""From a scene to arrays and kernels.

Every family of quantities is a *binding*: it puts values of the scene's paths into the solver's arrays and pulls the
adjoints of those arrays back to the paths. ``model`` holds them together.
"""
