"""Springs and grains of a scene, compiled: masses, networks, surfaces, walls, loads; and their adjoints."""
