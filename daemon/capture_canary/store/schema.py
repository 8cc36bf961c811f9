"""The tables of history.db, and how a file of an older release becomes one of this release."""

import sqlite3

SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file raises: where SQLite's message quotes damaged text, even the message cannot be read."""

# One script a version, without a semicolon inside a statement; a released script is never edited,
# a new one is appended.
# `at` is unix seconds. Order is by id: the clock of a node may jump, the ids do not.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE probes (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, took REAL NOT NULL,
        stack TEXT NOT NULL, evidence TEXT NOT NULL, emulated INTEGER NOT NULL,
        verdict TEXT NOT NULL, cause TEXT, reason TEXT NOT NULL, mode TEXT,
        copies REAL, copies_lower REAL, copies_upper REAL,
        seconds REAL, seconds_lower REAL, seconds_upper REAL,
        impact REAL, report BLOB);
    CREATE TABLE changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, stack TEXT NOT NULL,
        evidence TEXT NOT NULL, verdict TEXT NOT NULL, cause TEXT, reason TEXT NOT NULL,
        emulated INTEGER NOT NULL, retired INTEGER NOT NULL, since REAL NOT NULL);
    CREATE INDEX changes_by_stack ON changes (stack, evidence, id);
    CREATE TABLE skips (
        id INTEGER PRIMARY KEY AUTOINCREMENT, first REAL NOT NULL, last REAL NOT NULL,
        reason TEXT NOT NULL, detail TEXT NOT NULL, count INTEGER NOT NULL);
    CREATE TABLE stacks (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, stacks TEXT NOT NULL);
    CREATE TABLE events (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, kind TEXT NOT NULL,
        detail TEXT NOT NULL);
    CREATE TABLE state (key TEXT PRIMARY KEY, value BLOB NOT NULL);
    """,
)
VERSION = len(MIGRATIONS)
MAX_CHECKED = 256 * 1024 * 1024
"""Bytes above which a look through the file would hold up the start; damage then shows when it is met."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "probes": (
        *("at", "took", "stack", "evidence", "emulated", "verdict", "cause", "reason", "mode"),
        *("copies", "copies_lower", "copies_upper"),
        *("seconds", "seconds_lower", "seconds_upper", "impact", "report"),
    ),
    "changes": (
        *("at", "stack", "evidence", "verdict", "cause", "reason", "emulated", "retired", "since"),
    ),
    "skips": ("first", "last", "reason", "detail", "count"),
    "stacks": ("at", "stacks"),
    "events": ("at", "kind", "detail"),
}
"""Columns of the tables that only grow, without their id."""


class NewerError(Exception):
    """The database was written by a newer release."""


class DamagedError(Exception):
    """The file is no database, or its content contradicts itself."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring an empty or older database to this release's version, in one transaction.

    Raises:
        NewerError: a newer release wrote it.
    """
    if _missing(connection):
        # Another process may be at the same: what is missing is asked again under the lock.
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in ";".join(_missing(connection)).split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _missing(connection: sqlite3.Connection) -> tuple[str, ...]:
    found = version(connection)
    if found > VERSION:
        raise NewerError(f"schema version {found}, this release knows {VERSION}")
    return MIGRATIONS[max(found, 0) :]


def version(connection: sqlite3.Connection) -> int:
    """Return the schema version that the database says it has."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check(connection: sqlite3.Connection) -> None:
    """Look through the whole file for damage.

    Raises:
        DamagedError: something is wrong with it.
    """
    if _size(connection) <= MAX_CHECKED:
        answer = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if answer != "ok":
            raise DamagedError(str(answer))
    for table, columns in COLUMNS.items():
        connection.execute(f"SELECT id, {', '.join(columns)} FROM {table} LIMIT 0")  # noqa: S608 - our own names
    connection.execute("SELECT key, value FROM state LIMIT 0")


def _size(connection: sqlite3.Connection) -> int:
    pages, size = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("page_count", "page_size")
    )
    return pages * size


def is_damage(error: Exception) -> bool:
    """Tell damage, which another try won't mend, from what may pass: a lock, a full disk."""
    if isinstance(error, (DamagedError, UnicodeDecodeError)):
        return True
    if isinstance(error, sqlite3.OperationalError):
        return "no such" in str(error) or "has no column" in str(error)
    return type(error) is sqlite3.DatabaseError  # its subclasses blame the caller or the disk
