"""What tells a process from every other one of the host, before and after a reboot."""

from pathlib import Path

NO_BOOT_ID = "00000000-0000-0000-0000-000000000000"
"""Where the boot is not known; the tracer writes the same."""


def start_time(pid: int | str) -> int | None:
    """Return when a process started, in clock ticks since boot (field 22 of proc(5)'s stat); None: there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        # The name, field 2, may itself hold spaces and brackets.
        return int(stat.rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def boot_id() -> str:
    """Return the id of this boot of the host."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
    except (OSError, ValueError):
        return NO_BOOT_ID


def pid_namespace() -> int:
    """Return the inode of this process's PID namespace, 0 where it is not known."""
    try:
        return int(Path("/proc/self/ns/pid").readlink().name[5:-1])
    except (OSError, ValueError):
        return 0
