"""What a rollout is judged by: each objective gives a value and its derivative at one frame, as numpy on the host."""
