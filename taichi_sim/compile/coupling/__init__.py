"""Rigid bodies and continua of one scene that touch: what the coupled solver takes, and gradients by it."""
