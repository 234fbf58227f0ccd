"""Where the shipped materials and scenes lie: inside a wheel, or beside the package in a checkout."""

import functools
from pathlib import Path


@functools.cache
def data_root() -> Path:
    """Folder that holds ``materials/`` and ``scenes/``. Raises ``FileNotFoundError`` if the installation lacks them."""
    package = Path(__file__).resolve().parent
    for root in (package / "_data", package.parent):
        if (root / "materials").is_dir() and (root / "scenes").is_dir():
            return root
    raise FileNotFoundError(f"this installation of taichi-sim has no materials and scenes beside {package}")


def shipped_scenes() -> dict[str, Path]:
    """Files of the shipped scenes by name."""
    return {file.stem: file for file in sorted((data_root() / "scenes").glob("*.toml"))}
