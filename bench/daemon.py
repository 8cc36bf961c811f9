"""What the daemon costs for months, on the emulated CANN: memory after 1,000 probes, idle CPU, scrapes, start.

`--probes N` takes less than the 1,000; the run with 1,000 takes about ten minutes.
"""

import argparse
import http.client
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

TINY = ("probe.collectives=2", "probe.rounds=1", "probe.shapes=1,2,3", "gate.budget=7d")
EARLY = 100
"""Probes after which everything that is used once has been used."""
IDLE_SECONDS = 30
SCRAPERS, SCRAPE_SECONDS = 8, 40
STARTS = 5

FAST = "import capture_canary.service.daemon as d, capture_canary.cli as c; d.BEAT = 0.01; raise SystemExit(c.main())"
"""The daemon as it is, but for its beat: a request to probe is seen at once."""
BARE = """
import sys, uvicorn
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
uvicorn.run(app, port=int(sys.argv[1]), lifespan="off", log_config=None, access_log=False)
"""


class Usage(NamedTuple):
    """What a process holds."""

    resident_mb: float
    descriptors: int
    threads: int
    zombies: int


class Daemon:
    """A daemon that runs."""

    def __init__(self, folder: Path, *settings: str, emulate: str, fast: bool = False) -> None:
        """Start it, with everything that it writes in a folder."""
        self.port = free_port()
        begin = ["-c", FAST] if fast else ["-m", "capture_canary.cli"]
        values = (
            *("probe.jitter=0s", "probe.deadline=20s", *settings),
            *(f"lock_file={folder}/lock", f"trace_dir={folder}/traces"),
        )
        sets = [part for value in values for part in ("--set", value)]
        (folder / "tmp").mkdir(exist_ok=True)
        environ = {
            **os.environ,
            "CAPTURE_CANARY_EMULATE_NODE": str(folder / "node"),
            "TMPDIR": str(folder / "tmp"),
        }
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [
                *(sys.executable, *begin, "run", "--emulate", emulate, *sets),
                *("--listen", f"127.0.0.1:{self.port}", "--state-dir", str(folder / "state")),
            ],
            env=environ,
            stderr=subprocess.DEVNULL,
        )

    def get(self, path: str) -> bytes:
        """Return a page."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        finally:
            connection.close()

    def first_scrape(self) -> float:
        """Return the seconds from the start to the first scrape that is answered."""
        while True:
            try:
                self.get("/metrics")
                return time.monotonic() - self.started
            except OSError:
                assert self.process.poll() is None, "the daemon ended"
                time.sleep(0.01)

    def probes(self) -> int:
        """Return how many it made."""
        found = re.search(
            rb"^capture_canary_probe_runs_total (\S+)", self.get("/metrics"), re.MULTILINE
        )
        assert found is not None
        return int(float(found[1]))

    def probe_until(self, count: int) -> None:
        """Have it probe, one after the other, and look at the page as people do."""
        shown = 0
        while (done := self.probes()) < count:
            for _ in range(10):
                self.process.send_signal(signal.SIGUSR1)
                time.sleep(0.05)
            if done // 20 > shown:
                shown = done // 20
                for path in ("/", "/explain", "/api/v1/status", "/api/v1/probes?limit=50"):
                    self.get(path)

    def rest(self) -> None:
        """Wait until no probe runs, nor one that was asked for is still to begin."""
        quiet = 0
        while quiet < 20:
            time.sleep(0.1)
            quiet = 0 if children(self.process.pid) else quiet + 1

    def usage(self) -> Usage:
        """Return what it holds."""
        proc = Path(f"/proc/{self.process.pid}")
        status = (proc / "status").read_text()
        values = dict(re.findall(r"^(VmRSS|Threads):\s+(\d+)", status, re.MULTILINE))
        return Usage(
            int(values["VmRSS"]) / 1024,
            len(list((proc / "fd").iterdir())),
            int(values["Threads"]),
            sum(state(child) == "Z" for child in children(self.process.pid)),
        )

    def stop(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)


@contextmanager
def running(
    *settings: str, emulate: str = "cann=8.5.0,soc=a3", fast: bool = False
) -> Iterator[tuple[Daemon, Path]]:
    """Run a daemon in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        daemon = Daemon(Path(name), *settings, emulate=emulate, fast=fast)
        try:
            daemon.first_scrape()
            yield daemon, Path(name)
        finally:
            daemon.stop()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def state(pid: int) -> str:
    """Return the letter of proc(5) for a process; empty where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def children(pid: int) -> list[int]:
    """Return the children of all its threads."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # a thread may end meanwhile
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process took, by its clock: /proc counts in hundredths, which may be none."""
    return time.clock_gettime(~pid << 3 | 2)  # as clock_getcpuclockid(3) of glibc has it


SHM = Path("/dev/shm")  # noqa: S108 - looked at, not written


def own_shm() -> set[Path]:
    """Return the shared memory that is ours: others use the machine too."""
    return {one for one in SHM.iterdir() if one.stat().st_uid == os.getuid()}


def memory(probes: int) -> None:
    """Resident memory after many probes, and what is left over."""
    shm = own_shm()
    early = min(EARLY, probes // 2)
    with running(*TINY, fast=True) as (daemon, folder):
        daemon.probe_until(early)
        daemon.rest()
        before = daemon.usage()
        daemon.probe_until(probes)
        daemon.rest()
        after = daemon.usage()
        alive = len(children(daemon.process.pid))
        daemon.stop()
        left = [*(folder / "tmp").iterdir(), *(own_shm() - shm)]
    row(f"resident after {probes} probes, MB", f"{after.resident_mb:.1f}", "< 45")
    row(
        f"its growth since probe {early}, MB",
        f"{after.resident_mb - before.resident_mb:+.2f}",
        "< 1",
    )
    row(
        "descriptors, threads more than then",
        f"{after.descriptors - before.descriptors:+d}, {after.threads - before.threads:+d}",
        "0",
    )
    row(
        "zombies, children, temporary and shm files left",
        f"{after.zombies}, {alive}, {len(left)}",
        "0",
    )


def idle() -> None:
    """CPU of an idle daemon, and of a bare uvicorn beside it."""
    port = free_port()
    bare = subprocess.Popen([sys.executable, "-c", BARE, str(port)])
    try:
        with running(*TINY) as (daemon, _):
            daemon.probe_until(1)
            time.sleep(2)
            pids = (daemon.process.pid, bare.pid)
            before = [cpu_seconds(pid) for pid in pids]
            time.sleep(IDLE_SECONDS)
            own, other = (
                100 * (cpu_seconds(pid) - then) / IDLE_SECONDS
                for pid, then in zip(pids, before, strict=True)
            )
    finally:
        bare.terminate()
        bare.wait()
    row("idle CPU, % of a core", f"{own:.2f}", "< 0.5")
    row("the same above a bare uvicorn", f"{own - other:+.2f}", "< 0.1")


def scrapes() -> None:
    """Scrapes of /metrics while it probes, beside a constant page of the same server."""
    with running("gate.budget=7d", emulate="cann=8.5.0,soc=a3,npus=16", fast=True) as (daemon, _):
        daemon.probe_until(2)
        times: dict[str, list[float]] = {"/metrics": [], "/healthz": []}
        begin = daemon.probes()
        end = time.monotonic() + SCRAPE_SECONDS
        scrapers = [
            threading.Thread(target=scrape, args=(daemon.port, number, end, times))
            for number in range(SCRAPERS)
        ]
        for scraper in scrapers:
            scraper.start()
        while any(scraper.is_alive() for scraper in scrapers):
            daemon.process.send_signal(signal.SIGUSR1)
            time.sleep(0.2)
        made = daemon.probes() - begin
    p99 = {path: statistics.quantiles(found, n=100)[98] for path, found in times.items()}
    median = {path: statistics.median(found) for path, found in times.items()}
    row(f"/metrics while {made} probes ran, p99, ms", f"{p99['/metrics'] * 1e3:.1f}", "")
    row("a constant page in the same run, p99, ms", f"{p99['/healthz'] * 1e3:.1f}", "")
    row(
        "ratio of p99, of medians",
        f"{p99['/metrics'] / p99['/healthz']:.2f}, {median['/metrics'] / median['/healthz']:.2f}",
        "< 3",
    )


def scrape(port: int, number: int, end: float, times: dict[str, list[float]]) -> None:
    """Scrape once a second, as Prometheus does: the connection is kept."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    time.sleep(number / SCRAPERS)
    paths = list(times)
    while time.monotonic() < end:
        begin = time.monotonic()
        for path in paths:
            then = time.monotonic()
            connection.request("GET", path)
            connection.getresponse().read()
            times[path].append(time.monotonic() - then)
        paths.reverse()
        time.sleep(max(0.0, 1 - (time.monotonic() - begin)))
    connection.close()


def starts() -> None:
    """From the start of the process to the first scrape."""
    found, cpu = [], []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as name:
            daemon = Daemon(Path(name), emulate="cann=8.5.0,soc=a3")
            found.append(daemon.first_scrape())
            cpu.append(cpu_seconds(daemon.process.pid))
            daemon.stop()
    row(
        "start to first scrape, s (median, most)",
        f"{statistics.median(found):.2f}, {max(found):.2f}",
        "< 1",
    )
    row("CPU time of that, s (median)", f"{statistics.median(cpu):.2f}", "")


def row(what: str, found: str, wanted: str) -> None:
    """Print a row."""
    print(f"| {what} | {found} | {wanted} |", flush=True)


def main() -> None:
    """Print a row a figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probes", type=int, default=1000)
    parser.add_argument("--only", choices=("memory", "idle", "scrapes", "starts"))
    args = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "starts": starts,
        "idle": idle,
        "scrapes": scrapes,
        "memory": partial(memory, args.probes),
    }
    print("| the daemon on an emulated A3 with CANN 8.5.0 | found | wanted |")
    print("| --- | --- | --- |")
    for name, part in parts.items():
        if args.only in (None, name):
            part()


if __name__ == "__main__":
    main()
