"""Carrying the newest part of the history on in memory, and back to the file."""

import sqlite3
from contextlib import suppress
from pathlib import Path

from capture_canary.store import files, schema

Marks = dict[str, int]
"""The highest id of each table that the file already holds."""

_CARRIED = {"probes": 20, "changes": 500, "skips": 0, "stacks": 5, "events": 20}
"""Rows of each table worth their memory. A run of skips is counted anew."""
_MAX_PAGES = 1024
_STEP = 16


def remember(source: sqlite3.Connection | None, path: Path) -> tuple[sqlite3.Connection, Marks]:
    """Return a database in memory with the newest rows of `source`, or else of the file.

    What can't be read is left out; the marks say what was.
    """
    memory = files.connect(None)
    schema.migrate(memory)
    memory.execute(f"PRAGMA max_page_count = {_MAX_PAGES}")
    opened = None
    if source is None:
        with suppress(*schema.SQLITE_ERRORS, OSError):
            source = opened = files.connect_for_reading(path)
    marks: Marks = {}
    if source is not None:
        if source.in_transaction:
            with suppress(*schema.SQLITE_ERRORS):
                source.execute("ROLLBACK")
        for table, count in _CARRIED.items():
            marks[table] = _carry(source, memory, table, count)
        with suppress(*schema.SQLITE_ERRORS, OverflowError):
            state = source.execute("SELECT key, value FROM state LIMIT 1000").fetchall()
            memory.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", state)
    if opened is not None:
        opened.close()
    return memory, marks


def _carry(source: sqlite3.Connection, memory: sqlite3.Connection, table: str, count: int) -> int:
    names = ("id", *schema.COLUMNS[table])
    columns = ", ".join(names)
    rows: list[tuple[object, ...]] = []
    with suppress(*schema.SQLITE_ERRORS, OverflowError):
        # Row by row: of a damaged table, what comes before the damage is kept.
        query = f"SELECT {columns} FROM {table} ORDER BY id DESC LIMIT ?"  # noqa: S608 - our own names
        rows.extend(source.execute(query, (count,)))
    marks = ", ".join("?" * len(names))
    for row in reversed(rows):
        with suppress(*schema.SQLITE_ERRORS, OverflowError):
            memory.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", row)  # noqa: S608 - our own names
    return int(memory.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0])  # noqa: S608 - our own names


def write_back(memory: sqlite3.Connection, marks: Marks, target: sqlite3.Connection) -> None:
    """Append to the file what happened since it was left, and move the marks along.

    In small steps: on a disk with little room a large transaction would never fit.
    """
    state = memory.execute("SELECT key, value FROM state").fetchall()
    files.in_transaction(
        target, lambda db: db.executemany("INSERT OR REPLACE INTO state VALUES (?, ?)", state)
    )
    for table in ("changes", "stacks", "events", "skips", "probes"):
        while _step(memory, marks, target, table):
            pass


def _step(memory: sqlite3.Connection, marks: Marks, target: sqlite3.Connection, table: str) -> bool:
    names = ", ".join(schema.COLUMNS[table])
    places = ", ".join("?" * len(schema.COLUMNS[table]))
    new = memory.execute(
        f"SELECT id, {names} FROM {table} WHERE id > ? ORDER BY id LIMIT ?",  # noqa: S608 - our own names
        (marks.get(table, 0), _STEP),
    ).fetchall()
    if not new:
        return False
    insert = f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608 - our own names
    files.in_transaction(target, lambda db: db.executemany(insert, (row[1:] for row in new)))
    marks[table] = new[-1][0]
    return True
