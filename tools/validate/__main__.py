"""``python tools/validate``: hold the product against analysis, experiment and the field."""

import sys
from pathlib import Path

_TOOLS = Path(__file__).resolve().parent.parent
sys.path[0] = str(_TOOLS)
sys.path.insert(1, str(_TOOLS.parent))

from validate.main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
