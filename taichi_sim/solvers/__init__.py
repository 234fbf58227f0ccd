"""Solvers of each kind of matter; siblings do not import each other."""
