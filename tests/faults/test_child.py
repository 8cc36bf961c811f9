"""Faults of a probe's child that CANN has no part in."""

import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from capture_canary.probe import children, measure, runner
from tests.faults import machine
from tests.faults.node import injects, nothing_left, strays
from tests.faults.table import GROWING
from tests.probe.scripted import ENDED, STARTED, run
from tests.running import until
from tests.service.parts import Parts

SCRIPTS = {
    "the child ignores SIGTERM": (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)",
        "deadline",
    ),
    "the child stops itself": ("os.kill(os.getpid(), signal.SIGSTOP)", "deadline"),
    "the child forks 100 processes that leave its group": (
        "[os.fork() or (os.setsid(), time.sleep(60)) for _ in range(100)]",
        "status",
    ),
    "the child floods its records": (
        f"while True: os.write(records, {STARTED!r})",
        "flooded its records",
    ),
    "the child floods its standard error": (
        "while True: os.write(2, b'e' * 65536)",
        "flooded its stderr",
    ),
    "the child writes garbage": (
        "os.write(records, os.urandom(500) + b'\\n')\ntime.sleep(60)",
        "what is no record",
    ),
    "the child writes a line without end": (
        "os.write(records, b'x' * 100_000)\ntime.sleep(60)",
        "a line of more than",
    ),
    "the child crashes": ("os.kill(os.getpid(), signal.SIGSEGV)", "status -11"),
}


@injects(*SCRIPTS)
@pytest.mark.parametrize(("script", "reason"), SCRIPTS.values(), ids=SCRIPTS.keys())
def test_child_that_misbehaves(script: str, reason: str):
    with nothing_left(GROWING):
        deadline = 1.0 if reason == "deadline" else 30.0
        begin = time.monotonic()

        outcome = run(script, deadline=deadline)

        assert outcome.failure is not None
        assert reason in outcome.failure
        assert outcome.leftover == []
        assert time.monotonic() - begin < deadline + children.TERM_GRACE + children.KILL_GRACE
        assert run(f"os.write(records, {STARTED + ENDED!r})").failure is None


@injects("the child claims success and captured nothing")
def test_claim_without_captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    liar = f"import os, sys; sys.stdin.readline(); os.write(int(sys.argv[1]), {ENDED!r})"
    real = runner.run_arm

    def lying(*args: Any, **options: Any) -> runner.ArmRun:
        return real(*args, **options | {"command": (sys.executable, "-c", liar)})

    monkeypatch.setattr(measure, "run_arm", lying)
    with nothing_left(GROWING):
        parts = Parts(tmp_path, GROWING)
        report = parts.attempt().reports["probe"]
        assert report.verdict == "unknown"
        assert "nothing was captured" in report.reason
        parts.store.close()


@injects("no descriptor is left for a child")
def test_no_descriptor():
    with nothing_left(GROWING):
        used = [int(path.name) for path in Path("/proc/self/fd").iterdir()]
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = [number for number in range(max(used) + 4) if number not in used]
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (free[2], hard))
            outcome = run("")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert "could not be started" in (outcome.failure or "")
        assert run(f"os.write(records, {STARTED + ENDED!r})").failure is None


@injects("the temporary folder is full")
def test_full_temporary_folder(own_temporary: Path):
    with nothing_left(GROWING):
        with machine.full_disk(own_temporary):
            outcome = run("")
        assert "No space left" in (outcome.failure or "")
        assert run(f"os.write(records, {STARTED + ENDED!r})").failure is None


@injects("the tracer does not load")
@pytest.mark.parametrize("cann", ["8.5.0", "9.1.0"])
def test_tracer_that_does_not_load(cann: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    empty = tmp_path / "empty.so"
    empty.touch()
    emulate = f"cann={cann},soc=a3,npus=2"
    with nothing_left(emulate):
        monkeypatch.setattr(runner, "tracer_path", lambda: empty)
        parts = Parts(tmp_path, emulate)
        state = parts.attempt()
        report = state.reports["probe"]
        assert (report.verdict, report.cause) == ("unknown", "tracer_blind")
        assert state.totals.failures == {"tracer_blind": 1}
        parts.store.close()


@injects("a rank that has answered is killed while its peer hangs")
def test_death_beside_a_hang(tmp_path: Path):
    deadline = 60
    with nothing_left(GROWING):
        parts = Parts(
            tmp_path, GROWING, fault="hang:aclmdlRICaptureEnd:2@1", probe__deadline=f"{deadline}s"
        )
        attempt = threading.Thread(target=parts.attempt)
        begin = time.monotonic()
        attempt.start()
        until(lambda: len(strays()) == 3)
        _leader, first, second = strays()  # in the order in which they were started
        before: list[str] = []
        while before != (before := machine.ticks([first, second])):
            time.sleep(0.5)
        os.kill(first, signal.SIGKILL)
        attempt.join(deadline)
        assert time.monotonic() - begin < deadline
        report = parts.board.view.state.reports["probe"]
        assert report.verdict == "unknown"
        assert "rank 0 failed in" in report.reason
        assert "its process died (signal 9)" in report.reason
        parts.store.close()


@contextmanager
def unkillable(pids: list[int], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have processes that no signal ends, as in a driver call that never returns."""
    if machine.can_freeze():
        with machine.frozen(pids):
            yield
        return
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(children, "_signal_group", lambda *_: None)
        patch.setattr(os, "kill", lambda *_: None)
        yield
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


@injects("the child cannot be killed")
def test_child_that_cannot_be_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with nothing_left(GROWING):
        parts = Parts(
            tmp_path,
            GROWING,
            fault="hang:aclmdlRICaptureEnd:2@1",
            probe__deadline="6s",
            gate__settle="1s",
        )
        attempt = threading.Thread(target=parts.attempt)
        begin = time.monotonic()
        attempt.start()
        until(lambda: len(strays()) == 3)
        with unkillable(strays(), monkeypatch):
            attempt.join(60)
            took = time.monotonic() - begin
        assert (
            took < 6 + children.TERM_GRACE + children.KILL_GRACE + 10
        )  # and looks whether it was released
        assert "could not be ended" in (parts.latch.why() or "")
        assert [event.kind for event in parts.store.events()] == ["latch"]
        assert parts.board.view.state.reports["probe"].verdict == "unknown"
        parts.attempt()
        assert parts.board.view.state.totals.skips == {"latched": 1}
        parts.store.close()

        until(lambda: not [pid for pid in strays() if machine.alive(pid)])
        (tmp_path / "latch").unlink()
        again = Parts(tmp_path, GROWING)
        assert again.attempt().reports["probe"].verdict == "degraded"
        again.store.close()
