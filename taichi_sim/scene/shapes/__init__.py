"""Geometry of bodies, regions and obstacles, one kind a file; adding a file adds a kind."""

from taichi_sim.scene.shapes.shape import Shape, ShapeKind, Surface, check_shape, resolve_shape, shapes

__all__ = ["Shape", "ShapeKind", "Surface", "check_shape", "resolve_shape", "shapes"]
