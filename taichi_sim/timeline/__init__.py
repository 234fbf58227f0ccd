"""Running a rollout forwards and its adjoint backwards in a given amount of memory; knows no physics."""
