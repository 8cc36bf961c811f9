"""A daemon under test, as a process of its own, and what to wait for."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 60.0
"""For what takes a second on an idle machine."""


class Running:
    """A daemon under test."""

    def __init__(
        self,
        folder: Path,
        *settings: str,
        emulate: str = "cann=8.5.0,soc=a3",
        fault: str = "",
        port: int | None = None,
        config: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ):
        self.folder = folder
        self.port = port or free_port()
        self.log = folder / "log"
        values = [
            "probe.jitter=0s",
            "probe.deadline=20s",
            f"lock_file={folder}/lock",
            f"trace_dir={folder}/traces",
        ]
        sets = [part for value in [*values, *settings] for part in ("--set", value)]
        given = {**os.environ, "CAPTURE_CANARY_EMULATE_FAULT": fault, **(environ or {})}
        command = [sys.executable, "-m", "capture_canary.cli", "run", "--emulate", emulate]
        listen = ["--listen", f"127.0.0.1:{self.port}", "--state-dir", str(folder / "state")]
        named = ["--config", str(config)] if config else []
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *listen, *sets, *named], stderr=log, env=given
            )

    def metric(self, pattern: str) -> float | None:
        """Return the value of the first sample that a pattern matches; None: no page, or no such sample."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as page:
                text = page.read().decode()
        except (OSError, urllib.error.URLError):
            return None
        found = re.search(rf"^capture_canary_{pattern} (\S+)$", text, re.MULTILINE)
        return float(found.group(1)) if found else None

    def verdict(self, name: str) -> bool:
        return self.metric(rf'verdict\{{evidence="probe",stack="\w+",verdict="{name}"\}}') == 1

    def probe_again(self) -> None:
        """Have it probe, and wait until it has."""
        until(lambda: self.metric("probe_runs_total") is not None)
        before = self.metric("probe_runs_total") or 0.0
        self.process.send_signal(signal.SIGUSR1)
        until(lambda: (self.metric("probe_runs_total") or 0) > before, patience=4 * PATIENCE)

    def events(self) -> list[dict[str, object]]:
        return [
            json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")
        ]

    def ranks(self) -> list[int]:
        """Return the processes of a probe under way."""
        found = []
        for process in Path("/proc").iterdir():
            try:
                if (
                    process.name.isdecimal()
                    and b"capture_canary.probe.worker" in (process / "cmdline").read_bytes()
                ):
                    environ = (process / "environ").read_bytes().split(b"\0")
                    node = os.environ["CAPTURE_CANARY_EMULATE_NODE"].encode()
                    if b"CAPTURE_CANARY_EMULATE_NODE=" + node in environ:
                        found.append(int(process.name))
            except OSError:
                continue
        return found

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def children(pid: int) -> set[str]:
    """Return the processes, zombies too, whose parent a process is."""
    lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return {child for one in lists for child in one.split()}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(ask: Callable[[], T], *, patience: float = PATIENCE) -> T:
    """Return the first true answer."""
    end = time.monotonic() + patience
    while not (answer := ask()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
    return answer
