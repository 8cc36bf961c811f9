"""Opening history.db, and putting aside one that can't be used."""

import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from capture_canary.store import schema

T = TypeVar("T")

NAME = "history.db"
MAX_ASIDE = 5
"""Files put aside and kept: a failing disk must not be filled with them."""
WAIT_SECONDS = 0.5
"""How long to wait for another process's lock."""
_COMPANIONS = ("", "-wal", "-shm", "-journal")


def connect(
    path: Path | None, *, read_only: bool = False, immutable: bool = False
) -> sqlite3.Connection:
    """Open `path` (None: in memory) with bounded memory, raising what sqlite3 raises."""
    if path is not None and path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise sqlite3.OperationalError(f"{path} is not a regular file")
    options = f"mode={'ro' if read_only else 'rwc'}{'&immutable=1' if immutable else ''}"
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{options}" if path else ":memory:",
        uri=path is not None,
        timeout=WAIT_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    # A damaged text must not end a query.
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    try:
        connection.executescript(
            "PRAGMA cache_size = -512; PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF;"
            "PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON;"
        )
    except schema.SQLITE_ERRORS:
        connection.close()
        raise
    return connection


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open, check and migrate the file; make it when it is not there.

    Raises:
        schema.NewerError: a newer release wrote it.
        schema.DamagedError: it is damaged.
        schema.SQLITE_ERRORS: it can't be opened now.
    """
    connection = connect(path)
    try:
        # Must come before the first table, and lets the file shrink later.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        # On a file system without shared memory this answers with another mode, which serves too.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(
            "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 128;"
            "PRAGMA journal_size_limit = 1048576;"
        )
        schema.migrate(connection)
        schema.check(connection)
        # Whether we may write is only known by writing.
        in_transaction(connection, lambda db: db.execute(f"PRAGMA user_version = {schema.VERSION}"))
    except BaseException:
        connection.close()
        raise
    return connection


def useless(error: Exception) -> bool:
    """Tell whether the file must make room: another try won't mend it."""
    return isinstance(error, schema.NewerError) or schema.is_damage(error)


def open_anew(path: Path, known: Exception | None) -> tuple[sqlite3.Connection, Path | None]:
    """Open the file; put it aside first if it is `known` or found to be useless, and say where.

    Raises:
        schema.SQLITE_ERRORS, OSError, schema.NewerError, schema.DamagedError: no file can be used now.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    error = known
    if error is None:
        try:
            return open_for_writing(path), None
        except (*schema.SQLITE_ERRORS, schema.NewerError, schema.DamagedError) as found:
            if not useless(found):
                raise
            error = found
    aside = _put_aside(path, "newer" if isinstance(error, schema.NewerError) else "damaged")
    if path.exists():
        raise error
    return open_for_writing(path), aside


def in_transaction(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    """Do the work wholly or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        answer = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return answer


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open the history of a daemon that may be running, changing nothing.

    Raises:
        FileNotFoundError: there is none.
        schema.NewerError: a newer release wrote it.
        schema.SQLITE_ERRORS: it can't be read.
    """
    connection = connect_for_reading(path)
    found = schema.version(connection)
    if found > schema.VERSION:
        connection.close()
        raise schema.NewerError(f"schema version {found}, this release knows {schema.VERSION}")
    if found < schema.VERSION:
        with closing(connection):
            return _migrated_copy(connection)
    return connection


def connect_for_reading(path: Path) -> sqlite3.Connection:
    """Open a history of whatever version, changing nothing."""
    if not path.exists():
        raise FileNotFoundError(str(path))
    try:
        return _connect_and_read(path, immutable=False)
    except sqlite3.OperationalError:
        # In a read-only folder SQLite can't lay the shared memory of WAL; with no WAL left
        # there is nothing in it that we would miss.
        if _size(path.with_name(path.name + "-wal")):
            raise
    return _connect_and_read(path, immutable=True)


def _connect_and_read(path: Path, *, immutable: bool) -> sqlite3.Connection:
    connection = connect(path, read_only=True, immutable=immutable)
    try:
        schema.version(connection)
    except schema.SQLITE_ERRORS:
        connection.close()
        raise
    return connection


def _migrated_copy(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Bring a copy in memory of an older file to this version: a reader must not write."""
    copy = connect(None)
    connection.backup(copy)
    schema.migrate(copy)
    return copy


def _put_aside(path: Path, why: str) -> Path | None:
    """Rename the file and what belongs to it; None where that can't be done."""
    if not path.exists():
        return None
    try:
        aside = sum(1 for other in path.parent.glob(f"{path.name}.*-*Z*") if _is_main(other.name))
        if aside >= MAX_ASIDE:
            return None
        stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
        target = path.with_name(f"{path.name}.{why}-{stamp}")
        # The write-ahead log goes first: without it the file is older, with a foreign one broken.
        for suffix in reversed(_COMPANIONS):
            with suppress(FileNotFoundError):
                Path(f"{path}{suffix}").replace(f"{target}{suffix}")
    except OSError:
        return None
    return target


def forget_log(path: Path) -> None:
    """Remove the write-ahead log of a file that is gone: it would be taken for its successor's."""
    for suffix in ("-wal", "-shm"):
        with suppress(OSError):
            Path(f"{path}{suffix}").unlink(missing_ok=True)


def _is_main(name: str) -> bool:
    return not name.endswith(_COMPANIONS[1:])


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
