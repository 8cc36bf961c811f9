"""What a reproduction has measured, kept while it runs: one line for each event, appended, believed only after a check.

A process that is killed loses nothing that it had written; whoever runs the same command reads it back and goes on.
"""

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from capture_canary import foreign
from capture_canary.model import ArmName
from capture_canary.probe.messages import MAX_LINE, Record
from capture_canary.reproduction.events import (
    ArmBegun,
    ArmEnded,
    Attempt,
    Event,
    Header,
    Measured,
    differences,
    take,
)

NAME = "measured.jsonl"
MAX_BYTES = 256 << 20
"""Of the file: 100 rounds of 11 graphs over 8 ranks, both arms, take 9 MB."""
_LINE = 4 * MAX_LINE


class JournalError(Exception):
    """The folder cannot serve this reproduction; the message says why, and what to do."""


_encoder = msgspec.json.Encoder()
_events = msgspec.json.Decoder(Event)
_header = msgspec.json.Decoder(Header)


class Journal:
    """The file of one reproduction, held open by the one process that writes it."""

    def __init__(self, fd: int, header: Header, attempts: list[Attempt]) -> None:
        """Take over an open file and what was read from it."""
        self._fd = fd
        self.header = header
        self.attempts = attempts

    def complete(self) -> dict[ArmName, Attempt]:
        """Return each arm that was measured to its end."""
        return {one.arm: one for one in self.attempts if one.complete}

    def begin(self, arm: ArmName, mode: str | None) -> None:
        """Note that an arm begins."""
        now = time.time()
        self._append(ArmBegun(arm=arm, mode=mode, at=now))
        self.attempts.append(Attempt(arm=arm, mode=mode, begun=now))

    def add(self, record: Record) -> None:
        """Keep a record of the arm under way."""
        self._append(Measured(record=record))
        self.attempts[-1].records.append(record)

    def end(self, failure: str | None) -> None:
        """Note that the arm under way has ended by itself."""
        ended = ArmEnded(failure=failure, at=time.time())
        self._append(ended)
        self.attempts[-1].ended = ended

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._fd)

    def _append(self, event: Event) -> None:
        line = _encoder.encode(event) + b"\n"
        while line:
            line = line[os.write(self._fd, line) :]


def open_journal(folder: Path, header: Header, *, again: bool = False) -> Journal:
    """Open the folder's journal, or begin one; `again` puts one that is there aside.

    Raises:
        JournalError: it was made with other settings, is in use, is damaged, or none can be kept here.
    """
    path = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fd = _open(path)
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror or error}") from None
    try:
        if again and os.fstat(fd).st_size:
            path.rename(folder / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{NAME}")
            os.close(fd)
            fd = _open(path)
        return _opened(fd, path, header)
    except OSError as error:
        os.close(fd)
        raise JournalError(f"{path}: {error.strerror or error}") from None
    except BaseException:
        os.close(fd)
        raise


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    fd = os.open(path, flags, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise JournalError(f"{path}: another reproduction is writing it") from None
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise JournalError(f"{path}: is no regular file")


def _opened(fd: int, path: Path, header: Header) -> Journal:
    if os.fstat(fd).st_size > MAX_BYTES:
        raise JournalError(f"{path}: is larger than {MAX_BYTES >> 20} MiB; --again begins anew")
    try:
        lines = [*_lines(fd)]
    except ValueError as error:
        raise JournalError(f"{path}: {error}; --again begins anew") from None
    first = lines.pop(0) if lines else None
    if first is None:
        os.write(fd, _encoder.encode(header) + b"\n")
        return Journal(fd, header, [])
    try:
        found = foreign.decode(first, _header)
    except ValueError as error:
        raise JournalError(f"{path}: line 1 is no reproduction's ({error})") from None
    if changes := differences(found, header):
        raise JournalError(
            f"{path} was made with other settings: {'; '.join(changes)}. "
            "--again begins anew, --output names another folder"
        )
    attempts: list[Attempt] = []
    for number, line in enumerate(lines, 2):
        try:
            take(foreign.decode(line, _events), attempts, found)
        except ValueError as error:
            raise JournalError(f"{path}: line {number}: {error}; --again begins anew") from None
    return Journal(fd, found, attempts)


def _lines(fd: int) -> Iterator[bytes]:
    """Yield the file's whole lines; what stands behind the last was torn when its writer died, and is cut off."""
    whole = 0
    with os.fdopen(os.dup(fd), "rb") as file:
        file.seek(0)
        while (line := file.readline(_LINE)).endswith(b"\n"):
            whole += len(line)
            yield line
    if len(line.rstrip(b"\0")) == _LINE:
        raise ValueError(f"a line has more than {_LINE} bytes")
    if line:
        os.ftruncate(fd, whole)
