"""What outlives a restart: the last reports and the schedule, from the history."""

from typing import TypeVar

import msgspec

from capture_canary.export.state import State, with_settled
from capture_canary.store import Store

T = TypeVar("T")
_LOOK_BACK = 50


class ScheduleMemory:
    """The schedule's memory, kept in the history."""

    def __init__(self, store: Store) -> None:
        """Keep it in this store."""
        self._store = store

    @property
    def durable(self) -> bool:
        """Whether the history is on disk."""
        return self._store.problem is None

    def get(self, key: str, kind: type[T]) -> T | None:
        """Return what was set."""
        return self._store.load(key, kind)

    def set(self, key: str, value: msgspec.Struct) -> None:
        """Keep a value."""
        self._store.save(key, value)


def restore(state: State, store: Store) -> State:
    """Return the state with the last report of each kind of evidence, so that a restart resolves no alert.

    Reports of an emulated node are nothing to a real one, and the other way round.
    """
    reports = dict(state.reports)
    settled = dict(state.settled)
    last_run = last_success = last_seconds = None
    rows = store.probes(limit=_LOOK_BACK, whole=True)
    for row in reversed(rows):  # the oldest first, as they came
        if row.emulated == state.emulated and row.report is not None:
            settled = with_settled(settled, row.report, row.evidence)
    for row in rows:
        if row.emulated != state.emulated or row.report is None:
            continue
        reports.setdefault(row.evidence, row.report)
        if row.evidence == "probe" and last_run is None:
            last_run, last_seconds = row.at, row.took
        if row.evidence == "probe" and last_success is None and row.verdict != "unknown":
            last_success = row.at
    return msgspec.structs.replace(
        state,
        reports=reports,
        settled=settled,
        last_run=last_run,
        last_success=last_success,
        last_seconds=last_seconds,
    )
