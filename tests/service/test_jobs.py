"""Attempts to probe in a Job: what is asked before, and what is made of answers and of silence."""

import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.builders import make_report
from tests.running import until

from capture_canary.config import Config, ConfigFile
from capture_canary.export.state import State
from capture_canary.gate.latch import Latch, LatchFile
from capture_canary.kubernetes.exchange import Answer, Exchange, Life, Request, Result, Standing
from capture_canary.kubernetes.result import packed
from capture_canary.schedule import Due, Plan, Schedule, SystemClock
from capture_canary.service import jobs, told
from capture_canary.service.board import Board, View
from capture_canary.service.jobs import JobAsker
from capture_canary.service.remembered import ScheduleMemory
from capture_canary.store import Store


class Parts:
    """An asker with what it writes to."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.store = Store(folder / "s")
        self.schedule = Schedule(Plan(3600, None, 0), ScheduleMemory(self.store), SystemClock())
        self.board = Board(View(state=State(version="1", emulated=True, stack={})))
        self.exchange = Exchange(folder / "s" / "kubernetes")
        self.latch = Latch(LatchFile(folder / "latch"))
        self.asker = JobAsker(self.board, self.store, self.schedule, self.latch, self.exchange)

    def config(self, **settings: str) -> Config:
        return ConfigFile(
            None, {}, {"mode": "job", "state_dir": str(self.folder / "s"), **settings}
        ).current.config

    def attempt(self, **settings: str) -> State:
        self.asker.attempt(self.config(**settings), Due("requested", 0.0))
        return self.board.view.state

    def attempt_answered(self, **answer: Any) -> State:
        """Attempt, with a `k8s` that answers so."""

        def serve() -> None:
            request = until(lambda: self.exchange.read(Request))
            assert request
            self.exchange.write(Answer(id=request.id, **answer))

        thread = threading.Thread(target=serve)
        thread.start()
        state = self.attempt()
        thread.join()
        return state


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parts:
    monkeypatch.setattr(jobs, "LOOK", 0.01)
    return Parts(tmp_path)


def test_a_result_is_remembered_as_a_probe_of_our_own(parts: Parts):
    result = msgspec.json.decode(packed(make_report(), took=2.0, devices=2), type=Result)
    state = parts.attempt_answered(result=result)
    assert "degraded" == state.reports["probe"].verdict
    assert (1, 4.0) == (state.totals.runs, state.totals.device_seconds)
    assert ["degraded"] == [one.verdict for one in parts.store.probes()]
    assert parts.schedule.probed
    assert parts.exchange.read(Request) is None
    assert parts.board.view.running_since is None


@pytest.mark.parametrize("reason", ["no_npus", "fleet_limit", "kubernetes"])
def test_a_refusal_is_a_skip_and_tried_again(parts: Parts, reason: str):
    state = parts.attempt_answered(refusal=reason, detail="because")
    assert {reason: 1} == state.totals.skips
    assert not parts.schedule.probed
    decision = parts.board.view.decision
    assert decision
    assert "because" in decision.sentence


def test_a_failure_is_counted_and_not_tried_again_at_once(parts: Parts):
    state = parts.attempt_answered(failure="child", detail="OOMKilled")
    assert {"child": 1} == state.totals.failures
    assert parts.schedule.probed


@pytest.mark.parametrize(
    ("settings", "reason"),
    [({"paused": "true"}, "paused"), ({"gate.budget": "4m", "probe.ranks": "2"}, "budget")],
)
def test_what_speaks_against_it_asks_nobody(parts: Parts, settings: dict[str, str], reason: str):
    parts.store.add_probe(make_report(), at=time.time(), stack="a", took=60.0)
    state = parts.attempt(**settings)
    assert {reason: 1} == state.totals.skips
    assert not (parts.folder / "s/kubernetes").exists()


def test_a_latched_node_asks_nobody(parts: Parts):
    parts.latch.trip("something was left", time.time())
    assert {"latched": 1} == parts.attempt().totals.skips


def test_a_silent_k8s_is_a_skip(parts: Parts, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jobs, "SILENCE", 0.1)
    assert {"kubernetes": 1} == parts.attempt().totals.skips


def test_a_sign_of_life_from_the_future_is_old_all_the_same(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs, "SILENCE", 0.1)
    parts.exchange.write(Life(at=time.time() + jobs.DAY))  # then the clock was set back
    assert {"kubernetes": 1} == parts.attempt().totals.skips


def test_a_k8s_that_gives_signs_of_life_is_waited_for(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jobs, "SILENCE", 0.5)
    thread = threading.Thread(target=parts.attempt)
    thread.start()
    request = until(lambda: parts.exchange.read(Request))
    assert request
    for beat in range(50):
        parts.exchange.write(Life(at=-float(beat)))
        time.sleep(0.02)
    parts.exchange.write(Answer(id=request.id, refusal="no_npus"))
    thread.join()
    assert {"no_npus": 1} == parts.board.view.state.totals.skips


def test_an_answer_to_something_else_is_none(parts: Parts, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(jobs, "SILENCE", 0.3)
    parts.exchange.write(Answer(id="of before", refusal="no_npus"))
    assert {"kubernetes": 1} == parts.attempt().totals.skips


def test_a_folder_that_cannot_be_written_is_a_skip(parts: Parts):
    (parts.folder / "s/kubernetes").write_text("")
    assert {"kubernetes": 1} == parts.attempt().totals.skips


def test_the_end_of_the_daemon_ends_the_waiting(parts: Parts):
    thread = threading.Thread(target=parts.attempt)
    thread.start()
    until(lambda: parts.exchange.read(Request))
    parts.asker.cancel()
    thread.join(20)
    assert not thread.is_alive()
    assert {} == parts.board.view.state.totals.skips


def watch(parts: Parts, monkeypatch: pytest.MonkeyPatch, **settings: str) -> told.KubernetesWatch:
    monkeypatch.setattr(told, "EVERY", 0.0)
    return told.KubernetesWatch(
        parts.folder / "s",
        parts.board,
        lambda: parts.schedule.plan,
        lambda: parts.config(**settings),
    )


def test_nothing_is_told_where_no_k8s_runs(parts: Parts, monkeypatch: pytest.MonkeyPatch):
    watch(parts, monkeypatch).poll()
    assert not (parts.folder / "s/kubernetes").exists()


def test_what_stands_is_told_and_signs_of_life_are_taken(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
):
    parts.exchange.write(Life(at=5.0, off={"events": "403"}, failures={"events": 1}))
    one = watch(parts, monkeypatch)
    one.poll()
    first = parts.exchange.read(Standing)
    assert first
    assert ("unknown", None) == (first.verdict, first.last_success)
    assert first.stale_after
    assert first.stale_after > time.time()
    result = msgspec.json.decode(packed(make_report(), took=2.0, devices=2), type=Result)
    parts.attempt_answered(result=result)
    one.poll()
    second = parts.exchange.read(Standing)
    assert second
    assert "degraded" == second.verdict
    assert second.last_success
    life = parts.board.view.kubernetes
    assert life
    assert {"events": "403"} == life.off


def test_a_paused_node_goes_not_stale(parts: Parts, monkeypatch: pytest.MonkeyPatch):
    parts.exchange.write(Life(at=5.0))
    watch(parts, monkeypatch, paused="true").poll()
    standing = parts.exchange.read(Standing)
    assert standing
    assert standing.stale_after is None
