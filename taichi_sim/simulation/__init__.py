"""Simulation: a scene in memory, with its derivatives."""

from taichi_sim.simulation.engine import Rollout
from taichi_sim.simulation.simulation import DesignVariable, Simulation

__all__ = ["DesignVariable", "Rollout", "Simulation"]
