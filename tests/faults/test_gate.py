"""Faults of the node that the gate meets: no probe, and why; or probing latched off, and how to turn it on."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from capture_canary.export.exposition import Exposition
from capture_canary.gate.decide import decide
from capture_canary.gate.model import Rules
from capture_canary.lock import acquire
from capture_canary.model import Report
from capture_canary.probe.base import base_environment
from capture_canary.probe.measure import Probe, ProbeSettings
from capture_canary.schedule import Schedule
from capture_canary.stack.npu_smi import NpuSmi, command
from tests.faults.node import injects, nothing_left, strays
from tests.faults.table import GROWING
from tests.gate.test_decide import FREE
from tests.running import until
from tests.service.parts import Parts
from tests.test_schedule import HOUR, SIX_HOURS, START, Clock, Memory

YEAR = 365 * 24 * HOUR
NODE = "CAPTURE_CANARY_EMULATE_NODE"


def parts_with(folder: Path, script: str, emulate: str = GROWING, **settings: str) -> Parts:
    """A prober whose npu-smi is a script; `$SMI` is the real one."""
    parts = Parts(folder, emulate, **settings)
    environ = base_environment(os.environ, emulate)
    path = folder / "npu-smi"
    path.write_text(f"#!/bin/sh\nSMI={command(environ)}\n{script}\n")
    path.chmod(0o755)
    parts.prober._npu_smi = NpuSmi(str(path), deadline=2.0, env=environ)  # noqa: SLF001  # the node's
    return parts


BAD = {
    "`npu-smi` hangs": ("sleep 60", "npus_unknown"),
    "`npu-smi` prints garbage": ("head -c 100000 /dev/urandom", "npus_unknown"),
    "`npu-smi` prints without end": ("yes", "npus_unknown"),
    "another container holds the NPUs": (
        "echo 'because the device is used. ret is -8020'; exit 1",
        "npus_unknown",
    ),
    "the NPUs are unhealthy": ("$SMI info | sed 's/| OK   /| Alarm/'", "unhealthy"),
}


@injects(*BAD)
@pytest.mark.parametrize(("script", "reason"), BAD.values(), ids=BAD.keys())
def test_npu_smi_that_cannot_be_trusted(script: str, reason: str, tmp_path: Path):
    with nothing_left(GROWING):
        parts = parts_with(tmp_path, script)
        state = parts.attempt()
        assert state.totals.skips == {reason: 1}
        assert state.totals.runs == 0
        assert "probe" not in state.reports
        assert [skip.reason for skip in parts.store.skips()] == [reason]
        parts.store.close()
        again = Parts(tmp_path, GROWING)
        assert again.attempt().reports["probe"].verdict == "degraded"
        again.store.close()


@contextmanager
def holding(devices: range, more: str = "") -> Iterator[None]:
    """Another process that has NPUs open, and does more on each."""
    begin = (
        "import os, sys, pathlib\n"
        "from capture_canary.probe.cann import Cann, CannError\n"
        "cann = Cann(pathlib.Path(os.environ['ASCEND_HOME_PATH']))\n"
        "cann._call(cann._acl, 'aclInit', None)\n"
    )
    each = "".join(f"cann._call(cann._acl, 'aclrtSetDevice', {n})\n{more}" for n in devices)
    code = f"{begin}{each}print('ready', flush=True)\nsys.stdin.read()\n"
    holder = subprocess.Popen(
        [sys.executable, "-c", code],
        env=base_environment(os.environ, GROWING),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"ready\n"
        yield


def shown(emulate: str, folder: Path) -> str:
    """A script that shows a node as it is now, whatever becomes of it."""
    environ = base_environment({**os.environ, NODE: str(folder / "shown")}, emulate)
    table = subprocess.run(
        [command(environ), "info"], env=environ, capture_output=True, check=True
    ).stdout
    (folder / "table").write_bytes(table)
    return f"cat {folder}/table"


ALL_HBM = """
size = 1 << 40
while size > 1024:
    try:
        cann.malloc(size)
    except CannError:
        size //= 2
"""
ALL_STREAMS = """
try:
    while True:
        cann.create_stream()
except CannError:
    pass
