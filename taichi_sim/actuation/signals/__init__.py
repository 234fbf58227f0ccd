"""One kind of signal a file; every module here registers itself in ``taichi_sim.actuation.signal.signals``."""
