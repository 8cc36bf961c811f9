"""One probe at a time on a node: a flock on a file that all containers of the node share.

The kernel frees it when its last holder dies, so nothing has to be cleaned up, and the file is never deleted: who
deletes a lock file lets two holders have one each.
"""

import errno
import fcntl
import os
import re
import stat
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from capture_canary import foreign
from capture_canary.identity import boot_id, pid_namespace, start_time

INSTANCE = "daemon.lock"
"""File in the state folder that the running daemon holds: `probe --now` finds it by that."""
_MAX_NOTE = 1024
_ATTEMPTS = 5


class LockBusyError(Exception):
    """Someone else probes on this node; the message says who, as far as they told."""


class LockUnusableError(Exception):
    """There is no lock to be had at this path; the message says why."""


class _Note(msgspec.Struct, frozen=True, kw_only=True):
    """What a holder writes into the file. Whoever may write the file may lie: it informs, it decides nothing."""

    pid: int
    pid_namespace: int
    started: int
    """Start time of the process in clock ticks since boot: tells it from a later one of the same pid."""
    since: float
    """Unix seconds."""
    host: str
    boot: str


class ProbeLock:
    """The lock, held until `release` and until no process that was given `fd` is left."""

    def __init__(self, fd: int) -> None:
        """Take over a locked descriptor."""
        self._fd = fd

    @property
    def fd(self) -> int:
        """The descriptor, for `pass_fds` of the probe's process.

        It is closed on exec like any other, so that nothing holds the lock by accident. Handed to the probe on
        purpose, the lock lasts while the daemon is killed and its probe still holds NPUs.
        """
        return self._fd

    def release(self) -> None:
        """Let go. Closed, not unlocked: an unlock would also take it from a probe that has not ended yet."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        with suppress(OSError):
            os.ftruncate(fd, 0)  # the next holder may not be able to replace our note
        os.close(fd)


def acquire(path: Path, *, holder: str = "a probe on this node") -> ProbeLock:
    """Take the lock at once or not at all; `holder` says in an error what holds it.

    Raises:
        LockBusyError: it is held.
        LockUnusableError: the path cannot serve as a lock.
    """
    try:
        for _ in range(_ATTEMPTS):
            lock = _attempt(path, holder)
            if lock:
                return lock
    except (OSError, ValueError) as error:
        hint = " (a symlink)" if getattr(error, "errno", None) == errno.ELOOP else ""
        what = getattr(error, "strerror", None) or str(error)
        raise LockUnusableError(f"lock file {path}: {what}{hint}") from None
    raise LockUnusableError(f"lock file {path}: is replaced again and again")


def holder_pid(path: Path) -> int | None:
    """Return the living process of this PID namespace that says it holds the lock; None where there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        note = foreign.decode(os.pread(fd, _MAX_NOTE, 0), _Note)
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)
    ours = (note.boot, note.pid_namespace) == (boot_id(), pid_namespace())
    return note.pid if ours and note.started == start_time(note.pid) else None


def _attempt(path: Path, holder: str) -> ProbeLock | None:
    fd = _open(path)
    try:
        found = os.fstat(fd)
        _lock(fd, found, path, holder)
        if _is_at(path, found):
            _write_note(fd)
            return ProbeLock(fd)
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)  # another file was put there meanwhile: that one is the lock now
    return None


def _lock(fd: int, found: os.stat_result, path: Path, holder: str) -> None:
    # A second link would be a name that another user gave to a file of ours, for us to overwrite.
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise ValueError("is no regular file with one name")
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LockBusyError(f"{holder} holds {path}: {_holder(fd)}") from None


def _open(path: Path) -> int:
    flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    try:
        return os.open(path, os.O_RDWR | flags)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        # Another user's file: it locks as well, we only cannot write who we are.
        return os.open(path, os.O_RDONLY | flags)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o644)
    except FileExistsError:
        return os.open(path, os.O_RDONLY | flags)  # made by another at the same moment


def _is_at(path: Path, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(found, os.lstat(path))
    except FileNotFoundError:
        return False


def _write_note(fd: int) -> None:
    note = _Note(
        pid=os.getpid(),
        pid_namespace=pid_namespace(),
        started=start_time(os.getpid()) or 0,
        since=time.time(),
        host=os.uname().nodename,
        boot=boot_id(),
    )
    # The lock is what counts: a full disk, or a file of another user, only loses the note.
    with suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, msgspec.json.encode(note), 0)


def _holder(fd: int) -> str:
    try:
        note = foreign.decode(os.pread(fd, _MAX_NOTE, 0), _Note)
        since = datetime.fromtimestamp(note.since, timezone.utc).isoformat(timespec="seconds")
    except (OSError, ValueError, OverflowError):
        return "the holder left no note"
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,253}", note.host) or note.boot != boot_id():
        return "the holder left no note"
    if note.pid_namespace != pid_namespace():
        return f"pid {note.pid} of another container ({note.host}), since {since}"
    if note.started != start_time(note.pid):
        return f"pid {note.pid} took it at {since} and has ended; what it left behind may hold it"
    if note.pid == os.getpid():
        return f"an earlier probe of this process, begun at {since}, has not ended"
    return f"pid {note.pid}, since {since}"
