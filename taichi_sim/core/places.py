"""Places that cannot be written to, refused before anything is computed for them."""

import os
import tempfile
from pathlib import Path


def check_place(what: str, file: "str | os.PathLike[str]", shown: "str | os.PathLike[str] | None" = None) -> None:
    """Raise ``ValueError`` saying why ``file`` cannot be written: no name, a folder, within a file, or not allowed.

    A file is really made (and removed) in the nearest folder there is: what a system says of rights is not all.
    ``what`` names the argument or option, ``shown`` the place as the user gave it (default: the file).
    """
    path = Path(file)
    shown = file if shown is None else shown
    if not os.fspath(shown):
        raise ValueError(f"{what} is empty: give a name")
    if path.is_dir():
        raise ValueError(f"{what} {path}: is a folder, expected the name of a file")
    if path.exists() and not path.is_file():
        raise ValueError(f"{what} {path}: is not an ordinary file; it would be replaced")
    place = next(parent for parent in Path(os.path.realpath(path)).parents if parent.exists())
    if not place.is_dir():
        raise ValueError(f"{what} {shown}: {place} is a file, expected a folder")
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".taichi-sim-") as probe:
            probe.write(b"?")
            probe.flush()
    except OSError as error:
        raise ValueError(f"{what} {shown}: the folder {place} cannot be written to ({error.strerror})") from None
