"""What we take of a node: ports, streams and HBM while a probe runs, device and CPU seconds in a day."""

import os
import re
import struct
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.daemon import Daemon
from bench.interference.beside import Beside, repeating

CHIPS = 64
HEAD, SLOT, USE = struct.Struct("<8sII"), struct.Struct("<iiQ"), struct.Struct("<QII")
"""Of the emulated node's file (daemon/emulator/runtime/node.c): its head, a process's slot, its use of a chip."""
LISTEN = "0A"
FIXED = frozenset({16666, *range(60000, 60016)})
"""Ports that HCCL takes by default: a server's."""
PROBING, OBSERVING, SCRAPE = 3.0, 60.0, 15.0
"""Seconds of watching probes, and an idle daemon scraped as Prometheus does."""
TICKS = os.sysconf("SC_CLK_TCK")


class Held(NamedTuple):
    """The most that a probe was seen to have at a time."""

    looks: int
    npus: frozenset[int]
    hbm_mb: float
    """On one NPU."""
    streams: int
    """On one NPU."""
    ports: int
    fixed_ports: frozenset[int]
    """Of its ports those that a server's HCCL takes by default."""


class OfAProbe(NamedTuple):
    """Means of probes, gate and look afterwards included."""

    probes: int
    device_seconds: float
    cpu: float


class Use(NamedTuple):
    """What one process has of one NPU."""

    pid: int
    npu: int
    hbm: int
    streams: int


def uses(node: Path) -> Iterator[Use]:
    """Read who has what off the emulated node."""
    data = node.read_bytes()
    _, _, slots = HEAD.unpack_from(data)
    for slot in range(slots):
        begin = HEAD.size + slot * (SLOT.size + CHIPS * USE.size)
        pid, _, _ = SLOT.unpack_from(data, begin)
        for npu in range(CHIPS) if pid else ():
            hbm, streams, users = USE.unpack_from(data, begin + SLOT.size + npu * USE.size)
            if hbm or streams or users:
                yield Use(pid, npu, hbm, streams)


def ports(pids: Collection[int]) -> set[int]:
    """Return the TCP ports that processes listen on, of /proc/net/tcp."""
    inodes = set()
    for pid in pids:
        try:
            for link in Path(f"/proc/{pid}/fd").iterdir():
                inodes.update(re.findall(r"socket:\[(\d+)\]", str(link.readlink())))
        except OSError:
            continue  # it ended meanwhile
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTEN and fields[9] in inodes:
                found.add(int(fields[1].rpartition(":")[2], 16))
    return found


def most(held: Sequence[Held]) -> Held:
    """Return the most of several."""
    return Held(
        sum(one.looks for one in held),
        frozenset().union(*(one.npus for one in held)),
        max(one.hbm_mb for one in held),
        max(one.streams for one in held),
        max(one.ports for one in held),
        frozenset().union(*(one.fixed_ports for one in held)),
    )


def while_probing(ours: Beside, node: Path, others: Collection[int]) -> Held:
    """Watch what a daemon's probes have; `others` are the processes that are the victims'."""
    found = Held(0, frozenset(), 0, 0, 0, frozenset())
    with ours.probing():
        end = time.monotonic() + PROBING
        while time.monotonic() < end:
            seen = [use for use in uses(node) if use.pid not in others]
            listening = ports({use.pid for use in seen})
            now = Held(
                int(bool(seen)),
                frozenset(use.npu for use in seen),
                max((use.hbm / (1 << 20) for use in seen), default=0),
                max((use.streams for use in seen), default=0),
                len(listening),
                frozenset(listening & FIXED),
            )
            found = most([found, now])
    return found


def cpu_of_all(pid: int) -> float:
    """Return the CPU seconds of a process and of its children that ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / TICKS


def of_a_probe(ours: Beside) -> OfAProbe:
    """Return what a probe takes, mean of those that are made in a while."""
    daemon = ours.daemon

    def now() -> tuple[float, float, float]:
        page = daemon.get("/metrics").decode()
        return total(page, "probe_runs"), total(page, "probe_device_seconds"), cpu_of_all(ours.pid)

    with ours.awake():
        before = now()
        with ours.asked():
            time.sleep(PROBING)
        runs, device, cpu = (then - first for first, then in zip(before, now(), strict=True))
    return OfAProbe(int(runs), device / runs, cpu / runs)


def total(page: str, name: str) -> float:
    """Return a counter of a page of metrics."""
    found = re.search(rf"^capture_canary_{name}_total (\S+)$", page, re.MULTILINE)
    assert found is not None, name
    return float(found[1])


def of_a_day() -> float:
    """Return the CPU seconds that a daemon with default settings takes a day, probes aside."""
    with tempfile.TemporaryDirectory() as name:
        daemon = Daemon(Path(name), emulate="cann=8.5.0,soc=a3,npus=4")
        try:
            daemon.first_scrape()
            daemon.probe_until(1)
            daemon.rest()
            before = cpu_of_all(daemon.process.pid)
            with repeating(lambda: daemon.get("/metrics"), SCRAPE):
                time.sleep(OBSERVING)
            used = cpu_of_all(daemon.process.pid) - before
        finally:
            daemon.stop()
    return used * 86_400 / OBSERVING
