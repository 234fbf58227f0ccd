"""The scene format: schema, reading, checking, paths and material presets, all pure data."""
