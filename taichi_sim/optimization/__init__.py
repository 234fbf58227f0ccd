"""Optimisation of design variables: one loop, exchangeable methods, files that survive a kill."""
