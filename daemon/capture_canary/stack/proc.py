"""One process as /proc shows it; whatever it shows may have been chosen by whoever runs the process."""

import os
import re
import stat
from typing import NamedTuple

from capture_canary.stack import environ
from capture_canary.stack.cgroups import MAX_BYTES, Container, container_of

MAX_CMDLINE = 65536
MAX_MAPS = 4 << 20

_LIBRARY = re.compile(
    rb"[ \t](/[^\n]{1,1024}?)(?:/(?:aarch64|x86_64)-linux)?/lib64/lib(?:hcomm|hccl|runtime|ascendcl)\.so\n"
)
_INNER_PID = re.compile(rb"^NSpid:[\t 0-9]*[\t ](\d{1,10})$", re.MULTILINE)


class Times(NamedTuple):
    """What tells a process from another of the same number, and its parent."""

    parent: int
    start_time: int


class ProcessFolder:
    """`/proc/PID`, or what stands for it. Every method raises OSError where it may not look or it has ended."""

    def __init__(self, proc: str, pid: int) -> None:
        """Nothing is opened yet."""
        self.pid = pid
        self.path = f"{proc}/{pid}"

    def cmdline(self) -> bytes:
        """Return the command line; empty for a kernel thread and a zombie."""
        return self.read("cmdline", MAX_CMDLINE)

    def times(self) -> Times:
        """Return parent and start time."""
        fields = self.read("stat", 4096).rpartition(b")")[2].split()
        try:
            return Times(parent=int(fields[1]), start_time=int(fields[19]))
        except (IndexError, ValueError) as error:
            raise OSError(f"{self.path}/stat has another form") from error

    def inner_pid(self) -> int:
        """Return its number in its own PID namespace."""
        match = _INNER_PID.search(self.read("status", 16384))
        return int(match[1]) if match else self.pid

    def container(self) -> Container | None:
        """Return the container it is in."""
        return container_of(self.read("cgroup", MAX_BYTES).decode(errors="replace"))

    def environment(self) -> environ.Environment:
        """Return what is allowed of its environment."""
        data = self.read("environ", environ.MAX_BYTES + 1)
        return environ.parse(data[: environ.MAX_BYTES], whole=len(data) <= environ.MAX_BYTES)

    def cann_homes(self) -> list[str]:
        """Return the folders of the CANN libraries that it has loaded."""
        maps = self.read("maps", MAX_MAPS)
        homes = [match[1].decode(errors="replace") for match in _LIBRARY.finditer(maps)]
        return list(dict.fromkeys(homes))[:4]

    def loaded(self, library: str) -> bool:
        """Whether it has a library of that file name mapped."""
        return f"/{library}\n".encode() in self.read("maps", MAX_MAPS)

    def program(self) -> str:
        """Return the path of its program, as its own container sees it."""
        return os.readlink(f"{self.path}/exe")  # noqa: PTH115  # a string is what is wanted

    def read(self, name: str, limit: int) -> bytes:
        """Return the begin of one of its files."""
        file = os.open(f"{self.path}/{name}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(f"{self.path}/{name} is not a regular file")
            data = os.read(file, limit)
            while data and len(data) < limit and (more := os.read(file, limit - len(data))):
                data += more
            return data
        finally:
            os.close(file)
