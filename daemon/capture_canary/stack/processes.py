"""Finds the processes that serve on this node: by command line, by NPUs held, by trace."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from capture_canary.identity import boot_id
from capture_canary.stack.devices import opened_by
from capture_canary.stack.examine import Examiner
from capture_canary.stack.mode import Said
from capture_canary.stack.patience import Patience
from capture_canary.stack.proc import ProcessFolder
from capture_canary.stack.servers import FoundBy, Servers
from capture_canary.stack.serving import Serves, arguments, serves
from capture_canary.trace.header import ProcessFacts

MAX_PROCESSES = 65536
MAX_SERVERS = 256
"""Serving processes that are looked into; a node of 16 NPUs has a few dozen."""


class Glance(msgspec.Struct, frozen=True):
    """What a first look at a process shows."""

    argv: list[str]
    serves: Serves | None
    npus: frozenset[int]
    hidden: bool
    """Its open files may not be looked at."""
    traced: ProcessFacts | None


class Finder:
    """Looks at /proc, again and again; a process that hung a look once is not asked again."""

    def __init__(
        self, proc: Path = Path("/proc"), *, inspect: bool = False, seconds: float = 1.0
    ) -> None:
        """Args: where processes are, whether environments and roots may be read, patience with each."""
        self._proc = str(proc)
        self._inspect = inspect
        self._glances: Patience[int] = Patience(seconds)
        self._looks: Patience[int] = Patience(seconds)
        self.opened: dict[int, frozenset[int] | None] = {}
        """NPUs that each process had open at the last look; None: it could not be looked at."""

    def look(
        self,
        *,
        nodes: Mapping[int, int],
        soc: str | None,
        traces: Mapping[tuple[int, int], ProcessFacts] | None = None,
        told: Mapping[str, Said] | None = None,
    ) -> Servers:
        """Return what serves here.

        Args:
            nodes: N and device number of the node's /dev/davinciN.
            soc: name or family of its SoC.
            traces: of traced processes by inner pid and start time.
            told: variables of containers by their id, as somebody else told them.
        """
        by_number = {number: n for n, number in nodes.items()}
        known = traces or {}
        try:
            pids = [int(name) for name in os.listdir(self._proc) if name.isdecimal()]  # noqa: PTH208  # of thousands
        except OSError as error:
            return Servers(unseen=(f"{self._proc}: {error.strerror}",))
        glances, hung = self._glances.each(
            sorted(pids)[:MAX_PROCESSES], lambda pid: self._glance(pid, by_number, known)
        )
        self.opened = dict.fromkeys(pids) | {
            pid: _opened(glance) for pid, glance in glances.items()
        }
        found = {
            pid: glance
            for pid, glance in glances.items()
            if glance and (glance.serves or glance.npus or glance.traced)
        }
        wanted = dict(sorted(found.items())[:MAX_SERVERS])
        examiner = Examiner(self._proc, inspect=self._inspect, soc=soc, told=told)
        servers, lost = self._looks.each(
            wanted,
            lambda pid: examiner.examine(
                pid, wanted[pid].argv, wanted[pid].traced, sorted(wanted[pid].npus)
            ),
        )
        return Servers(
            servers=tuple(
                msgspec.structs.replace(server, found_by=_found_by(wanted[pid]))
                for pid, server in servers.items()
                if server
            ),
            looked_at=len(glances),
            unseen=self._unseen(glances, [*hung, *lost], len(found) - len(wanted)),
        )

    def _glance(
        self,
        pid: int,
        by_number: dict[int, int],
        traces: Mapping[tuple[int, int], ProcessFacts],
    ) -> Glance | None:
        """None for kernel threads, zombies and what has ended meanwhile."""
        folder = ProcessFolder(self._proc, pid)
        try:
            # One that was given no arguments has a program all the same; a kernel thread has neither.
            argv = arguments(folder.cmdline()) or [folder.program()]
            opened = opened_by(f"{folder.path}/fd", by_number)
            traced = None
            if traces:
                traced = traces.get((folder.inner_pid(), folder.times().start_time))
        except OSError:
            return None
        return Glance(argv, serves(argv), frozenset(opened or ()), opened is None, traced)

    def _unseen(
        self, glances: Mapping[int, Glance | None], hung: list[int], left_out: int
    ) -> tuple[str, ...]:
        said = []
        hidden = sum(1 for glance in glances.values() if glance and glance.hidden)
        if hidden:
            said.append(
                f"open files of {hidden} processes: needs their user, or CAP_SYS_PTRACE (docs/permissions.md)"
            )
        if 1 not in glances:
            said.append("processes of others: hidden from us (hidepid)")
        if not self._inspect:
            said.append(
                "environments and versions of other processes: not looked at (servers.inspect)"
            )
        if hung:
            said.append(f"processes {hung[:8]}: a look at them hangs")
        if left_out:
            said.append(f"{left_out} further serving processes: more than {MAX_SERVERS}")
        return tuple(said)


def _opened(glance: Glance | None) -> frozenset[int] | None:
    if glance is None:
        return frozenset()
    return None if glance.hidden else glance.npus


def traced(
    facts: Iterable[ProcessFacts | None],
) -> dict[tuple[int, int], ProcessFacts]:
    """Return what traces say of processes by inner pid and start time, as `Finder.look` takes it."""
    own_boot = boot_id()
    return {
        (one.pid, one.start_time): one
        for one in facts
        if one is not None and one.boot_id == own_boot
    }


def _found_by(glance: Glance) -> tuple[FoundBy, ...]:
    found: list[FoundBy] = []
    if glance.serves:
        found.append("cmdline")
    if glance.npus:
        found.append("device")
    if glance.traced:
        found.append("trace")
    return tuple(found)
