"""What followed server logs say, put on the board: a suspicion at most."""

import time
from typing import Any

from capture_canary.logging import get_logger
from capture_canary.logs.evidence import LogEvidence
from capture_canary.logs.follow import Follower
from capture_canary.logs.parse import HINTS, events
from capture_canary.model import Growth, Judgement, Report
from capture_canary.service.board import Board
from capture_canary.trend.report import report_of

EVERY = 5.0


class LogWatch:
    """Follows the logs that the configuration names."""

    def __init__(self, globs: tuple[str, ...], board: Board) -> None:
        """Nothing is opened yet."""
        self._follower = Follower(globs, hints=HINTS)
        self._evidence = LogEvidence()
        self._board = board
        self._next = 0.0
        self._said: dict[str, str] = {}
        self._log: Any = get_logger("logs")

    def poll(self) -> None:
        """Read what is new, if it is time."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY
        for segment in self._follower.poll():
            self._evidence.add(segment.path, events(segment.text))
        judged = {path: file.judge() for path, file in self._evidence.files().items()}
        if judged == self._board.view.logs:
            return
        self._board.change(logs=judged)
        suspects = [path for path, judgement in judged.items() if judgement.cause == "suspect"]
        for path in suspects:
            if self._said.get(path) != judged[path].reason:
                self._said[path] = judged[path].reason
                self._log.warning("captures_slow_down", file=path, why=judged[path].reason)
        self._publish(judged[suspects[0]] if suspects else next(iter(judged.values())))

    def _publish(self, judgement: Judgement) -> None:
        state = self._board.view.state
        report: Report = report_of(
            Judgement(
                verdict=judgement.verdict,
                cause=judgement.cause,
                reason=judgement.reason,
                impact=None,
                matches_law=None,
                growth=Growth(copies=None, seconds=None, series=None),
            ),
            emulated=state.emulated,
            mode=None,
            mode_source="not known from logs",
            stack=state.stack,
            control=None,
            series=[],
        )
        self._board.state(lambda old: old.after(report, evidence="log", ended=time.time()))
