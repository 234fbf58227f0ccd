"""From a simulation to its pictures: ``parts`` reads a scene's look, ``drawn`` is what is drawn besides particles,
``scenery`` puts them together, ``video`` makes films of rollouts."""

from taichi_sim.film.scenery import Scenery
from taichi_sim.film.video import Film, before_after, film, pictures

__all__ = ["Film", "Scenery", "before_after", "film", "pictures"]
