"""Files other programs read: results, rollouts, videos, plots. Every one is written whole or not at all."""
