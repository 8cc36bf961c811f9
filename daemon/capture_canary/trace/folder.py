"""The trace folder: every traced process in it, followed in bounded memory."""

import contextlib
import os
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from capture_canary.identity import boot_id
from capture_canary.model import Capture, Fact, Series, Stack
from capture_canary.trace.identity import parse_name
from capture_canary.trace.reader import TraceFile
from capture_canary.trace.record import TracedCapture
from capture_canary.trace.series import series_of

MAX_FILES = 256
"""The tracers keep to it too; whoever writes more files than that is not followed further."""
MAX_NAMES = 10_000
"""Names looked at: a folder may hold any number."""
MAX_CAPTURES = 1024
"""Captures of a process that are kept, the newest: several loads of a large server."""


class TracedProcess:
    """One process's trace with the captures seen so far."""

    def __init__(self, path: Path) -> None:
        """Open the trace.

        Raises:
            OSError: it is gone, or not ours to read.
        """
        self.file = TraceFile(path)
        self.captures: deque[TracedCapture] = deque(maxlen=MAX_CAPTURES)

    def poll(self) -> list[Capture]:
        """Return the captures that ended since the last look."""
        new = self.file.poll()
        self.captures.extend(new)
        return [traced.capture for traced in new]

    @property
    def mode(self) -> str | None:
        """The expansion mode as HCCL read it from the environment."""
        return self.file.facts.mode if self.file.facts else None

    @property
    def stack(self) -> Stack:
        """Versions of the libraries that the process called, each with the library's path."""
        libraries = self.file.facts.libraries if self.file.facts else ()
        return {
            one.package: Fact(value=one.version, source=one.path) for one in libraries if one.path
        }

    @property
    def rank(self) -> int | None:
        """Its rank in the first communicator that told one."""
        communicators = self.file.facts.communicators if self.file.facts else ()
        return next((one.rank for one in communicators if one.rank is not None), None)

    @property
    def begun_ns(self) -> int:
        """When HCCL first started in it, else its first capture; of the host's monotonic clock."""
        started = self.file.facts.hccl_started_ns if self.file.facts else None
        return started or self.captures[0].capture.begin_ns

    @property
    def ended_ns(self) -> int:
        """When its last capture ended."""
        last = self.captures[-1].capture
        return last.begin_ns + int(last.seconds * 1e9)

    def series(self, rank: int) -> list[Series]:
        """Return its captures as series, one a communicator."""
        return series_of(self.captures, rank=rank, mode=self.mode)


class TraceFolder:
    """Follows the folder; processes whose files are gone are forgotten."""

    def __init__(self, folder: Path) -> None:
        """Nothing is opened yet; the folder need not exist."""
        self._folder = folder
        self.processes: dict[str, TracedProcess] = {}
        self.left_out = 0
        """Files beyond the bound, at the last look."""

    def poll(self) -> list[Capture]:
        """Look once; return the captures of all processes that ended since."""
        found = sorted(islice(self._names(), MAX_NAMES))
        # Files that are open come first: whoever floods the folder with names cannot push them out.
        names = sorted(found, key=lambda name: name not in self.processes)
        self.left_out = max(0, len(names) - MAX_FILES)
        wanted = set(names[:MAX_FILES])
        for name in [name for name in self.processes if name not in wanted]:
            self.processes.pop(name).file.close()
        for name in sorted(wanted - self.processes.keys()):
            with contextlib.suppress(OSError):  # gone meanwhile, or nothing that may be read
                self.processes[name] = TracedProcess(self._folder / name)
        return [capture for process in self.processes.values() for capture in process.poll()]

    def current(self) -> list[TracedProcess]:
        """Return the processes with captures that say how it is now.

        Files of ended processes stay: a server that was stopped, mended and started again must not be judged by what
        it was. So an ended process counts only where none has begun since.
        """
        boot = boot_id()
        captured = [one for one in self.processes.values() if one.captures]
        here = [one for one in captured if one.file.path.name.startswith(boot)]
        newest = max((one.begun_ns for one in here), default=0)
        return [
            one
            for one in here or captured
            if one.file.state == "live" or not here or one.ended_ns > newest
        ]

    def _names(self) -> Iterator[str]:
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if parse_name(entry.name) is not None:
                    yield entry.name

    def close(self) -> None:
        """Close all files."""
        for process in self.processes.values():
            process.file.close()
        self.processes.clear()
