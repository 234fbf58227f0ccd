"""``python tools/bench``: compare this package with the same step written in other ways."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from bench.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
