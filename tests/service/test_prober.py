"""Attempts that break off: whatever fails, a further one is planned, and nothing says that a probe still runs."""

import os
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.builders import make_report
from tests.service.parts import Parts

from capture_canary.gate.release import Released
from capture_canary.lock import acquire
from capture_canary.probe import measure
from capture_canary.probe.base import base_environment
from capture_canary.probe.cancel import Cancel
from capture_canary.service import prober
from capture_canary.stack.identity import stack_id


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        *("gate_rules", "read_stack", "look", "decide", "runtime_numbers", "Cancel", "Probe"),
        *("probe_settings", "remember", "wait_released"),
    ],
)
def test_a_fault_at_any_step_ends_one_attempt_only(
    parts: Parts, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def fail(*_args: Any, **_named: Any) -> NoReturn:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(prober, name, fail)
    parts.schedule.request()

    parts.attempt()

    view = parts.board.view
    assert parts.schedule.due() is None
    assert view.running_since is None
    assert view.state.totals.failures["other"] == 1
    acquire(tmp_path / "lock").release()


def test_what_was_found_is_kept_before_anything_is_waited_for(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
):
    seen: list[str] = []

    def look(*_args: Any, **_named: Any) -> Released:
        seen.extend(row.verdict for row in parts.store.probes())
        parts.prober.cancel()
        return Released(ok=True, sentence="")

    monkeypatch.setattr(prober, "wait_released", look)

    parts.attempt()

    assert ["degraded"] == seen
    assert ["degraded"] == [row.verdict for row in parts.store.probes()]


YEAR = 365 * 86_400.0


def test_a_clock_that_was_set_back_does_not_use_up_the_budget(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
):
    real = time.time
    for hours in range(0, 1000, 6):
        parts.store.add_probe(make_report("healthy"), at=real() - 3600 * hours, stack="a", took=5.0)
    monkeypatch.setattr(time, "time", lambda: real() - YEAR)
    assert parts.attempt().totals.skips == {}


def test_asking_too_late_writes_to_nobody():
    cancel = Cancel()
    cancel.close()
    others = os.pipe()

    cancel.request()

    assert not cancel.requested
    os.set_blocking(others[0], False)
    with pytest.raises(BlockingIOError):
        os.read(others[0], 1)
    for fd in others:
        os.close(fd)


@pytest.mark.parametrize(
    "fault", ["fail:aclInit:1:500000", "die:aclrtSetDevice:1", "hang:aclInit:1", "no descriptor"]
)
def test_a_probe_that_fails_before_it_knows_its_stack_clears_no_verdict(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
):
    parts = Parts(tmp_path, probe__deadline="4s")
    parts.attempt()
    good = parts.attempt()  # which settles it
    settled = good.settled["probe"]
    assert settled.verdict == "degraded"
    if fault == "no descriptor":
        monkeypatch.setattr(measure, "read_stack", lambda _home: {})
        fault = "die:aclInit:1"
    parts.base["CAPTURE_CANARY_EMULATE_FAULT"] = fault

    state = parts.attempt()

    assert state.reports["probe"].verdict == "unknown"
    assert state.settled["probe"] == settled
    assert stack_id(state.stack) == settled.stack
    assert [(one.stack, one.verdict) for one in parts.store.present()] == [
        (settled.stack, "unknown")
    ]
    parts.store.close()


def test_a_probe_that_fails_on_another_cann_is_of_another_stack(tmp_path: Path):
    parts = Parts(tmp_path)
    parts.attempt()
    good = parts.attempt()
    parts.base.clear()
    environ = {**os.environ, "CAPTURE_CANARY_EMULATE_FAULT": "fail:aclInit:1:500000"}
    parts.base.update(base_environment(environ, "cann=9.1.0,soc=a3,npus=2"))

    state = parts.attempt()

    assert state.settled["probe"].verdict == "unknown"
    assert state.settled["probe"].stack != good.settled["probe"].stack
    assert state.stack["cann"].value == "9.1.0"
    parts.store.close()
