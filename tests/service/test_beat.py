"""The loop itself: what fails in it, and what interrupts it, must not end it."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

from capture_canary.config.reload import ConfigFile
from capture_canary.export.state import State
from capture_canary.schedule import Plan, Schedule, SystemClock
from capture_canary.service.board import Board, View
from capture_canary.service.daemon import Daemon
from capture_canary.service.prober import Prober
from capture_canary.service.remembered import ScheduleMemory
from capture_canary.store import Store

PATIENCE = 30


class NoProber:
    def learn_soc(self) -> None:
        pass

    def cancel(self) -> None:
        pass


class Once:
    """A watcher that does something in one look, and counts its looks."""

    def __init__(self, do: Callable[[], None], at: int = 1) -> None:
        self.looks = 0
        self._do = do
        self._at = at

    def poll(self) -> None:
        self.looks += 1
        if self.looks == self._at:
            self._do()


@pytest.fixture
def handlers() -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGALRM)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    sys.settrace(None)
    signal.alarm(0)
    for number, handler in before.items():
        signal.signal(number, handler)


def daemon(folder: Path, *watchers: Once) -> Daemon:
    store = Store(folder / "state")
    schedule = Schedule(Plan(3600.0, None, 0.0), ScheduleMemory(store), SystemClock())
    return Daemon(
        config=ConfigFile(None, {}, {"state_dir": str(folder)}),
        board=Board(View(state=State(version="1", emulated=False, stack={}))),
        store=store,
        schedule=schedule,
        prober=cast("Prober", NoProber()),
        asker=cast("Prober", NoProber()),
        watchers=[*watchers],
        node="n",
    )


@pytest.mark.parametrize("error", [RuntimeError("x"), OSError(28, "No space"), StopIteration()])
def test_a_step_that_fails_ends_nothing_and_is_said_once(
    tmp_path: Path, error: Exception, capsys: pytest.CaptureFixture[str], handlers: None
):
    del handlers

    class Failing(Once):
        def poll(self) -> None:
            super().poll()
            raise error

    failing, after = Failing(lambda: None), Once(lambda: None)
    one = daemon(tmp_path, failing, after, Once(lambda: signal.raise_signal(signal.SIGTERM), at=3))
    one.listen_to_signals()

    one.run()

    assert (3, 3) == (failing.looks, after.looks)
    assert 1 == capsys.readouterr().out.count("step_failed")


def test_signals_at_any_moment_are_heard(tmp_path: Path, handlers: None):
    """A handler that takes a lock which the interrupted line holds would never return."""
    del handlers
    last = Once(lambda: signal.raise_signal(signal.SIGTERM), at=3)
    one = daemon(tmp_path, last)
    one.listen_to_signals()

    def stuck(_number: int, _frame: FrameType | None) -> None:
        pytest.fail("a signal was not got over")

    def at_each_line(frame: FrameType, event: str, _arg: object) -> Any:
        ours = frame.f_globals.get("__name__") in (threading.__name__, "capture_canary.schedule")
        if ours and event == "line" and frame.f_code.co_name != "__init__":
            sys.settrace(None)
            for number in (signal.SIGHUP, signal.SIGUSR1):
                signal.raise_signal(number)
            sys.settrace(at_each_line)
        return at_each_line

    signal.signal(signal.SIGALRM, stuck)
    signal.alarm(PATIENCE)
    sys.settrace(at_each_line)
    one.run()
    sys.settrace(None)

    assert last.looks == 3
