"""What the report and the story are made from: one reading of the history."""

import sqlite3

import msgspec

from capture_canary.model import Stack
from capture_canary.store import Change, Event, Probe, Skip, Stacks, queries


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """The newest part of a history; every list newest first."""

    probes: list[Probe]
    latest: Probe | None
    """The newest probe that has its series."""
    present: list[Change]
    open: list[Change]
    changes: list[Change]
    skips: list[Skip]
    stacks: list[Stacks]
    events: list[Event]

    @property
    def emulated(self) -> bool:
        """Whether any of it comes from an emulated CANN."""
        return any(probe.emulated for probe in self.probes)

    def stack(self, name: str) -> Stack | None:
        """Return the stack that a hash stands for."""
        return next((one.stacks[name] for one in self.stacks if name in one.stacks), None)

    def newest(self, change: Change) -> Probe | None:
        """Return the newest probe of the stack and evidence that a verdict is about."""
        wanted = (change.stack, change.evidence)
        return next((one for one in self.probes if (one.stack, one.evidence) == wanted), None)


def read(connection: sqlite3.Connection, *, since: float, limit: int, whole: bool = True) -> Past:
    """Read the history from `since` on, at most `limit` rows of a kind; `whole` with the newest series.

    Raises:
        schema.SQLITE_ERRORS: it can't be read.
    """
    probes = queries.probes(connection, limit=limit, since=since)
    return Past(
        probes=probes,
        latest=_latest(connection) if whole else None,
        present=queries.present(connection),
        open=queries.open_degradations(connection),
        changes=queries.changes(connection, limit=limit, since=since),
        skips=queries.skips(connection, limit=limit, since=since),
        stacks=queries.stacks(connection, limit=limit),
        events=queries.events(connection, limit=limit, since=since),
    )


def _latest(connection: sqlite3.Connection) -> Probe | None:
    newest = queries.probes(connection, limit=20, whole=True)
    return next((one for one in newest if one.report and one.report.series), None)
