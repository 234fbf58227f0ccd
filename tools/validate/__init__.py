"""Numbers from analysis, experiment and the field, and what this installation reaches."""
