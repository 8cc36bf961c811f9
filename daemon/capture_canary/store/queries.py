"""Reading the history: functions of a connection that raise what sqlite3 raises."""

import sqlite3
from typing import Any, TypeVar

from capture_canary.store import packing, rows, schema

T = TypeVar("T")

_GOOD = ("healthy", "mitigated")


def _table(
    connection: sqlite3.Connection,
    table: str,
    tail: str,
    values: tuple[object, ...],
    skip: str = "",
) -> list[dict[str, Any]]:
    names = ("id", *(name for name in schema.COLUMNS[table] if name != skip))
    found = connection.execute(f"SELECT {', '.join(names)} FROM {table} {tail}", values)  # noqa: S608 - our own names
    return [dict(zip(names, row, strict=True)) for row in found]


def probes(
    connection: sqlite3.Connection, *, limit: int, since: float = 0.0, whole: bool = False
) -> list[rows.Probe]:
    """Return the newest probes, newest first; `whole` brings their reports along."""
    found = _table(
        connection,
        "probes",
        "WHERE at >= ? ORDER BY id DESC LIMIT ?",
        (since, limit),
        skip="" if whole else "report",
    )
    for row in found:
        row["report"] = packing.unpack(row.get("report"))
    return rows.convert(found, rows.Probe)


def failures(connection: sqlite3.Connection, *, limit: int) -> list[rows.Probe]:
    """Return the newest probes that were neither healthy nor mitigated, newest first."""
    found = _table(
        connection,
        "probes",
        "WHERE verdict NOT IN (?, ?) ORDER BY id DESC LIMIT ?",
        (*_GOOD, limit),
        skip="report",
    )
    return rows.convert(found, rows.Probe)


def probe(connection: sqlite3.Connection, number: int) -> rows.Probe | None:
    """Return one probe with its report."""
    found = _table(connection, "probes", "WHERE id = ?", (number,))
    for row in found:
        row["report"] = packing.unpack(row["report"])
    return next(iter(rows.convert(found, rows.Probe)), None)


def seconds_spent(connection: sqlite3.Connection, *, since: float, until: float) -> float:
    """Return how long probes held their devices, s; summed where it lies, however many there are."""
    found = connection.execute(
        "SELECT total(took) FROM probes WHERE evidence = 'probe' AND at BETWEEN ? AND ?",
        (since, until),
    )
    return float(found.fetchone()[0])


def changes(connection: sqlite3.Connection, *, limit: int, since: float = 0.0) -> list[rows.Change]:
    """Return the newest verdict changes, newest first."""
    found = _table(connection, "changes", "WHERE at >= ? ORDER BY id DESC LIMIT ?", (since, limit))
    return rows.convert(found, rows.Change)


def present(connection: sqlite3.Connection) -> list[rows.Change]:
    """Return the verdict in force of every stack and kind of evidence, newest first."""
    found = _table(
        connection,
        "changes",
        "WHERE id IN (SELECT max(id) FROM changes GROUP BY stack, evidence) "
        "AND NOT retired ORDER BY id DESC LIMIT 256",
        (),
    )
    return rows.convert(found, rows.Change)


def open_degradations(connection: sqlite3.Connection) -> list[rows.Change]:
    """Return what was found degraded and has not been found good since, newest first.

    A probe that says `unknown` in between closes nothing.
    """
    found = _table(
        connection,
        "changes",
        "WHERE id IN (SELECT max(id) FROM changes WHERE verdict != 'unknown' OR retired "
        "GROUP BY stack, evidence) AND verdict = 'degraded' ORDER BY id DESC LIMIT 256",
        (),
    )
    return rows.convert(found, rows.Change)


def skips(connection: sqlite3.Connection, *, limit: int, since: float = 0.0) -> list[rows.Skip]:
    """Return the newest runs of skips, newest first."""
    found = _table(connection, "skips", "WHERE last >= ? ORDER BY id DESC LIMIT ?", (since, limit))
    return rows.convert(found, rows.Skip)


def stacks(connection: sqlite3.Connection, *, limit: int) -> list[rows.Stacks]:
    """Return the newest changes of what runs on the node, newest first."""
    found = _table(connection, "stacks", "ORDER BY id DESC LIMIT ?", (limit,))
    for row in found:
        row["stacks"] = packing.decode(row["stacks"], dict)
    return rows.convert(found, rows.Stacks)


def events(connection: sqlite3.Connection, *, limit: int, since: float = 0.0) -> list[rows.Event]:
    """Return the newest events, newest first."""
    found = _table(connection, "events", "WHERE at >= ? ORDER BY id DESC LIMIT ?", (since, limit))
    return rows.convert(found, rows.Event)


def value(connection: sqlite3.Connection, key: str, kind: type[T]) -> T | None:
    """Return what was saved under `key`, None where nothing of that kind was."""
    found = connection.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
    return packing.decode(found[0], kind) if found else None
