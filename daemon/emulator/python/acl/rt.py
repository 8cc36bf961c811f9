"""Functions of the runtime; each returns what the C function of its name does."""

import ctypes

_runtime = ctypes.CDLL("libascendcl.so")
_runtime.aclrtMemcpy.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
]


def memcpy(dst: int, dest_max: int, src: int, count: int, direction: int) -> int:
    """Copy `count` bytes between addresses, as aclrtMemcpyKind says; return 0 or CANN's error code."""
    return int(_runtime.aclrtMemcpy(dst, dest_max, src, count, direction))
