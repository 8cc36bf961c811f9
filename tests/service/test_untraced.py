"""Servers that were started to be traced and are not: unknown, and a metric."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.running import Running, until

from capture_canary.native import tracer_path
from capture_canary.stack.processes import Finder

WORKER = "VLLM::Worker_TP0"
WAITS = "import sys; print(flush=True); sys.stdin.read()"
Start = Callable[..., int]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a process that looks like a vLLM worker."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(**environ: str) -> int:
        clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        process = subprocess.Popen(
            [WORKER, "-c", WAITS],
            executable=sys.executable,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=clean | environ,
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.read(1)  # it runs, its libraries are loaded
        return process.pid

    yield begin
    for process in started:
        process.communicate()


def why(pid: int) -> str | None:
    found = Finder(inspect=True, seconds=30).look(nodes={}, soc=None).servers
    (own,) = [one for one in found if one.pid == pid]
    return own.untraced


def test_not_asked_for(start: Start):
    assert why(start()) is None


@pytest.mark.parametrize(
    "environ",
    [
        {"CAPTURE_CANARY_TRACE_DIR": "/run/capture-canary/traces"},
        {"LD_PRELOAD": "/not/in/this/container/libcapturetrace.so"},
        {"LD_PRELOAD": "/no/libjemalloc.so.2:/no/libcapturetrace.so"},
    ],
    ids=["start script replaced LD_PRELOAD", "not in its image", "behind another"],
)
def test_not_loaded(start: Start, environ: dict[str, str]):
    reason = why(start(**environ))

    assert reason is not None
    assert "libcapturetrace.so is not loaded" in reason


def test_loaded_and_no_hccl_started(start: Start, tmp_path: Path):
    environ = {"LD_PRELOAD": str(tracer_path()), "CAPTURE_CANARY_TRACE_DIR": str(tmp_path)}

    assert why(start(**environ)) is None


def test_a_probe_of_ours_reads_its_own(start: Start, tmp_path: Path):
    environ = {"CAPTURE_CANARY_PROBE": "mark", "CAPTURE_CANARY_TRACE_DIR": str(tmp_path)}

    assert why(start(**environ)) is None


def test_the_daemon_says_unknown_and_exports_it(start: Start, tmp_path: Path):
    (tmp_path / "traces").mkdir()
    start(CAPTURE_CANARY_TRACE_DIR=str(tmp_path / "traces"))
    daemon = Running(tmp_path, "paused=true", "servers.inspect=true", "servers.interval=5s")
    try:
        until(lambda: (daemon.metric(r'servers_untraced\{stack="\w+"\}') or 0) >= 1)
        unknown = r'verdict\{evidence="trace",stack="\w+",verdict="unknown"\}'
        said = "of processes to be traced"
        until(lambda: said in daemon.log.read_text(encoding="utf-8"))
        until(lambda: daemon.metric(unknown) == 1)
    finally:
        daemon.end()
