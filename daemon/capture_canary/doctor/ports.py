"""Which TCP ports some processes listen on."""

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

MAX_LINES = 65536

_LISTEN = b"0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def listened_on(pids: Iterable[int], proc: Path = Path("/proc")) -> set[int]:
    """Return the ports, over IPv4 and IPv6, of those of the processes that we may look at."""
    inodes = {inode for pid in pids for inode in _sockets(proc / str(pid) / "fd")}
    ports: set[int] = set()
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), (proc / "net" / name).open("rb") as lines:
            for line, _ in zip(lines, range(MAX_LINES), strict=False):
                fields = line.split()  # number, local, remote, state, …, the tenth is the inode
                if len(fields) > 9 and fields[3] == _LISTEN and fields[9] in inodes:  # noqa: PLR2004
                    ports.add(int(fields[1].rpartition(b":")[2], 16))
    return ports


def _sockets(folder: Path) -> set[bytes]:
    found: set[bytes] = set()
    with contextlib.suppress(OSError):
        for fd in folder.iterdir():
            with contextlib.suppress(OSError):
                if match := _SOCKET.fullmatch(os.readlink(fd)):  # noqa: PTH115  # a string is wanted
                    found.add(match[1].encode())
    return found
