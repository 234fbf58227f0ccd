"""Open-loop control on the host: signals give an activation per frame, actuators turn it into active loads."""
