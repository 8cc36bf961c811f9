"""The loop: what is due is done, what came is remembered, the settings are reread; until a signal ends it.

A probe runs in a thread of its own, so that the loop keeps its beat and a signal is heard at once.
"""

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

from capture_canary import __version__
from capture_canary.config.model import Config
from capture_canary.config.reload import ConfigFile
from capture_canary.logging import get_logger
from capture_canary.schedule import Due, Schedule
from capture_canary.service.board import Board
from capture_canary.service.prober import Prober
from capture_canary.service.settings import plan_of, probes
from capture_canary.store import Store

BEAT = 0.5
"""Seconds from one look at everything to the next."""
LATE = 60.0
"""Seconds without a beat after which /healthz says so: no step of the loop waits that long."""
UPKEEP = 3600.0


class Watcher(Protocol):
    """Something looked at in each beat: trace files, log files."""

    def poll(self) -> None:
        """Look once, briefly; put what is new on the board."""


class Attempts(Protocol):
    """Probes, on NPUs of our own or in a Job."""

    def attempt(self, config: Config, due: Due) -> None:
        """Probe if nothing speaks against it; remember what came of it."""

    def cancel(self) -> None:
        """Have an attempt under way end soon, and none begin again."""


class Daemon:
    """Runs until it is told to stop."""

    def __init__(
        self,
        *,
        config: ConfigFile,
        board: Board,
        store: Store,
        schedule: Schedule,
        prober: Prober,
        asker: Attempts,
        watchers: list[Watcher],
        node: str,
    ) -> None:
        """Bind the parts; nothing runs yet."""
        self._config = config
        self._board = board
        self._store = store
        self._schedule = schedule
        self._prober = prober
        self._asker = asker
        self._watchers = watchers
        self._node = node
        self._stopping = False
        self._heard: set[int] = set()
        self._wake_read, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._failing: dict[str, str] = {}
        self._probe: threading.Thread | None = None
        self._upkeep_at = time.monotonic() + UPKEEP
        self._log: Any = get_logger("daemon")

    def listen_to_signals(self) -> None:
        """SIGTERM and SIGINT stop, SIGHUP rereads the settings, SIGUSR1 probes now."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        # Nothing here may take a lock: what the signal interrupted may hold it, as threading.Event does for a moment.
        self._heard.add(number)
        if number in (signal.SIGTERM, signal.SIGINT):
            self._stopping = True
        with contextlib.suppress(BlockingIOError):  # full: it wakes anyhow
            os.write(self._wake, b"x")

    def stop(self) -> None:
        """Have `run` return soon, a probe under way ended and its NPUs released."""
        self._on_signal(signal.SIGTERM, None)

    def run(self) -> None:
        """Beat until stopped."""
        self._log.info("started", node=self._node)
        # npu-smi may take its time, and may hang in the driver: neither the loop nor the first scrape waits for it.
        threading.Thread(target=self._prober.learn_soc, name="soc", daemon=True).start()
        self._store.add_event("start", at=time.time(), detail=__version__)
        while not self._stopping:
            self._beat()
            self._wait()
        self._prober.cancel()
        self._asker.cancel()
        if self._probe:
            self._probe.join()
        self._store.close()
        self._log.info("stopped")

    def _wait(self) -> None:
        """Wait for the next beat, or for a signal."""
        if select.select([self._wake_read], [], [], BEAT)[0]:
            os.read(self._wake_read, select.PIPE_BUF)
        heard = set(self._heard)
        self._heard -= heard
        if signal.SIGHUP in heard:
            self._config.request()
        if signal.SIGUSR1 in heard:
            self._schedule.request()

    def _beat(self) -> None:
        self._board.beat()
        self._step("settings", self._reload)
        self._step("probe", self._probe_if_due)
        for watcher in self._watchers:
            self._step(type(watcher).__name__, watcher.poll)
        self._step("history", self._upkeep)

    def _step(self, name: str, do: Callable[[], None]) -> None:
        """Do a step; a fault in one must not end the others, is said once, and told apart from the next."""
        if self._stopping:
            return
        try:
            do()
        except Exception as error:  # noqa: BLE001  # whatever it is, this runs for months
            said = f"{type(error).__name__}: {error}"
            if self._failing.get(name) != said:
                self._failing[name] = said
                self._log.exception("step_failed", step=name)
        else:
            self._failing.pop(name, None)

    def _upkeep(self) -> None:
        self._board.change(history_problem=self._store.problem)
        if time.monotonic() >= self._upkeep_at:
            self._upkeep_at = time.monotonic() + UPKEEP
            self._store.maintain(now=time.time())

    def _reload(self) -> None:
        reload = self._config.poll()
        if reload is None:
            return
        config = self._config.current.config
        self._board.state(lambda state: state.with_config(ok=reload.error is None))
        if reload.error:
            self._log.error("config_kept", why=str(reload.error))
            return
        self._schedule.plan = plan_of(config, self._node)
        self._board.change(paused=config.paused, mode=config.mode)
        self._log.info("config_reloaded", changed=reload.changed, after_restart=reload.restart)

    def _probe_if_due(self) -> None:
        config = self._config.current.config
        if not probes(config):
            return
        running = self._probe is not None and self._probe.is_alive()
        self._board.change(next_probe=self._schedule.next_at())
        due = None if running else self._schedule.due()
        if due is None:
            return
        # Not a daemon thread: the end of the process waits until the NPUs are released.
        by: Attempts = self._asker if config.mode == "job" else self._prober
        self._probe = threading.Thread(target=by.attempt, args=(config, due), name="probe")
        self._probe.start()
