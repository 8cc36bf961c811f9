"""What a fault may leave behind on a node, looked at before and after."""

import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from capture_canary.probe.base import base_environment
from capture_canary.spawn import reap_adopted
from capture_canary.stack.npu_smi import NpuSmi, command
from tests.running import children

Test = TypeVar("Test", bound=Callable[..., Any])
PATIENCE = 30.0
OURS = re.compile("canary(?!-fuzz)|hccl|hcom|ascend", re.IGNORECASE)
"""Shared memory of ours, but for that of fuzzers, which may run beside."""


def injects(*faults: str) -> Callable[[Test], Test]:
    """Mark a test as the one that injects these faults of the table."""

    def mark(test: Test) -> Test:
        test.injects = faults  # type: ignore[attr-defined]  # read by test_table
        return test

    return mark


class Left(NamedTuple):
    """What is there that could have been left."""

    descriptors: list[str]
    children: list[str]
    """Of this process, zombies too."""
    strays: list[int]
    """Processes that run on this test's emulated node."""
    threads: int
    shared_memory: list[str]
    temporary: list[str]
    npus: list[tuple[int | None, int | None]]
    """HBM in use and processes of each NPU."""


def left(emulate: str) -> Left:
    """Look."""
    shared = {path.name for path in Path("/dev/shm").iterdir()}  # noqa: S108  # looked at, not written
    environ = base_environment(os.environ, emulate)
    seen = NpuSmi(command(environ), env=environ).read()
    return Left(
        descriptors=sorted(path.name for path in Path("/proc/self/fd").iterdir()),
        children=sorted(children(os.getpid())),
        strays=strays(),
        threads=threading.active_count(),
        shared_memory=sorted(name for name in shared if OURS.search(name)),
        temporary=sorted(path.name for path in Path(tempfile.gettempdir()).iterdir()),
        npus=[(chip.hbm_used_mb, chip.processes) for chip in seen.chips],
    )


def strays() -> list[int]:
    """Return the processes, other than this one, that run on this test's emulated node."""
    node = f"CAPTURE_CANARY_EMULATE_NODE={os.environ['CAPTURE_CANARY_EMULATE_NODE']}".encode()
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal() and int(path.name) != os.getpid():
            try:
                if node in (path / "environ").read_bytes().split(b"\0"):
                    found.append(int(path.name))
            except OSError:
                continue
    return sorted(found)


@contextmanager
def nothing_left(emulate: str, *, adopted: bool = False) -> Iterator[None]:
    """Hold that the node is as it was, at once but for what the kernel takes a moment for.

    With `adopted`, orphans of a daemon are reaped: they come here where an earlier test probed in this process.
    """
    before = left(emulate)
    yield
    end = time.monotonic() + PATIENCE
    while (changed := _changed(before, left(emulate))) and time.monotonic() < end:
        time.sleep(0.05)
        if adopted:
            reap_adopted()
    assert changed == {}, f"left behind: {changed}"


def _changed(before: Left, after: Left) -> dict[str, object]:
    """What is new, and NPUs that differ; what an earlier test left may go meanwhile."""
    found: dict[str, object] = {
        field: new
        for field in ("descriptors", "children", "strays", "shared_memory", "temporary")
        if (new := {*getattr(after, field)} - {*getattr(before, field)})
    }
    if after.threads > before.threads:
        found["threads"] = (before.threads, after.threads)
    if after.npus != before.npus:
        found["npus"] = (before.npus, after.npus)
    return found
