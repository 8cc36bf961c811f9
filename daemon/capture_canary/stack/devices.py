"""Device nodes of NPUs, and which of them a process has open: read off /proc, no device is touched."""

import contextlib
import os
import re
import stat
from collections.abc import Iterator
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
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return set()  # it ended meanwhile
    except OSError:
        return None
    try:
        return set(_opened(place, by_number))
    except ProcessLookupError:
        return set()
    except OSError:
        return None
    finally:
        os.close(place)


def _opened(place: int, by_number: dict[int, int]) -> Iterator[int]:
    """A node has tens of thousands of descriptors: relative to their folder, and no object for each."""
    for fd in os.listdir(place)[:MAX_DESCRIPTORS]:
        try:
            target = os.readlink(fd, dir_fd=place)
        except FileNotFoundError:
            continue
        if target.startswith("/dev/") and (name := _OPEN.fullmatch(target)):
            n = by_number.get(_device_number(fd, place))
            yield int(name[1]) if n is None else n


def _device_number(fd: str, place: int) -> int:
    """Of what a descriptor names; -1, which no device has, where it can't be told."""
    try:
        return os.stat(fd, dir_fd=place).st_rdev
    except OSError:
        return -1
