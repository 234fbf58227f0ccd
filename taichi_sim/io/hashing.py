"""Names for the exact bits of a state and of a file."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def state_hash(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 (hex) of named arrays: equal exactly when names, types, shapes and all bits are equal.

    The order of the names and the memory layout do not count, the byte order of the machine neither; -0.0 differs
    from 0.0. Raises ``ValueError`` for arrays without a fixed binary form (objects).
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        if array.dtype.hasobject or array.dtype.kind not in "biufc":
            raise ValueError(f"state_hash: {name!r} has type {array.dtype}, expected numbers")
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        head = f"{len(name)}:{name};{array.dtype.str};{','.join(map(str, np.shape(arrays[name])))};"
        digest.update(head.encode("utf-8"))
        digest.update(array.tobytes())
    return digest.hexdigest()


def file_hash(path: str | os.PathLike[str]) -> str:
    """SHA-256 (hex) of a file's content. Raises ``OSError`` if it cannot be read."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