"""
TAKEN = {
    "HBM is taken between gate and probe": (ALL_HBM, "207001"),
    "streams are taken between gate and probe": (ALL_STREAMS, "207008"),
}


@injects(*TAKEN)
@pytest.mark.parametrize(("code", "reason"), TAKEN.values(), ids=TAKEN.keys())
def test_taken_between_gate_and_probe(code: str, reason: str, tmp_path: Path):
    with nothing_left(GROWING):
        parts = parts_with(tmp_path, shown(GROWING, tmp_path))
        with holding(range(4), code):
            state = parts.attempt()
        report = state.reports["probe"]
        assert report.verdict == "unknown"
        assert reason in report.reason
        assert parts.latch.why() is None
        assert parts.attempt().reports["probe"].verdict == "degraded"
        parts.store.close()


@injects("an NPU vanishes between gate and probe")
def test_npu_that_vanishes(tmp_path: Path):
    smaller = GROWING.replace("npus=4", "npus=2")
    script = shown(GROWING, tmp_path)
    with nothing_left(smaller):
        parts = parts_with(tmp_path, script, smaller, probe__devices="2,3")
        state = parts.attempt()
        report = state.reports["probe"]
        assert report.verdict == "unknown"
        assert "CANN sees 2 NPU(s) here" in report.reason
        assert state.totals.failures == {"start": 1}
        assert parts.latch.why() is None
        parts.store.close()
        again = Parts(tmp_path, smaller)
        assert again.attempt().reports["probe"].verdict == "degraded"
        again.store.close()


@injects("the wall clock is set while a probe runs")
@pytest.mark.parametrize("by", [YEAR, -YEAR])
def test_clock_set_while_a_probe_runs(by: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real, measured, set_by = time.time, Probe.run, [0.0]

    def run(probe: Probe) -> Report:
        set_by[0] = by
        return measured(probe)

    with nothing_left(GROWING):
        parts = Parts(tmp_path, GROWING)
        monkeypatch.setattr(time, "time", lambda: real() + set_by[0])
        monkeypatch.setattr(Probe, "run", run)
        assert parts.attempt().reports["probe"].verdict == "degraded"
        (row,) = parts.store.probes()
        assert 0 < row.took < 60
        monkeypatch.setattr(Probe, "run", measured)
        assert parts.attempt().totals.skips == {}, "no budget is used up by a clock"
        parts.store.close()


@injects("others hold all NPUs")
def test_busy(tmp_path: Path):
    with nothing_left(GROWING):
        parts = Parts(tmp_path, GROWING)
        with holding(range(4)):
            assert parts.attempt().totals.skips == {"busy": 1}
        assert parts.attempt().reports["probe"].verdict == "degraded"
        parts.store.close()


@injects("another daemon probes on this node")
def test_locked(tmp_path: Path):
    with nothing_left(GROWING):
        parts = Parts(tmp_path, GROWING)
        lock = acquire(tmp_path / "lock")
        assert parts.attempt().totals.skips == {"locked": 1}
        lock.release()
        assert parts.attempt().reports["probe"].verdict == "degraded"
        parts.store.close()


@injects("CANN is not for this driver, by the vendor's table")
def test_wrong_driver():
    facts = msgspec.structs.replace(FREE, cann="9.1.0", driver="25.0.7")
    decision = decide(Rules(unmanaged=True), facts)
    assert (decision.allowed, decision.reason) == (False, "driver_mismatch")
    right = decide(Rules(unmanaged=True), msgspec.structs.replace(facts, driver="25.5.1"))
    assert right.allowed


@injects("HBM is not given back after a probe")
def test_hbm_that_stays_taken(tmp_path: Path):
    leaking = (
        'n=$(cat "$0.n" 2>/dev/null || echo 0); echo $((n + 1)) >"$0.n"\n'
        'if [ "$n" = 0 ]; then exec $SMI info; fi\n'
        "$SMI info | sed 's/ 3145 / 9145 /'"
    )
    with nothing_left(GROWING):
        parts = parts_with(tmp_path, leaking, gate__settle="1s")
        state = parts.attempt()
        assert state.reports["probe"].verdict == "degraded"
        why = parts.latch.why() or ""
        assert "6000 MB of HBM more in use than before" in why
        exported, _ = Exposition(lambda: parts.board.view).scrape()
        assert b"\ncapture_canary_probing_latched 1.0\n" in exported
        assert str(tmp_path / "latch") in why
        assert [event.kind for event in parts.store.events()] == ["latch"]
        assert parts.attempt().totals.skips == {"latched": 1}
        parts.store.close()


@injects("the NPU fails in two probes in a row")
def test_device_errors(tmp_path: Path):
    with nothing_left(GROWING):
        parts = Parts(
            tmp_path, GROWING, fault="fail:aclrtSetDevice:1:507899", gate__device_errors="2"
        )
        parts.attempt()
        assert parts.latch.why() is None
        state = parts.attempt()
        assert "2 device errors in a row, the last: CANN returned 507899" in (
            parts.latch.why() or ""
        )
        assert (state.totals.runs, state.totals.failures) == (2, {"start": 2})
        parts.store.close()
        (tmp_path / "latch").unlink()
        again = Parts(tmp_path, GROWING)
        assert again.attempt().reports["probe"].verdict == "degraded"
        again.store.close()


@injects("a server starts HCCL in the middle of a probe")
def test_server_that_starts_in_the_middle(tmp_path: Path):
    with nothing_left(GROWING):
        parts = Parts(tmp_path, GROWING, fault="hang:aclmdlRICaptureEnd:2@1", probe__deadline="60s")
        attempt = threading.Thread(target=parts.attempt)
        attempt.start()
        until(lambda: len(strays()) == 3)
        server = Probe(
            ProbeSettings(devices=(2, 3), budget_seconds=60),
            base_environment(os.environ, GROWING),
            emulated=True,
            observe=lambda _: None,
        )
        assert server.run().verdict == "degraded"  # all its captures were made
        assert attempt.is_alive()
        parts.prober.cancel()
        attempt.join(60)
        assert not attempt.is_alive()
        parts.store.close()


def probes_of_a_day(schedule: Schedule, clock: Clock) -> int:
    """Let a day pass by the minute; return how often a probe was due."""
    count = 0
    for _ in range(24 * 60):
        clock.pass_time(60)
        if schedule.due():
            schedule.began()
            count += 1
    return count


@injects("the clock jumps ahead by a year")
def test_clock_ahead():
    clock = Clock()
    schedule = Schedule(SIX_HOURS, Memory(), clock)
    assert probes_of_a_day(schedule, clock) == 5  # the first at once
    clock.now += YEAR
    assert probes_of_a_day(schedule, clock) in {4, 5}


@injects("the clock jumps back by a year")
def test_clock_back():
    clock = Clock()
    schedule = Schedule(SIX_HOURS, Memory(), clock)
    assert probes_of_a_day(schedule, clock) == 5  # the first at once
    clock.now -= YEAR
    assert probes_of_a_day(schedule, clock) in {3, 4, 5}
    assert clock.now < START
