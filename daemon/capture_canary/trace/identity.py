"""Which process a trace file belongs to, by its name and by /proc."""

import re
from pathlib import Path
from typing import Final

import msgspec

NAME: Final = re.compile(
    r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-(\d{1,20})-(\d{1,10})-(\d{1,20})\.trace"
)


class ProcessIdentity(msgspec.Struct, frozen=True):
    """What tells a process from every other one of the host, before and after a reboot."""

    boot_id: str
    pid_namespace: int
    pid: int
    start_time: int

    @property
    def file_name(self) -> str:
        """The name of its trace file."""
        return f"{self.boot_id}-{self.pid_namespace}-{self.pid}-{self.start_time}.trace"


def parse_name(name: str) -> ProcessIdentity | None:
    """Return whose trace a file of this name is; None for other files."""
    match = NAME.fullmatch(name)
    if match is None:
        return None
    boot_id, namespace, pid, start_time = match.groups()
    return ProcessIdentity(boot_id, int(namespace), int(pid), int(start_time))


def start_time(pid: int | str) -> int | None:
    """Return when a process started, in clock ticks since boot; None where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return int(stat.rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def boot_id() -> str:
    """Return the id of this boot of the host, zeros where it is not known (as the tracer does)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return "00000000-0000-0000-0000-000000000000"


def pid_namespace() -> int:
    """Return the inode of this process's PID namespace, 0 where it is not known."""
    try:
        return int(Path("/proc/self/ns/pid").readlink().name[5:-1])
    except (OSError, ValueError):
        return 0


def own_identity() -> ProcessIdentity:
    """Return the identity of this very process."""
    own_pid = int(Path("/proc/self").readlink().name)
    return ProcessIdentity(boot_id(), pid_namespace(), own_pid, start_time("self") or 0)


def known_dead(process: ProcessIdentity) -> bool:
    """Return whether the process has certainly ended; in another PID namespace nobody can tell."""
    if process.boot_id != boot_id():
        return True
    return (
        process.pid_namespace == pid_namespace() and start_time(process.pid) != process.start_time
    )
