"""One kind of actuator a file; every module here registers itself in ``taichi_sim.actuation.actuator.actuators``."""
