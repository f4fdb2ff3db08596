"""The memory of a training on the CPU: what a step frees is kept for the next step."""

import ctypes
import sys
from contextlib import suppress
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_LARGEST = (1 << 30, 1 << 25)  # bytes; some releases of glibc refuse more than the second


@cache
def keep_pages() -> bool:
    """Let this process keep the memory that it frees; return whether that was set.

    glibc gives a large tensor pages of its own, and gives them back to the system when the tensor is freed. A step of
    training makes and frees hundreds of them, and the system clears each page again before the next step writes to it:
    a seventh of the time of a step. It is set once in a process, under Linux with glibc alone.
    """
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):  # another C library, such as musl, has no mallopt
        mallopt = ctypes.CDLL(None).mallopt
        kept = any(mallopt(_MMAP_THRESHOLD, size) for size in _LARGEST)
        return kept and bool(mallopt(_TRIM_THRESHOLD, (1 << 31) - 1))
    return False
