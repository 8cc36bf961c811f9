"""Reads small files below a folder that somebody else fills, e.g. `/proc/PID/root`, and never leaves it.

As with openat2's RESOLVE_IN_ROOT, a link is followed as the container would follow it: an absolute one from the
root on, and `..` ends at the root. Each component is opened by itself and without following, so that the kernel
never walks a link of theirs; it is done by hand since Python has no openat2, and kernels before 5.6 neither.
"""

import os
import stat
from pathlib import Path, PurePath

MAX_LINKS = 40
"""Links followed for one path, as many as the kernel follows."""
MAX_COMPONENTS = 256
MAX_BYTES = 65536
"""Read of a file, unless told otherwise: version files have a few hundred bytes."""
MAX_ENTRIES = 4096
"""Looked at in one folder."""

_FOLDER = os.O_PATH | os.O_CLOEXEC | os.O_DIRECTORY
_COMPONENT = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW


class Root:
    """A folder as the root of all paths; close it."""

    def __init__(self, path: Path | str = "/") -> None:
        """Open the folder; it may itself be a link, such as `/proc/PID/root`.

        Raises:
            OSError: it is not there, or not ours to look into.
        """
        self._fd = os.open(path, _FOLDER)

    def close(self) -> None:
        """Close the folder."""
        os.close(self._fd)

    def identity(self) -> tuple[int, int]:
        """Return what tells this folder from every other one."""
        status = os.fstat(self._fd)
        return status.st_dev, status.st_ino

    def read(self, path: PurePath | str, limit: int = MAX_BYTES) -> bytes:
        """Return the begin of a regular file.

        Raises:
            OSError: it cannot be read, is not a regular file, or its links never end.
        """
        place = self._find(path)
        try:
            if not stat.S_ISREG(os.fstat(place).st_mode):
                raise OSError(f"{path} is not a regular file")
            # By descriptor: what stands at that name by now may be another file, a FIFO or a device.
            file = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        finally:
            os.close(place)
        try:
            return _read_all(file, limit)
        finally:
            os.close(file)

    def list(self, path: PurePath | str) -> list[str]:
        """Return the names in a folder, sorted, at most MAX_ENTRIES of them.

        Raises:
            OSError: it is none, or cannot be read.
        """
        place = self._find(path)
        try:
            folder = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        finally:
            os.close(place)
        try:
            with os.scandir(folder) as entries:
                found = [entry.name for entry, _ in zip(entries, range(MAX_ENTRIES), strict=False)]
        finally:
            os.close(folder)
        return sorted(found)

    def _find(self, path: PurePath | str) -> int:
        """Return a descriptor (O_PATH) of what a path names within the root."""
        todo = _components(os.fspath(path))
        # The folders from the root down to here: `..` is taken from it, never from the file system.
        way = [os.dup(self._fd)]
        links = 0
        try:
            while todo:
                name = todo.pop()
                if name == "..":
                    if len(way) > 1:
                        os.close(way.pop())
                    continue
                step = os.open(name, _COMPONENT, dir_fd=way[-1])
                way.append(step)
                if stat.S_ISLNK(os.fstat(step).st_mode):
                    links += 1
                    target = os.readlink("", dir_fd=step)
                    os.close(way.pop())
                    todo += _components(target)
                    if links > MAX_LINKS or len(todo) > MAX_COMPONENTS:
                        raise OSError(f"{path} has too many links")
                    if target.startswith("/"):
                        _close(way[1:])
                        del way[1:]
            return os.dup(way[-1])
        finally:
            _close(way)


def _components(path: str) -> list[str]:
    """The components of a path, the first one last."""
    if len(path) > os.pathconf("/", "PC_PATH_MAX") or "\0" in path:
        raise OSError("the path is too long, or none")
    return [part for part in reversed(path.split("/")) if part not in {"", "."}]


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _read_all(file: int, limit: int) -> bytes:
    """Up to `limit` bytes: files in /proc come in pieces."""
    pieces: list[bytes] = []
    left = limit
    while left > 0 and (piece := os.read(file, left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
