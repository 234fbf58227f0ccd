"""Rigid bodies of a scene: shapes that touch, masses, surfaces, poses; and their adjoints."""
