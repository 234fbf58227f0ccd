"""How much memory there is, asked before a large request: a machine that runs out kills without a word."""

import contextlib
import math
import os

#: Share of the free memory a request may take; the rest is for what is not counted.
SHARE = 0.9


def free_memory() -> float:
    """Bytes that can be had without swapping, or all there are where a system does not say; infinite if unknown."""
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo") as table:
        for line in table:
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return float("inf")


def refuse_beyond_memory(what: str, need: float, fix: str) -> None:
    """Raise ``ValueError`` saying that ``what`` needs ``need`` bytes and the ``fix``, where so many are not free."""
    free = SHARE * free_memory()
    if need > free:
        raise ValueError(f"{what} would need {size_text(need)} of memory, {size_text(free)} can be had: {fix}")


def size_text(count: float, up: bool = False) -> str:
    """Bytes for people: ``12 GB``, ``450 MB``, ``1.3 MB``; rounded ``up``, the text is enough for them."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            shown = count / size
            digits = 0 if shown >= 10 else 1
            shown = math.ceil(shown * 10**digits) / 10**digits if up else shown
            return f"{shown:.{digits}f} {unit}"
    return f"{count:.0f} bytes"
