"""We beside the victim: the daemon, stopped while nothing of ours is to run, going on to observe, or to probe."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.daemon import Daemon, children, cpu_seconds

from capture_canary.service.daemon import BEAT

SETTINGS = (
    *("probe.interval=30d", "gate.budget=7d", "probe.deadline=60s"),
    *("servers.inspect=true", "servers.interval=5s"),
)
"""It probes when the bench says so, and looks at servers twelve times as often as by default."""
SCRAPE = 1.0
"""Seconds from one scrape to the next; Prometheus takes 15."""
ASK = 0.02
CATCH_UP = 0.1
"""Seconds that a daemon has, once it goes on, for what fell due while it was stopped."""


class Beside:
    """The daemon on the victim's node, which holds NPUs 0 and 1; so it probes on 2 and 3."""

    def __init__(self, folder: Path, emulate: str) -> None:
        """Start it, let its first probe pass, and stop it."""
        self.daemon = Daemon(folder, *SETTINGS, emulate=emulate)
        self._cpu = self._observed = 0.0
        self.daemon.first_scrape()
        self.daemon.probe_until(1)
        self._rest()
        os.kill(self.pid, signal.SIGSTOP)

    @property
    def pid(self) -> int:
        """The daemon's process."""
        return self.daemon.process.pid

    @property
    def busy(self) -> float:
        """Share of a core that it took while it observed: it is scraped in each block, and has much to catch up."""
        return self._cpu / self._observed

    def _rest(self) -> None:
        """Wait until no probe runs, nor one that was asked for is still to begin with the next beat."""
        quiet = time.monotonic()
        while time.monotonic() < quiet + BEAT + CATCH_UP:
            time.sleep(0.01)
            if children(self.pid):
                quiet = time.monotonic()

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Have it go on."""
        os.kill(self.pid, signal.SIGCONT)
        yield
        os.kill(self.pid, signal.SIGSTOP)

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Have it observe, and be scraped."""
        with self.awake():
            time.sleep(CATCH_UP)
            with repeating(lambda: self.daemon.get("/metrics"), SCRAPE):
                cpu, begin = cpu_seconds(self.pid), time.monotonic()
                yield
                self._cpu += cpu_seconds(self.pid) - cpu
                self._observed += time.monotonic() - begin

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Have it asked to probe, one probe after the other, from when the first has begun."""
        with repeating(lambda: self.daemon.process.send_signal(signal.SIGUSR1), ASK):
            while not children(self.pid):
                time.sleep(0.001)
            yield
        self._rest()

    @contextmanager
    def probing(self) -> Iterator[None]:
        """Have it probe, from before the block to its end."""
        with self.awake(), self.asked():
            yield

    def end(self) -> None:
        """End it."""
        os.kill(self.pid, signal.SIGCONT)
        self.daemon.stop()

    def pin(self, cores: Sequence[int]) -> None:
        """Have its threads, and what they start, run on these cores."""
        pin(self.pid, cores)


def pin(pid: int, cores: Sequence[int]) -> None:
    """Have all threads of a process run on these cores."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):  # it may end meanwhile
            os.sched_setaffinity(int(task.name), cores)


@contextmanager
def repeating(do: Callable[[], object], every: float) -> Iterator[None]:
    """Do something now and then, in a thread."""
    done = threading.Event()

    def loop() -> None:
        do()
        while not done.wait(every):
            do()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
