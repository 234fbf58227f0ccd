"""Tables of the scene format, by what they are about; ``scene.schema`` has the whole."""
