"""The node that the soak runs on: the daemon, its folders, and what may grow on it."""

import http.client
import os
import queue
import re
import selectors
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from bench.soak.hand import Order, Told

from capture_canary.probe.base import base_environment

REPOSITORY = Path(__file__).parents[2]
TINY = ("probe.collectives=2", "probe.rounds=1", "probe.shapes=1,2,3")
"""The smallest probe that comes to a verdict on each of the stacks."""
PATIENCE = 180.0
"""Seconds without a beat after which the daemon counts as hung."""


class Usage(NamedTuple):
    """What the daemon and its node hold between two probes."""

    resident_kb: int
    descriptors: int
    threads: int
    children: int
    strays: int
    """Processes on this emulated node beside the daemon."""
    history_bytes: int
    files: int
    """In temporary folders, the trace folder and the emulated node; its shared memory has no name."""


class HungError(Exception):
    """The daemon did not beat."""


class Node:
    """A daemon that runs, and what others do beside it."""

    def __init__(self, folder: Path, *, emulate: str) -> None:
        """Start it, with everything that it writes in a folder."""
        self.folder, self.config, self.port = folder, folder / "config.yaml", _free_port()
        self.state, self.traces, self.temporary = (
            folder / name for name in ("state", "traces", "tmp")
        )
        for made in (self.state, self.traces, self.temporary):
            made.mkdir(exist_ok=True)
        self.own_disk = _mount(self.state)
        self.mark = {
            "CAPTURE_CANARY_EMULATE_NODE": str(folder / "node"),
            "TMPDIR": str(self.temporary),
        }
        self.environ = {**os.environ, **self.mark}
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._start(emulate)

    def _start(self, emulate: str) -> None:
        self.config.write_text("{}\n")
        values = (*TINY, "history.max_size=4MiB")  # it is to be reached
        sets = [part for value in values for part in ("--set", value)]
        places = (
            *("--set", f"lock_file={self.folder}/lock", "--set", f"trace_dir={self.traces}"),
            *("--listen", f"127.0.0.1:{self.port}", "--state-dir", str(self.state)),
        )
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "bench.soak.hand", "run", "--log-format", "json"),
                *("--emulate", emulate, "--config", str(self.config), *places, *sets),
            ],
            cwd=REPOSITORY,
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        self.told = self._told()

    def _read_log(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            try:
                self._events.put(msgspec.json.decode(line, type=dict[str, Any]))
            except msgspec.MsgspecError:
                self._events.put({"event": "no_json", "line": line.decode(errors="replace")[:500]})

    def order(self, order: Order) -> None:
        """Have the daemon beat; `answer` waits for it."""
        assert self.process.stdin
        self.process.stdin.write(msgspec.json.encode(order) + b"\n")
        self.process.stdin.flush()

    def answer(self) -> None:
        """Wait until it has beaten, and no probe runs.

        Raises:
            HungError: it takes too long, or it ended.
        """
        self.told = self._told()

    def _told(self) -> Told:
        assert self.process.stdout
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE):
                raise HungError(f"no beat within {PATIENCE:g} s")
        line = self.process.stdout.readline()
        if not line:
            raise HungError(f"it ended with {self.process.wait()}: {self.events()[-3:]}")
        return msgspec.json.decode(line, type=Told)

    def events(self) -> list[dict[str, Any]]:
        """Return what it logged since the last time."""
        found = []
        with suppress(queue.Empty):
            while True:
                found.append(self._events.get_nowait())
        return found

    def wait_event(self, *names: str) -> dict[str, Any]:
        """Return the next event of one of these names; the log may lag a little behind the answer."""
        while True:
            event = self._events.get(timeout=PATIENCE)
            if event["event"] in names:
                return event

    def environment(self, emulate: str, fault: str) -> dict[str, str]:
        """Return the environment of a CANN, installed in place of the one before."""
        return base_environment({**self.environ, "CAPTURE_CANARY_EMULATE_FAULT": fault}, emulate)

    def get(self, path: str) -> bytes:
        """Return a page."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        finally:
            connection.close()

    def metrics(self) -> dict[str, float]:
        """Return the samples by name and labels."""
        text = self.get("/metrics").decode()
        found = re.findall(r"^capture_canary_(\S+(?:\{.*?\})?) (\S+)$", text, re.MULTILINE)
        return {name: float(value) for name, value in found}

    def workers(self) -> list[int]:
        """Return the processes of a probe under way: its leader and its ranks."""
        return [pid for pid in self._marked() if pid != self.process.pid and _is_worker(pid)]

    def _marked(self) -> list[int]:
        wanted = f"CAPTURE_CANARY_EMULATE_NODE={self.folder}/node".encode()
        found = []
        for path in Path("/proc").iterdir():
            if path.name.isdecimal():
                with suppress(OSError):
                    if wanted in (path / "environ").read_bytes().split(b"\0"):
                        found.append(int(path.name))
        return sorted(found)

    def usage(self) -> Usage:
        """Return what is held now."""
        proc = Path(f"/proc/{self.process.pid}")
        status = dict(
            re.findall(r"^(VmRSS|Threads):\s+(\d+)", (proc / "status").read_text(), re.MULTILINE)
        )
        children = [path.read_text() for path in proc.glob("task/*/children")]
        beside = [path for path in self.folder.rglob("*") if self.state not in path.parents]
        return Usage(
            resident_kb=int(status["VmRSS"]),
            descriptors=len([*(proc / "fd").iterdir()]),
            threads=int(status["Threads"]),
            children=len(" ".join(children).split()),
            strays=len(self._marked()) - 1,
            history_bytes=sum(path.stat().st_size for path in self.state.glob("history.db*")),
            files=len(beside),
        )

    def stop(self) -> int:
        """End it, as a node does; return its exit code."""
        process = self.process
        assert process.stdin
        assert process.stdout
        assert process.stderr
        try:
            with suppress(OSError):
                process.stdin.close()
            process.send_signal(signal.SIGTERM)
            return process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()
            self._reader.join(PATIENCE)
            process.stdout.close()
            process.stderr.close()
            if self.own_disk:
                subprocess.run(["/bin/umount", "--lazy", self.state], check=True)


def _is_worker(pid: int) -> bool:
    with suppress(OSError):
        return b"capture_canary.probe.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _mount(folder: Path) -> bool:
    """Give the state folder a small disk of its own; without root it has none, and none gets full."""
    mount = ["/bin/mount", "-t", "tmpfs", "-o", "size=16m", "soak", str(folder)]
    return os.geteuid() == 0 and not subprocess.run(mount, check=False).returncode


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port
