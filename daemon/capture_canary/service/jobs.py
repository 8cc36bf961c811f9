"""`job` mode: one attempt asks `capture-canary k8s` for a Job with NPUs, waits for what came of it, remembers it."""

import threading
import time
import uuid
from typing import Any, Final

from capture_canary.config.model import Config
from capture_canary.gate.latch import Latch
from capture_canary.gate.model import Check, Decision, Reason
from capture_canary.kubernetes.exchange import BEAT, Answer, Exchange, Life, Request
from capture_canary.logging import get_logger
from capture_canary.schedule import Due, Schedule
from capture_canary.service.board import Board
from capture_canary.service.outcome import remember
from capture_canary.service.reports import evidence
from capture_canary.store import Store

LOOK: Final = 1.0
"""Seconds between two looks for the answer."""
SILENCE: Final = 8 * BEAT
"""Seconds without a sign of life of `k8s` until it is taken for gone."""
DAY: Final = 86_400.0
LONGEST: Final = DAY + 3600.0
"""Seconds that an answer may take: a Job may wait for NPUs for a day."""


class JobAsker:
    """Attempts probes in Jobs, one at a time, in whichever thread calls."""

    def __init__(
        self, board: Board, store: Store, schedule: Schedule, latch: Latch, exchange: Exchange
    ) -> None:
        """Bind to what an attempt reads and writes."""
        self._board = board
        self._store = store
        self._schedule = schedule
        self._latch = latch
        self._exchange = exchange
        self._stop = threading.Event()
        self._log: Any = get_logger("probe")

    def cancel(self) -> None:
        """Wait for no answer any more. A Job under way goes on: the next start of the daemon takes it over."""
        self._stop.set()

    def attempt(self, config: Config, due: Due) -> None:
        """Ask for a probe if nothing speaks against it; whatever fails, the next one is planned."""
        try:
            refusal = self._refusal(config)
            if refusal is None:
                self._request(config, due)
            else:
                self._skip(config, *refusal)
        except Exception:  # noqa: BLE001  # a fault here must not be met again in each beat
            self._schedule.refused(float(config.gate.retry))
            self._board.state(lambda state: state.after_failure("other"))
            self._log.exception("probe_failed")

    def _request(self, config: Config, due: Due) -> None:
        request = Request(id=uuid.uuid4().hex, at=time.time())
        self._board.change(running_since=request.at)
        try:
            self._took(config, due, self._ask(request))
        except OSError as error:
            self._skip(config, "kubernetes", f"the folder shared with `k8s`: {error}")
        finally:
            self._exchange.remove(Request)
            self._board.change(running_since=None)

    def _refusal(self, config: Config) -> tuple[Reason, str] | None:
        """Why not; whether NPUs are free is the scheduler's to say."""
        if config.paused:
            return "paused", "paused in the configuration"
        if latched := self._latch.why():
            return "latched", latched
        ranks = config.probe.ranks
        now = time.time()
        spent = self._store.seconds_spent(since=now - DAY, until=now) * ranks
        after = spent + ranks * float(config.probe.deadline)
        if after > float(config.gate.budget):
            return "budget", f"{spent:.0f} of {config.gate.budget} device-seconds spent in 24 h"
        return None

    def _ask(self, request: Request) -> Answer | None:
        """Return the answer; None where the daemon is to stop."""
        self._exchange.write(request)
        # By the monotonic clock and by what changes: the wall clock may be set meanwhile.
        asked = heard = time.monotonic()
        life = self._exchange.read(Life)
        while not self._stop.wait(LOOK):
            answer = self._exchange.read(Answer)
            if answer is not None and answer.id == request.id:
                return answer
            now, last, life = time.monotonic(), life, self._exchange.read(Life)
            if life != last:
                heard = now
            if now - asked > LONGEST or now - heard > SILENCE:
                why = "`capture-canary k8s` does not answer"
                return Answer(id=request.id, refusal="kubernetes", detail=why)
        return None

    def _took(self, config: Config, due: Due, answer: Answer | None) -> None:
        if answer is None:
            return
        if answer.refusal is not None:
            self._skip(config, answer.refusal, answer.detail)
            return
        self._schedule.began()
        if answer.result is None:
            reason = answer.failure or "other"
            self._board.state(lambda state: state.after_failure(reason))
            self._store.add_event("job", at=time.time(), detail=answer.detail[:300])
            self._log.error("job_failed", reason=reason, why=answer.detail)
            return
        result = answer.result
        report, took = result.report, max(0.0, result.took)
        remember(self._board, self._store, report, took=took, devices=max(0, result.devices))
        self._log.info("probe_ended", why=due.why, took=round(took, 3), **evidence(report))

    def _skip(self, config: Config, reason: Reason, why: str) -> None:
        sentence = f"No probe now ({reason}): {why}."
        check = Check(name="job", ok=False, detail=why)
        decision = Decision(allowed=False, reason=reason, sentence=sentence, checks=(check,))
        self._board.change(decision=decision, decided_at=time.time(), latched=self._latch.why())
        self._schedule.refused(float(config.gate.retry))
        self._board.state(lambda state: state.after_skip(reason))
        self._store.add_skip(reason, at=time.time(), detail=sentence)
        self._log.info("probe_skipped", reason=reason, why=sentence)
