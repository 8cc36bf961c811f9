"""The folder that an arm works in, and those of runners that were killed before they could remove theirs."""

import contextlib
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path

from capture_canary.identity import pid_namespace, start_time
from capture_canary.scratch import scratch

_NAME = re.compile(r"capture-canary-([0-9]{1,20})-([0-9]{1,10})-([0-9]{1,20})-[^/]+", re.ASCII)
_MOST = 1000
"""Names looked at: a temporary folder may hold any number of them."""
_stuck: set[Path] = set()
"""Could not be removed, as by a process without descriptors: tried again when the next one is made."""


def make(undo: contextlib.ExitStack) -> Path:
    """Make a folder that goes with `undo`; its name says whose it is.

    Raises:
        OSError: there is no place for one.
    """
    place = scratch()
    remove_orphans(place)
    for work in [*_stuck]:
        _remove(work)
    owner = f"{pid_namespace()}-{os.getpid()}-{start_time(os.getpid()) or 0}"
    work = Path(tempfile.mkdtemp(prefix=f"capture-canary-{owner}-", dir=place))
    undo.callback(_remove, work)
    return work


def _remove(work: Path) -> None:
    shutil.rmtree(work, ignore_errors=True)
    (_stuck.add if work.exists() else _stuck.discard)(work)


def remove_orphans(folder: Path) -> None:
    """Remove the folders of our own processes that have ended; others' and the living ones' are left alone."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = (entry.name for entry in entries if entry.name.startswith("capture-canary-"))
        for name, _ in zip(names, range(_MOST), strict=False):
            if _is_orphan(folder / name):
                shutil.rmtree(folder / name, ignore_errors=True)


def _is_orphan(path: Path) -> bool:
    match = _NAME.fullmatch(path.name)
    if match is None:
        return False
    namespace, pid, started = map(int, match.groups())
    if namespace == 0 or namespace != pid_namespace() or start_time(pid) == started:
        return False
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
