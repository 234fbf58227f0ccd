"""Simulation: a scene in memory, with its derivatives."""

from taichi_sim.simulation.engine import Rollout
from taichi_sim.simulation.quantities import DesignVariable
from taichi_sim.simulation.simulation import Simulation

__all__ = ["DesignVariable", "Rollout", "Simulation"]
