"""One attempt to probe: ask the gate, probe, see that nothing is left, remember."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from capture_canary.config.model import Config
from capture_canary.export.state import FailureReason
from capture_canary.gate.collect import look
from capture_canary.gate.decide import decide
from capture_canary.gate.latch import Latch
from capture_canary.gate.model import Decision, Snapshot
from capture_canary.gate.release import released, wait_released
from capture_canary.gate.watch import Watch
from capture_canary.lock import LockBusyError, LockUnusableError, ProbeLock, acquire
from capture_canary.logging import get_logger
from capture_canary.model import Report
from capture_canary.probe.cancel import Cancel
from capture_canary.probe.measure import ArmStarted, Event, Observer, Probe
from capture_canary.probe.messages import Captured, Started
from capture_canary.schedule import Due, Schedule
from capture_canary.service.board import Board
from capture_canary.service.outcome import remember
from capture_canary.service.reports import evidence
from capture_canary.service.settings import (
    exporter_of,
    gate_rules,
    probe_settings,
    runtime_numbers,
)
from capture_canary.service.suspicion import suspected
from capture_canary.stack import npu_smi
from capture_canary.stack.cann import read_stack
from capture_canary.stack.exposure import family
from capture_canary.stack.identity import completed, stack_id
from capture_canary.stack.npu_smi import NpuSmi
from capture_canary.stack.npus import Npus, NpusUnknownError
from capture_canary.stack.soc import soc_of
from capture_canary.store import Store

DAY = 86_400.0
DEVICE_ERRORS = 500_000
"""Return codes from here on are the device's own (acl/error_codes/rt_error_codes.h: 507xxx)."""


class Attempt(NamedTuple):
    """A probe that the gate allowed, with what that rests on."""

    config: Config
    due: Due
    facts: Snapshot
    before: Npus
    decision: Decision

    @property
    def same_pids(self) -> bool:
        """Whether npu-smi counts processes as we do."""
        facts = self.facts
        everyone = facts.holders is not None and facts.holders.complete  # hostPID
        return facts.emulated or facts.place == "host" or everyone


