"""Device nodes of NPUs, and which of them a process has open: read off /proc, no device is touched."""

import contextlib
import os
import re
import stat
from pathlib import Path

MAX_DESCRIPTORS = 65536
"""Looked at of one process."""

_DEVICE = re.compile(r"davinci(\d{1,4})")
_OPEN = re.compile(r"/dev/davinci(\d{1,4})")


def device_nodes(dev: Path = Path("/dev")) -> dict[int, int]:
    """N and device number of every /dev/davinciN. Looks at the nodes, opens none."""
    nodes: dict[int, int] = {}
    with contextlib.suppress(OSError), os.scandir(dev) as entries:
        for entry in entries:
            name = _DEVICE.fullmatch(entry.name)
            if name is None:
                continue
            with contextlib.suppress(OSError):
                status = entry.stat()
                if stat.S_ISCHR(status.st_mode):
                    nodes[int(name[1])] = status.st_rdev
    return nodes


def opened_by(folder: Path | str, by_number: dict[int, int]) -> set[int] | None:
    """The chips that a process has open (`folder` is /proc/PID/fd); None where it may not be looked at.

    In a container the node may have another name than on the host (`--device /dev/davinci5:…0`),
    so the device number decides where it is one of ours.
    """
    opened: set[int] = set()
    try:
        for fd in os.listdir(folder)[:MAX_DESCRIPTORS]:  # noqa: PTH208  # strings: a Path a descriptor costs too much
            path = f"{folder}/{fd}"
            with contextlib.suppress(FileNotFoundError):
                name = _OPEN.fullmatch(os.readlink(path))  # noqa: PTH115  # the same
                if name:
                    n = by_number.get(_device_number(path))
                    opened.add(int(name[1]) if n is None else n)
    except (FileNotFoundError, ProcessLookupError):
        return set()  # it ended meanwhile
    except OSError:
        return None
    return opened


def _device_number(path: str) -> int:
    """Of what a descriptor names; -1, which no device has, where it can't be told."""
    try:
        return os.stat(path).st_rdev  # noqa: PTH116  # the same
    except OSError:
        return -1
