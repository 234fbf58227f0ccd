"""Acceleration fields besides gravity."""

from taichi_sim.scene.fields.field import FieldKind, fields

__all__ = ["FieldKind", "fields"]
