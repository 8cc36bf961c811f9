"""How the history stays small: by age, then by size, and the file shrinks with it."""

import sqlite3

import msgspec

from capture_canary.store import files

_BATCH = 16
"""Rows touched at once: between batches the size is looked at again."""
_TABLES = (("changes", "at"), ("skips", "last"), ("stacks", "at"), ("events", "at"))


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much is kept."""

    max_age: float = 90 * 86400.0
    """Seconds."""
    max_bytes: int = 64 * 1024 * 1024
    failures: int = 20
    """The newest probes not found good: their series go last."""
    rows: int = 20_000
    """Rows a table: what no clock and no size bounds."""


def prune(connection: sqlite3.Connection, limits: Limits, now: float) -> None:
    """Drop what is too old or too much; the last state of every stack stays."""
    files.in_transaction(connection, lambda db: _by_age(db, limits, now - limits.max_age))
    for statement in _sacrifices(limits):
        while _bytes(connection) > limits.max_bytes:
            if connection.execute(statement, (_BATCH,)).rowcount <= 0:
                break
    connection.executescript("PRAGMA incremental_vacuum")  # execute() would free one page
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _by_age(connection: sqlite3.Connection, limits: Limits, oldest: float) -> None:
    connection.execute("DELETE FROM probes WHERE at < ?", (oldest,))
    for table, column in _TABLES:
        # The newest row of a table says what holds now, however old it is.
        keep = (
            "SELECT max(id) FROM changes GROUP BY stack, evidence "
            "UNION SELECT max(id) FROM changes WHERE verdict != 'unknown' GROUP BY stack, evidence"
            if table == "changes"
            else f"SELECT max(id) FROM {table}"  # noqa: S608 - our own names
        )
        connection.execute(
            f"DELETE FROM {table} WHERE {column} < ? AND id NOT IN ({keep})",  # noqa: S608 - our own names
            (oldest,),
        )
    for table in ("probes", *(name for name, _ in _TABLES)):
        connection.execute(
            f"DELETE FROM {table} WHERE id <= (SELECT max(id) FROM {table}) - ?",  # noqa: S608 - our own names
            (limits.rows,),
        )


def _sacrifices(limits: Limits) -> tuple[str, ...]:
    """What goes first when the size is too much: series of good probes, of others, then rows."""
    good = "verdict IN ('healthy', 'mitigated')"
    newest_bad = (
        f"SELECT id FROM probes WHERE NOT {good} ORDER BY id DESC LIMIT {limits.failures:d}"  # noqa: S608 - a number
    )
    drop = "UPDATE probes SET report = NULL WHERE id IN (SELECT id FROM probes WHERE report"
    order = "ORDER BY id LIMIT ?)"
    return (
        f"{drop} IS NOT NULL AND {good} {order}",
        f"{drop} IS NOT NULL AND id NOT IN ({newest_bad}) {order}",
        f"{drop} IS NOT NULL {order}",
        f"DELETE FROM probes WHERE id IN (SELECT id FROM probes {order}",  # noqa: S608 - our own names
        f"DELETE FROM skips WHERE id IN (SELECT id FROM skips {order}",  # noqa: S608 - our own names
        f"DELETE FROM events WHERE id IN (SELECT id FROM events {order}",  # noqa: S608 - our own names
    )


def _bytes(connection: sqlite3.Connection) -> int:
    """Bytes in use, free pages left out: they go with the vacuum at the end."""
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
