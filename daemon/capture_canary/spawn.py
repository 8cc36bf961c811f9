"""Starts the processes that this process waits for, so that it can tell them from orphans that came to it."""

import os
import subprocess
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

_lock = threading.Lock()
"""Held while a process is started: until it is registered, it looks like an orphan."""
_started: "weakref.WeakSet[subprocess.Popen[bytes]]" = weakref.WeakSet()


def start(argv: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
    """Start a process as `subprocess.Popen` does."""
    with _lock:
        process = subprocess.Popen[bytes](argv, **options)
        _started.add(process)
    return process


def reap_adopted(pids: Sequence[int]) -> None:
    """Reap those of some children that have ended and were not started here; the others' exit codes are awaited."""
    with _lock:
        awaited = {process.pid for process in _started if process.returncode is None}
        for pid in pids:
            if pid not in awaited:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
