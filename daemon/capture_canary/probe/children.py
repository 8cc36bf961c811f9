"""Ending a probe's child for good: its whole process group, and whatever left it.

A child that calls setsid or forks twice escapes its group, never its environment: the probe's mark in it finds strays.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import time
from pathlib import Path

MARK = "CAPTURE_CANARY_PROBE"
_PR_SET_CHILD_SUBREAPER = 36  # <sys/prctl.h>
_MAX_ENVIRON = 1 << 20
TERM_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
KILL_GRACE = 5.0
"""Seconds after SIGKILL until a process counts as unkillable (a driver call that does not return)."""


def adopt_orphans() -> None:
    """Make this process the parent of its descendants' orphans, so that it can reap them."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_child(child: subprocess.Popen[bytes], mark: str) -> list[int]:
    """End a child that leads its own group, and all that it started. Returns the pids that would not go."""
    _signal_group(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(TERM_GRACE)
    return sweep(child, mark)


def sweep(child: subprocess.Popen[bytes], mark: str) -> list[int]:
    """Kill and reap what is left of a child's group and of its strays. Returns the pids that would not go."""
    deadline = time.monotonic() + KILL_GRACE
    while True:
        _signal_group(child.pid, signal.SIGKILL)
        left = strays(mark)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        _reap(child, left)
        left = strays(mark)
        if (not left and not _group_exists(child.pid)) or time.monotonic() > deadline:
            return left
        select.select([], [], [], 0.01)  # a killed process needs a moment to be gone


def strays(mark: str) -> list[int]:
    """Return the pids of living processes that carry the probe's mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        with contextlib.suppress(OSError), (process / "environ").open("rb") as file:
            if wanted in file.read(_MAX_ENVIRON).split(b"\0"):
                found.append(int(process.name))
    return found


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _reap(child: subprocess.Popen[bytes], pids: list[int]) -> None:
    child.poll()
    for target in [-child.pid, *pids]:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(target, os.WNOHANG)[0] != 0:
                pass
