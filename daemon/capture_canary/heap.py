"""The heap of a process that lives for months: one arena for all its threads, and what is free goes back."""

import ctypes
from contextlib import suppress

# malloc.h of glibc
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_LARGE = 128 * 1024


def keep_small() -> None:
    """Have glibc keep no more than it must.

    An arena for each thread would keep what its peak took; and left to itself glibc raises both thresholds with the
    first large block that is freed, and from then on keeps megabytes for the next one.
    """
    with suppress(OSError, AttributeError):  # another libc
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, 1)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        libc.mallopt(_M_TRIM_THRESHOLD, _LARGE)
