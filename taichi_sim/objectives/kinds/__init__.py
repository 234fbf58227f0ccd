"""One kind of objective a file; every module here adds itself to ``taichi_sim.objectives.objective.objectives``."""
