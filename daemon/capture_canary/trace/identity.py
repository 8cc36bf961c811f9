"""Which process a trace file belongs to, by its name and by /proc."""

import re
from pathlib import Path
from typing import Final

import msgspec

from capture_canary.identity import boot_id, pid_namespace, start_time

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
