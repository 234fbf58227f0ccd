"""Places that cannot be written to, refused before anything is computed for them."""

import os
from pathlib import Path


def check_place(what: str, file: "str | os.PathLike[str]", shown: "str | os.PathLike[str] | None" = None) -> None:
    """Raise ``ValueError`` saying why ``file`` cannot be written: it is a folder, lies in a file, or may not be.

    ``what`` names the argument or option, ``shown`` the place as the user gave it (default: the file).
    """
    path = Path(file)
    shown = path if shown is None else shown
    for place in path.parents:
        if place.exists():
            if not place.is_dir():
                raise ValueError(f"{what} {shown}: {place} is a file, expected a folder")
            if not os.access(place, os.W_OK):
                raise ValueError(f"{what} {shown}: the folder {place.resolve()} cannot be written to")
            break
    if path.is_dir():
        raise ValueError(f"{what} {path}: is a folder, expected the name of a file")
