"""Starts the processes that this process waits for, so that it can tell them from orphans that came to it."""

import os
import subprocess
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_lock = threading.Lock()
"""Held while a process is started: until it is registered, it looks like an orphan."""
_started: "weakref.WeakSet[subprocess.Popen[bytes]]" = weakref.WeakSet()

_abandoned: "list[subprocess.Popen[bytes]]" = []
"""Would not go when it was killed; waited for whenever another one is started."""


def start(argv: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
    """Start a process as `subprocess.Popen` does."""
    with _lock:
        _abandoned[:] = [one for one in _abandoned if one.poll() is None]
        process = subprocess.Popen[bytes](argv, **options)
        _started.add(process)
    return process


def abandon(process: "subprocess.Popen[bytes]") -> None:
    """Leave a process behind that no signal ends; it is reaped once it is gone."""
    with _lock:
        _abandoned.append(process)


def reap_adopted() -> None:
    """Reap children that have ended and were not started here; the others' exit codes are awaited."""
    with _lock:
        awaited = {process.pid for process in _started if process.returncode is None}
        for pid in _zombies() - awaited:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _zombies() -> set[int]:
    """Return this process's children that have ended."""
    found = set()
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            with suppress(OSError):
                # proc(5): the name, field 2, may hold anything, so the fields after its last parenthesis are counted.
                state, parent = (path / "stat").read_text().rpartition(")")[2].split()[:2]
                if state == "Z" and int(parent) == os.getpid():
                    found.add(int(path.name))
    return found
