r"""Follows log files by glob: rotation, truncation, replacement, `\r` bars, huge lines, garbage.

Symbolic links are followed, as kubelet's and Docker's folders are made of them; yet a file is first
opened by O_PATH, which has no effect on what it is, and read only if it is a regular file. So a link
to a FIFO cannot hold us, and a link to a device node never opens an NPU.
"""

import contextlib
import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct

MAX_FILES = 64
_READ, _READS = 256 << 10, 4
"""Bytes of a file at a time, and how often in a poll; the rest comes at the next one."""
_BACKLOG = 4 << 20
"""Of a large file not seen before: so much of its begin, where a load is, and of its end."""
_LINE = 64 << 10
_HEAD = 64
_SCAN = 4096
_ENDS = re.compile(rb"[\r\n]")


class Segment(NamedTuple):
    r"""A piece of a file between two line ends, where `\r` is one too."""

    path: str
    text: str


class _File(Struct):
    """An open file and where we are in it."""

    fd: int
    identity: tuple[int, int]
    head: bytes
    """Its first bytes: a file cut short and grown again since the last look starts otherwise."""
    offset: int = 0
    partial: bytes = b""
    skip_to: int = 0
    """Where to go on after the begin of a large file was read; 0: no jump."""


class Follower:
    """All files that match; `poll` gives what is new in them. Not for use by several threads."""

    def __init__(
        self, globs: Sequence[str], *, hints: Sequence[str] = (), max_files: int = MAX_FILES
    ) -> None:
        """Args: patterns as of `glob`, `**` included; what a block must hold to be of interest; files open at most."""
        self._globs = list(globs)
        self._hints = tuple(hint.encode() for hint in hints)
        self._max_files = max_files
        self._files: dict[str, _File] = {}
        self.left_out = 0
        """Matching files beyond the limit at the last poll (a lower bound)."""

    def poll(self) -> Iterator[Segment]:
        """What was written since. Reads at most 1 MiB of each file."""
        matches = self._matches()
        for path in [p for p in self._files if p not in matches]:
            yield from self._end(path)
        for path in matches:
            yield from self._follow(path)

    def close(self) -> None:
        """Closes all files."""
        for file in self._files.values():
            os.close(file.fd)
        self._files.clear()

    def _matches(self) -> list[str]:
        found: dict[str, None] = {}
        for pattern in self._globs:
            with contextlib.suppress(OSError, ValueError, re.error):
                paths = glob.iglob(pattern, recursive=True)  # noqa: PTH207 - Path has no absolute globs
                found.update(dict.fromkeys(islice(paths, _SCAN)))
        # Files that are open come first: one that floods a folder with names cannot push them out.
        known = [p for p in found if p in self._files]
        new = [p for p in found if p not in self._files]
        room = max(0, self._max_files - len(known))
        self.left_out = max(0, len(new) - room)
        return known + new[:room]

    def _follow(self, path: str) -> Iterator[Segment]:
        peek = _open_path(path)
        if peek is None:
            yield from self._end(path)
            return
        try:
            status = os.fstat(peek)
            identity = (status.st_dev, status.st_ino)
            file = self._files.get(path)
            if file is not None and file.identity != identity:  # rotated: the old one's rest first
                yield from self._end(path)
                file = None
            if file is None:
                file = self._start(path, peek, status)
        finally:
            os.close(peek)
        if file is not None:
            yield from _news(path, file, self._hints)

    def _start(self, path: str, peek: int, status: os.stat_result) -> _File | None:
        try:
            # Through /proc the very file that was looked at is opened, whatever the path says now.
            fd = os.open(f"/proc/self/fd/{peek}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        skip_to = status.st_size - _BACKLOG if status.st_size > 2 * _BACKLOG else 0
        file = _File(fd, (status.st_dev, status.st_ino), os.pread(fd, _HEAD, 0), skip_to=skip_to)
        self._files[path] = file
        return file

    def _end(self, path: str) -> Iterator[Segment]:
        """The rest of a file that is gone from its path, at most 1 MiB."""
        file = self._files.pop(path, None)
        if file is None:
            return
        try:
            yield from _news(path, file, self._hints)
            if file.partial:
                yield Segment(path, file.partial.decode("utf-8", "replace"))
        finally:
            os.close(file.fd)


def _open_path(path: str) -> int | None:
    """A descriptor that only names the file; None where it is not a regular one."""
    try:
        peek = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(os.fstat(peek).st_mode):
        return peek
    os.close(peek)
    return None


def _news(path: str, file: _File, hints: Sequence[bytes]) -> Iterator[Segment]:
    for _ in range(_READS):
        try:
            data = _read(file)
        except OSError:
            return  # a stale network file, a broken disk: the next poll may find it again
        block = file.partial + data
        if hints and not any(hint in block for hint in hints):
            end = max(block.rfind(b"\n"), block.rfind(b"\r"), 0)
            block = block[end:]  # what request after request writes: not worth taking apart
        pieces = _ENDS.split(block)
        file.partial = pieces.pop()
        if len(file.partial) > _LINE:
            pieces.append(file.partial)
            file.partial = b""
        yield from (Segment(path, text) for text in _texts(pieces))
        if len(data) < _READ:
            return


def _read(file: _File) -> bytes:
    head = os.pread(file.fd, _HEAD, 0)
    if os.fstat(file.fd).st_size < file.offset or not head.startswith(file.head):
        file.offset, file.partial, file.skip_to = 0, b"", 0
    file.head = head
    if file.skip_to and file.offset >= _BACKLOG:
        file.offset, file.partial, file.skip_to = max(file.skip_to, file.offset), b"", 0
    data = os.pread(file.fd, _READ, file.offset)
    file.offset += len(data)
    return data


def _texts(pieces: Iterable[bytes]) -> Iterator[str]:
    """The pieces as text, long ones cut; of empty ones there are none."""
    for piece in pieces:
        for start in range(0, len(piece), _LINE):
            yield piece[start : start + _LINE].decode("utf-8", "replace")
