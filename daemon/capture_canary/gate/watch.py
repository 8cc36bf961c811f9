"""While a probe runs: has another process come onto its chips? Then the probe gives way.

The gate looked before; from there to the opening of an NPU a process starts, which takes seconds with torch-npu and
half a minute with vLLM, and between two arms the NPUs are nobody's. What comes in that time is seen here.
"""

import os
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from capture_canary.stack.npus import Npus, NpusUnknownError, Process

EVERY = 2.0
"""Seconds from one look to the next: a server opens its NPUs long before it measures what HBM is free."""


class Watch:
    """Looks at a probe's chips; who came is told once. A look that fails says nothing: the gate's did not."""

    def __init__(
        self,
        read: Callable[[], Npus],
        devices: Collection[int],
        *,
        same_pids: bool,
        tell: Callable[[str], None],
    ) -> None:
        """Bind; `same_pids` says that the table counts pids as we do, else those in the container are compared."""
        self._read = read
        self._devices = devices
        self._same_pids = same_pids
        self._tell = tell
        self._gone: set[int] = set()
        """Of the last look: not to be found in /proc; an ended rank of ours, or not of this container."""
        self._lock = threading.Lock()  # npu-smi is never run twice at once
        self._wake = threading.Event()
        self._over = False

    def look(self) -> None:
        """Look once. Blocks as long as npu-smi may take."""
        with self._lock:
            if self._over:
                return
            with suppress(NpusUnknownError):
                if why := self._newcomer(self._read()):
                    self._over = True
                    self._tell(why)

    def soon(self) -> None:
        """Have the thread look at once."""
        self._wake.set()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Look now and then, in a thread; at the end no look is under way."""
        thread = threading.Thread(target=self._run, name="watch")
        thread.start()
        try:
            yield
        finally:
            self._over = True
            self._wake.set()
            thread.join()

    def _run(self) -> None:
        while not self._over:
            self._wake.wait(EVERY)
            self._wake.clear()
            self.look()

    def _newcomer(self, npus: Npus) -> str | None:
        before, self._gone = self._gone, set()
        for process in (p for n in self._devices for p in npus.on(n)):
            pid = process.pid if self._same_pids else process.pid_in_container
            if pid is None:
                continue  # nobody can tell whose it is
            ours = descends(pid)
            if ours is None:
                self._gone.add(pid)
            if ours is False or (ours is None and pid in before):
                return _said(process)
        return None


def descends(pid: int) -> bool | None:
    """Whether a process is this one or descends from it; None where it is not there (any more)."""
    while pid != os.getpid():
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return None
        pid = int(stat.rpartition(b")")[2].split()[1])
        if pid == 0:
            return False
    return True


def _said(process: Process) -> str:
    return f"pid {process.pid} {process.name} came onto davinci{process.phy_id}"
