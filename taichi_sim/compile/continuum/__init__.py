"""Continua of a scene: particles, grid, materials, walls and obstacles on the grid, the step limit."""
