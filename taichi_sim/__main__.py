"""``python -m taichi_sim`` is ``taichi-sim``."""

import sys

from taichi_sim.cli import main

if __name__ == "__main__":
    sys.exit(main())
