"""What must hold between the entries of a scene, by tables; ``scene.check`` goes through them."""
