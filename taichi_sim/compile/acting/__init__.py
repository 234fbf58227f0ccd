"""Chambers and tendons of a scene, compiled: where they are, what they go with, and their numbers."""
