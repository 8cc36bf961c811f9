"""Faults of the machine itself: full and read-only disks, frozen processes, memory limits. They need root."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

import pytest

from tests.running import until

MOUNT, UMOUNT = "/bin/mount", "/bin/umount"
FREEZER = Path("/sys/fs/cgroup/freezer")
UNIFIED = Path("/sys/fs/cgroup")


def lacking(what: str) -> NoReturn:
    """Skip; in CI, which runs as root on a machine of its own, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)


@contextmanager
def disk(folder: Path, size: str = "1m") -> Iterator[None]:
    """Mount a small file system on a folder."""
    if subprocess.run(
        [MOUNT, "-t", "tmpfs", "-o", f"size={size},nr_inodes=64", "faults", folder], check=False
    ).returncode:
        lacking("needs root, to mount a file system")
    try:
        yield
    finally:
        subprocess.run([UMOUNT, "--lazy", folder], check=True)


def fill(folder: Path) -> Path:
    """Write until nothing more can be; return the file."""
    junk = folder / "junk"
    try:
        with junk.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
    except OSError:
        return junk
    raise AssertionError("it never got full")


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Have a full file system on a folder, which has no room for a name either."""
    with disk(folder):
        fill(folder)
        with suppress(OSError):
            for number in range(100):
                (folder / f"junk-{number}").mkdir()
        yield


def read_only(folder: Path, *, on: bool) -> None:
    """Remount a file system."""
    options = f"remount,{'ro' if on else 'rw'}"
    subprocess.run([MOUNT, "-o", options, folder], check=True)


def slow_disk(folder: Path, work: Path, *, milliseconds: int) -> dict[str, str]:
    """Return the environment of a process for which the disk of a folder is slow; `stalled` makes it stand still."""
    library = work / "slow_disk.so"
    source = Path(__file__).with_name("slow_disk.c")
    compiler = shutil.which("cc") or lacking("needs a C compiler")
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return {
        "LD_PRELOAD": str(library),
        "SLOW_DISK": str(folder),
        "SLOW_DISK_MS": str(milliseconds),
    }


@contextmanager
def stalled(folder: Path) -> Iterator[Path]:
    """Have no write or sync to a slow disk end meanwhile; the file is there once one waits."""
    stop = folder.with_name(f"{folder.name}.stalled")
    stop.touch()
    try:
        yield folder.with_name(f"{folder.name}.waiting")
    finally:
        stop.unlink()


def can_freeze() -> bool:
    """Whether there is a freezer of version 1: what it holds not even SIGKILL ends."""
    return os.geteuid() == 0 and (FREEZER / "cgroup.procs").exists()


@contextmanager
def frozen(pids: list[int]) -> Iterator[None]:
    """Freeze processes; they go on, or go, at the end."""
    group = FREEZER / f"capture-canary-faults-{os.getpid()}"
    group.mkdir()
    try:
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        (group / "freezer.state").write_text("FROZEN")
        try:
            yield
        finally:
            (group / "freezer.state").write_text("THAWED")
    finally:
        until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


class MemoryGroup:
    """A memory cgroup, of version 1 or 2."""

    def __init__(self) -> None:
        first = UNIFIED / "memory" if (UNIFIED / "memory").is_dir() else UNIFIED
        self._outside, self.folder = first, first / f"capture-canary-faults-{os.getpid()}"
        self.folder.mkdir()
        v1 = (self.folder / "memory.limit_in_bytes").exists()
        self._limit = self.folder / ("memory.limit_in_bytes" if v1 else "memory.max")
        self._usage = self.folder / ("memory.usage_in_bytes" if v1 else "memory.current")

    def room(self, size: int) -> None:
        """Allow this many bytes beyond what is in use."""
        self._limit.write_text(str(int(self._usage.read_text()) + size))

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Have what this process starts be in it."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))
        try:
            yield
        finally:
            (self._outside / "cgroup.procs").write_text(str(os.getpid()))


@contextmanager
def memory_group() -> Iterator[MemoryGroup]:
    """Make a memory cgroup; remove it once its processes have ended."""
    try:
        group = MemoryGroup()
    except OSError as error:
        lacking(f"needs a memory cgroup of its own: {error}")
    try:
        yield group
    finally:
        until(lambda: not (group.folder / "cgroup.procs").read_text())
        group.folder.rmdir()


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ticks(pids: list[int]) -> list[str]:
    """CPU time of processes."""
    return [
        " ".join(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])
        for pid in pids
    ]