class Prober:
    """Attempts probes, one at a time, in whichever thread calls."""

    def __init__(
        self,
        board: Board,
        store: Store,
        schedule: Schedule,
        latch: Latch,
        *,
        base: Mapping[str, str],
    ) -> None:
        """Bind to what an attempt reads and writes; `base` is the environment that names the CANN."""
        self._base = base
        self._npu_smi = NpuSmi(npu_smi.command(base), env=base)
        self._board = board
        self._store = store
        self._schedule = schedule
        self._latch = latch
        self._cancel: Cancel | None = None
        self._stop = threading.Event()
        self._log: Any = get_logger("probe")

    def cancel(self) -> None:
        """Have a probe under way end soon, its NPUs released; and none begin again."""
        self._stop.set()
        if cancel := self._cancel:
            cancel.request()

    def learn_soc(self) -> None:
        """Put the SoC on the board, as far as it can be known without opening an NPU."""
        with contextlib.suppress(NpusUnknownError):
            fact = soc_of(self._npu_smi.read())
            if fact.value:
                self._board.state(lambda state: state.with_stack({"soc": fact, **state.stack}))

    def attempt(self, config: Config, due: Due) -> None:
        """Probe if the gate lets us; remember what came of it. Whatever fails, the next one is planned."""
        try:
            with _locked(config.lock_file) as (lock, why):
                self._attempt(config, due, lock, why)
        except Exception:  # noqa: BLE001  # a fault here must not be met again in each beat
            self._schedule.refused(float(config.gate.retry))
            self._board.state(lambda state: state.after_failure("other"))
            self._log.exception("probe_failed")

    def _attempt(self, config: Config, due: Due, lock: ProbeLock | None, why: str | None) -> None:
        rules = gate_rules(config)
        facts = self._facts(config, why)
        facts = look(facts, rules, self._npu_smi.read, exporter_of(config))
        if facts.emulated:  # how busy this host is says nothing of a node that is not there
            facts = msgspec.structs.replace(facts, load=None)
        decision = decide(rules, facts)
        self._board.change(decision=decision, decided_at=time.time(), latched=facts.latched)
        if lock is None or facts.npus is None or not decision.allowed:
            self._skip(config, decision)
        else:
            self._schedule.began()
            self._probe(Attempt(config, due, facts, facts.npus, decision), lock)

    def _facts(self, config: Config, locked: str | None) -> Snapshot:
        """What the daemon knows of itself."""
        home = self._base.get("ASCEND_HOME_PATH")
        stack = read_stack(Path(home)) if home else {}
        last = self._board.view.state.last_run
        soc = self._board.view.state.stack.get("soc")
        return Snapshot(
            emulated=config.emulate is not None,
            paused="paused in the configuration" if config.paused else None,
            latched=self._latch.why(),
            locked=locked,
            spent_device_seconds=self._spent(config),
            cann=stack["cann"].value if "cann" in stack else None,
            driver=stack["driver"].value if "driver" in stack else None,
            soc=family(soc.value) if soc else None,
            last_probe_age=None if last is None else max(0.0, time.time() - last),
        )

    def _spent(self, config: Config) -> float:
        # Not from the future: a clock that was set back must not have used up the budget for as long.
        now = time.time()
        return self._store.seconds_spent(since=now - DAY, until=now) * config.probe.ranks

    def _skip(self, config: Config, decision: Decision) -> None:
        reason = decision.reason or "locked"
        self._schedule.refused(float(config.gate.retry))
        self._board.state(lambda state: state.after_skip(reason))
        self._store.add_skip(reason, at=time.time(), detail=decision.sentence)
        self._log.info("probe_skipped", reason=reason, why=decision.sentence)

    def _probe(self, attempt: Attempt, lock: ProbeLock) -> None:
        config, devices = attempt.config, attempt.decision.devices
        numbers = runtime_numbers(devices, attempt.facts.nodes)
        begun = time.monotonic()  # the wall clock may be set meanwhile
        with self._cancellable() as cancel, self._watching(attempt, cancel) as observe:
            probe = Probe(
                probe_settings(config, numbers, self._base, self._board.view.state.servers.servers),
                self._base,
                emulated=attempt.facts.emulated,
                observe=observe,
                cancel=cancel,
                inherit=(lock.fd,),
                earlier=lambda stack: suspected(self._store, stack_id(stack), now=time.time()),
            )
            report = self._of_this_stack(probe.run())
        try:
            # First of all remember: the look at what is left may take half a minute, and be ended.
            if not self._stop.is_set():
                took = time.monotonic() - begun
                kind: FailureReason | None = "yielded" if cancel.requested else probe.failure
                remember(
                    self._board, self._store, report, took=took, devices=len(devices), failure=kind
                )
                self._log.info(
                    "probe_ended", why=attempt.due.why, took=round(took, 3), **evidence(report)
                )
        finally:
            self._check_released(attempt, probe)

    def _of_this_stack(self, report: Report) -> Report:
        """Have what failed too early to learn its stack be of the one that runs here: it ends no verdict on that."""
        if report.verdict != "unknown":
            return report
        stack = completed(report.stack, self._board.view.state.stack)
        return msgspec.structs.replace(report, stack=stack)

    @contextmanager
    def _cancellable(self) -> Iterator[Cancel]:
        """Show that a probe runs, and let it be cancelled meanwhile."""
        cancel = Cancel()
        try:
            self._cancel = cancel
            if self._stop.is_set():
                cancel.request()
            self._board.change(running_since=time.time())
            yield cancel
        finally:
            self._cancel = None
            self._board.change(running_since=None)
            cancel.close()

    @contextmanager
    def _watching(self, attempt: Attempt, cancel: Cancel) -> Iterator[Observer]:
        """Have the probe give way to who comes onto its chips; yields what is to hear of its events."""

        def give_way(who: str) -> None:
            self._log.info("probe_gives_way", to=who)
            cancel.request(f"it gave way: {who}")

        watch = Watch(
            self._npu_smi.read,
            attempt.decision.devices,
            same_pids=attempt.same_pids,
            tell=give_way,
        )

        def observe(event: Event) -> None:
            if isinstance(event, ArmStarted):
                watch.look()  # before each arm opens the NPUs anew
            elif isinstance(event, Started):
                watch.soon()
            elif isinstance(event, Captured):
                self._log.debug("captured", rank=event.rank, order=event.capture.order)

        with watch.running():
            yield observe

    def _check_released(self, attempt: Attempt, probe: Probe) -> None:
        """Latch probing off where the probe left something, or met a device error once too often."""
        now = time.time()
        if probe.code is not None and probe.code >= DEVICE_ERRORS:
            limit = attempt.config.gate.device_errors
            self._latch.device_error(f"CANN returned {probe.code}", now, limit=limit)
        else:
            self._latch.success()
        if probe.leftover:
            self._latch.trip(f"processes {probe.leftover} of a probe could not be ended", now)
        devices, before = attempt.decision.devices, attempt.before
        back = wait_released(
            lambda after: released(before, after, devices, probe.pids, same_pids=attempt.same_pids),
            self._npu_smi.read,
            self._stop,
            settle=float(attempt.config.gate.settle),
        )
        if not back.ok and not self._stop.is_set():
            self._latch.trip(f"after a probe: {back.sentence}", now)
        if why := self._latch.why():
            self._board.change(latched=why)
            self._store.add_event("latch", at=now, detail=why)
            self._log.error("probing_latched_off", why=why)


@contextmanager
def _locked(path: Path) -> Iterator[tuple[ProbeLock | None, str | None]]:
    """Hold the node's lock, or know why not."""
    try:
        lock = acquire(path)
    except (LockBusyError, LockUnusableError) as error:
        yield None, str(error)
        return
    try:
        yield lock, None
    finally:
        lock.release()
