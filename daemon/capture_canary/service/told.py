"""Tells `capture-canary k8s` what this node stands at, and takes over its signs of life; where it runs beside us."""

import time
from collections.abc import Callable
from pathlib import Path

from capture_canary.config.model import Config
from capture_canary.export.state import State
from capture_canary.kubernetes.exchange import FOLDER, Exchange, Life, Standing
from capture_canary.model import VerdictName
from capture_canary.schedule import Plan
from capture_canary.service.board import Board
from capture_canary.service.settings import probes

EVERY = 5.0
"""Seconds between two looks."""
_WORST: tuple[VerdictName, ...] = ("degraded", "unknown", "mitigated", "healthy")


class KubernetesWatch:
    """Looks at the folder, if there is one: the chart mounts it where `k8s` runs."""

    def __init__(
        self, state_dir: Path, board: Board, plan: Callable[[], Plan], config: Callable[[], Config]
    ) -> None:
        """Bind to what is told; `plan` and `config` are asked each time."""
        self._folder = state_dir / FOLDER
        self._exchange = Exchange(self._folder)
        self._board = board
        self._plan = plan
        self._config = config
        self._since = time.time()
        self._next = 0.0
        self._told: Standing | None = None

    def poll(self) -> None:
        """Look, if it is time."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + EVERY
        if not self._folder.is_dir():
            return
        life = self._exchange.read(Life)
        if life != self._board.view.kubernetes:
            self._board.change(kubernetes=life)
        standing = standing_of(self._board.view.state, self._stale_after())
        if standing != self._told:
            self._exchange.write(standing)
            self._told = standing

    def _stale_after(self) -> float | None:
        """When two more probes should have come to a verdict; None where none are planned."""
        config = self._config()
        if not probes(config) or config.paused:
            return None
        plan = self._plan()
        begun = self._board.view.state.last_success or self._since
        return plan.after(plan.after(begun)) + float(config.probe.deadline)


def standing_of(state: State, stale_after: float | None) -> Standing:
    """Return what is told of a state: the worst verdict in force, as on the page."""
    worst = min(
        state.reports.values(), key=lambda report: _WORST.index(report.verdict), default=None
    )
    return Standing(
        verdict=worst.verdict if worst else "unknown",
        reason=worst.reason if worst else "nothing was judged yet",
        emulated=state.emulated,
        probes=stale_after is not None,
        last_success=state.last_success,
        stale_after=stale_after,
    )
