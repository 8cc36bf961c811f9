"""Several builds at a time, each in a child process; however they end, nothing of them is left running or lying."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from capture_canary import foreign
from capture_canary.images.job import STAGE, UNFINISHED, Event, Job

_CHILD: Final = ("-m", "capture_canary.images.build_child")
_MAX_LINE: Final = 64 << 10
_END_SECONDS: Final = 30.0
"""The Engine takes a moment to give up a build whose connection closed."""

Observe = Callable[[str, Event], None]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one."""

    name: str
    tag: str
    result: Literal["built", "kept", "failed"]
    text: str
    """Its image's id or name; of one that failed, why."""
    seconds: float


class Builds:
    """Builds under way."""

    def __init__(self, observe: Observe, logs: Path, *, jobs: int, deadline: float) -> None:
        """Args: who is told, where each build's output is kept, how many at a time, seconds that one may take."""
        self._observe = observe
        self._logs = logs
        self._jobs = jobs
        self._deadline = deadline
        self._children: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._ended = False

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Build all of them; one that fails stops no other. An exception that comes meanwhile ends them all first."""
        self._logs.mkdir(parents=True, exist_ok=True)
        pool = ThreadPoolExecutor(self._jobs)
        try:
            futures = [pool.submit(self._one, job) for job in jobs]
            return [future.result() for future in futures]
        except BaseException:
            self.end()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def end(self) -> None:
        """End the children: with their connections closed the Engine gives the builds up."""
        with self._lock:
            self._ended = True
            for child in self._children:
                child.kill()

    def _one(self, job: Job) -> Outcome:
        begin = time.monotonic()
        last = Event(kind="failed", text="its child ended without a word")
        child = self._start(job)
        if child is None:
            last = Event(kind="failed", text="not begun")
        else:
            timer = threading.Timer(self._deadline, child.kill)
            timer.start()
            try:
                last = self._follow(job, child) or last
            finally:
                timer.cancel()
                self._finish(child)
            if last.kind == "failed" and time.monotonic() - begin >= self._deadline:
                last = Event(kind="failed", text=f"not done in {self._deadline:g} s")
        self._observe(job.name, last)
        result: Any = last.kind if last.kind in ("built", "kept") else "failed"
        seconds = time.monotonic() - begin
        return Outcome(name=job.name, tag=job.tag, result=result, text=last.text, seconds=seconds)

    def _start(self, job: Job) -> subprocess.Popen[bytes] | None:
        """Start the child; under the lock, so that none is started behind `end`."""
        with self._lock:
            if self._ended:
                return None
            child = subprocess.Popen(
                [sys.executable, *_CHILD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is ours to hear
            )
            self._children.add(child)
        with contextlib.suppress(BrokenPipeError):  # its answer, or its silence, says why
            assert child.stdin is not None  # noqa: S101  # a pipe
            child.stdin.write(msgspec.json.encode(job))
            child.stdin.close()
        return child

    def _follow(self, job: Job, child: subprocess.Popen[bytes]) -> Event | None:
        """Read what it tells to its end; return the event that said how it ended."""
        end: Event | None = None
        assert child.stdout is not None  # noqa: S101  # a pipe
        with (self._logs / f"{job.name}.log").open("w", encoding="utf-8") as log:
            while line := child.stdout.readline(_MAX_LINE):
                event = foreign.decode(line, Event)
                log.write(f"{event.text}\n")
                if event.kind in ("built", "kept", "failed"):
                    end = event
                else:
                    self._observe(job.name, event)
        return end

    def _finish(self, child: subprocess.Popen[bytes]) -> None:
        child.kill()
        child.wait()
        if child.stdout:
            child.stdout.close()
        with self._lock:
            self._children.discard(child)


@contextlib.contextmanager
def signals_as_exceptions() -> Any:
    """Within, SIGTERM and SIGHUP end as Ctrl-C does: by an exception, so that all is cleaned up."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def clean(client: Any) -> None:
    """Remove what builds leave: containers of steps given up, and images of ours that no name has any more.

    Whoever calls holds the lock of builds, so that none is under way. What runs from a finished image is not touched.
    """
    deadline = time.monotonic() + _END_SECONDS
    while _containers(client) and time.monotonic() < deadline:
        time.sleep(0.2)  # the Engine removes them itself when it gives a build up
    for number in _containers(client):
        with contextlib.suppress(Exception):  # it may have gone meanwhile
            client.api.remove_container(number, v=True, force=True)
    for image in client.api.images(filters={"dangling": True, "label": STAGE}):
        with contextlib.suppress(Exception):  # one that a container still uses stays
            client.api.remove_image(image["Id"])


def _containers(client: Any) -> list[str]:
    """Return the containers of builds: those of finished images carry another value of the label."""
    return [
        str(one["Id"])
        for stage in UNFINISHED
        for one in client.api.containers(all=True, filters={"label": f"{STAGE}={stage}"})
    ]


def cpus() -> int:
    """Return how many builds at a time are worth it: a build is pip and tar, one core each."""
    return max(1, min(4, len(os.sched_getaffinity(0))))
