"""Attempts that break off: whatever fails, a further one is planned, and nothing says that a probe still runs."""

import os
from pathlib import Path
from typing import Any, NoReturn

import pytest

from capture_canary.config import Config, ConfigFile
from capture_canary.export.state import State
from capture_canary.gate.latch import Latch, LatchFile
from capture_canary.gate.release import Released
from capture_canary.lock import acquire
from capture_canary.probe.base import base_environment
from capture_canary.probe.cancel import Cancel
from capture_canary.schedule import Due, Plan, Schedule, SystemClock
from capture_canary.service import prober
from capture_canary.service.board import Board, View
from capture_canary.service.prober import Prober
from capture_canary.service.remembered import ScheduleMemory
from capture_canary.store import Store

EMULATE = "cann=8.5.0,soc=a3,npus=2"


class Parts:
    """A prober with what it writes to."""

    def __init__(self, folder: Path):
        settings = {"emulate": EMULATE, "state_dir": f"{folder}/s", "lock_file": f"{folder}/lock"}
        self.config: Config = ConfigFile(None, {}, settings).current.config
        self.store = Store(folder / "s")
        self.schedule = Schedule(Plan(3600, None, 0), ScheduleMemory(self.store), SystemClock())
        self.board = Board(View(state=State(version="1", emulated=True, stack={})))
        latch = Latch(LatchFile(folder / "latch"))
        base = base_environment(os.environ, EMULATE)
        self.prober = Prober(self.board, self.store, self.schedule, latch, base=base)

    def attempt(self) -> None:
        self.prober.attempt(self.config, Due("requested", 0.0))


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
