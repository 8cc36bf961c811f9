"""What the daemon remembers: a store whose every method is safe to call, whatever the disk does."""

import sqlite3
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from capture_canary.logging import get_logger
from capture_canary.model import Evidence, Report, Stack
from capture_canary.store import fallback, files, queries, retention, rows, schema, writes

T = TypeVar("T")
_FAILURES = (*schema.SQLITE_ERRORS, schema.NewerError, schema.DamagedError, OSError)
_REFUSED = (
    *(sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError),
    *(ValueError, TypeError, OverflowError),
)
"""What a value makes that can't be kept: the file is not to blame."""
_IN_MEMORY = retention.Limits(max_bytes=2_000_000)


class Store:
    """The history of one node in `<folder>/history.db`.

    Where the file can't be used, the newest part of it is carried on in memory, said once, and
    written to the file when that works again. No method raises.
    """

    def __init__(
        self,
        folder: Path,
        *,
        limits: retention.Limits | None = None,
        retry_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open the history; where that fails, begin in memory and try the file again later."""
        self.path = folder / files.NAME
        self.problem: str | None = None
        """Why the history is only in memory; None while it is on disk."""
        self._limits = limits or retention.Limits()
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._lock = threading.RLock()
        self._log: Any = get_logger("store")
        self._marks: fallback.Marks | None = None
        self._inode = 0
        self._said: set[str] = set()
        self._retry_at = 0.0
        self._connection: sqlite3.Connection | None = None
        with self._lock:
            self._begin()

    # What happened.

    def add_probe(
        self,
        report: Report,
        *,
        at: float,
        stack: str,
        took: float = 0.0,
        evidence: Evidence = "probe",
    ) -> None:
        """Remember a judgement, and a verdict change when it says something new."""
        self._write(
            lambda db: writes.probe(db, report, at=at, took=took, stack=stack, evidence=evidence)
        )

    def add_skip(self, reason: str, *, at: float, detail: str = "") -> None:
        """Remember that a probe was due and not made."""
        self._write(lambda db: writes.skip(db, reason, at=at, detail=detail))

    def add_event(self, kind: str, *, at: float, detail: str = "") -> None:
        """Remember what happened to the daemon, such as `start` or `latch`."""
        self._write(lambda db: writes.event(db, kind, at=at, detail=detail))

    def note_stacks(self, stacks: dict[str, Stack], *, at: float) -> None:
        """Remember what runs here, by stack hash, when it differs from before."""
        self._write(lambda db: writes.stacks(db, stacks, at=at))

    def retire(
        self,
        evidence: Evidence,
        *,
        keep: Collection[str],
        emulated: bool,
        at: float,
        reason: str,
    ) -> None:
        """Close what one kind of evidence has in force for stacks other than those to keep: they left the node."""
        self._write(
            lambda db: writes.retire(
                db, evidence=evidence, keep=keep, emulated=emulated, at=at, reason=reason
            )
        )

    def save(self, key: str, value: object) -> None:
        """Remember a small value: the last run, the latch, the budget used."""
        self._write(lambda db: writes.save(db, key, value))

    # What is known.

    def load(self, key: str, kind: type[T]) -> T | None:
        """Return what was saved under `key`, None where there is nothing of that kind."""
        return self._read(lambda db: queries.value(db, key, kind), None)

    def probes(
        self, limit: int = 20, *, since: float = 0.0, whole: bool = False
    ) -> list[rows.Probe]:
        """Return the newest probes, newest first; `whole` brings their series along."""
        return self._read(lambda db: queries.probes(db, limit=limit, since=since, whole=whole), [])

    def probe(self, number: int) -> rows.Probe | None:
        """Return one probe with its series."""
        return self._read(lambda db: queries.probe(db, number), None)

    def seconds_spent(self, *, since: float, until: float) -> float:
        """Return how long probes held their devices, s."""
        return self._read(lambda db: queries.seconds_spent(db, since=since, until=until), 0.0)

    def failures(self, limit: int = 20) -> list[rows.Probe]:
        """Return the newest probes not found good, however many good ones came after."""
        return self._read(lambda db: queries.failures(db, limit=limit), [])

    def present(self) -> list[rows.Change]:
        """Return the verdict in force of every stack and kind of evidence, with its since."""
        return self._read(queries.present, [])

    def open_degradations(self) -> list[rows.Change]:
        """Return what was found degraded and not found good since."""
        return self._read(queries.open_degradations, [])

    def open_verdict(self, stack: str) -> rows.Change | None:
        """Return the open degradation of a stack, None where there is none."""
        return next((one for one in self.open_degradations() if one.stack == stack), None)

    def changes(self, limit: int = 50, *, since: float = 0.0) -> list[rows.Change]:
        """Return the newest verdict changes, newest first."""
        return self._read(lambda db: queries.changes(db, limit=limit, since=since), [])

    def skips(self, limit: int = 50, *, since: float = 0.0) -> list[rows.Skip]:
        """Return the newest runs of skips, newest first."""
        return self._read(lambda db: queries.skips(db, limit=limit, since=since), [])

    def stacks(self, limit: int = 50) -> list[rows.Stacks]:
        """Return the newest changes of what runs here, newest first."""
        return self._read(lambda db: queries.stacks(db, limit=limit), [])

    def events(self, limit: int = 50, *, since: float = 0.0) -> list[rows.Event]:
        """Return the newest events, newest first."""
        return self._read(lambda db: queries.events(db, limit=limit, since=since), [])

    # Upkeep.

    def maintain(self, *, now: float) -> None:
        """Drop what is too old or too much; to be called now and then."""
        with self._lock:
            limits = self._limits if self._marks is None else _IN_MEMORY
            self._run(lambda db: retention.prune(db, limits, now), None)

    def close(self) -> None:
        """Write what is only in memory if that works by now, and let go of the file."""
        with self._lock:
            if self._marks is not None:
                self._return_to_disk()
            self._drop()

    # How it holds.

    def _write(self, change: Callable[[sqlite3.Connection], None]) -> None:
        with self._lock:
            self._run(lambda db: files.in_transaction(db, change), None)

    def _read(self, query: Callable[[sqlite3.Connection], T], default: T) -> T:
        with self._lock:
            return self._run(query, default)

    def _run(self, work: Callable[[sqlite3.Connection], T], default: T) -> T:
        """Do the work on disk, or else in memory, or else not at all."""
        if self._marks is not None:
            if self._clock() >= self._retry_at:
                self._return_to_disk()
        elif self._inode_now() != self._inode:
            if self.path.exists():  # another was put in its place: that is the history now
                self._drop()
                files.forget_log(self.path)
                self._begin()
            else:
                self._fall_back(schema.DamagedError("the file was removed"))
        for _ in range(2):
            if self._connection is None:
                break
            try:
                return work(self._connection)
            except (*_REFUSED, *_FAILURES) as error:
                if isinstance(error, _REFUSED) and not isinstance(error, UnicodeDecodeError):
                    self._log.warning("history_refused", error=repr(error))
                    break
                if self._marks is not None:
                    self._say("history_lost", error)
                    break
                self._fall_back(error)
        return default

    def _begin(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._use(files.open_for_writing(self.path))
        except _FAILURES as error:
            self._fall_back(error)

    def _use(self, connection: sqlite3.Connection) -> None:
        self._drop()
        self._connection = connection
        self._marks = None
        self.problem = None
        self._said.clear()
        self._inode = self._inode_now()

    def _inode_now(self) -> int:
        try:
            return self.path.stat().st_ino
        except OSError:
            return 0

    def _fall_back(self, error: Exception) -> None:
        """Go on in memory with what can be read of the file, and back to disk if that helps."""
        memory, self._marks = fallback.remember(self._connection, self.path)
        self._drop()
        self._connection = memory
        self._retry_at = self._clock() + self._retry_seconds
        self.problem = str(error)
        useless = files.useless(error)
        if not (useless and self._return_to_disk(error)):
            self._say("history_in_memory", error)

    def _return_to_disk(self, known: Exception | None = None) -> bool:
        """Write to the file what happened since it was left, if it can be used again.

        A file known or found to be useless is put aside, and a new one made.
        """
        self._retry_at = self._clock() + self._retry_seconds
        if self._connection is None or self._marks is None:
            return False
        try:
            connection, aside = files.open_anew(self.path, known)
            if aside or known:
                self._marks = {}  # in a new file, all that was carried is missing
            self._write_back(connection)
        except _FAILURES as error:
            self.problem = str(error)
            return False
        if aside:
            self._log.warning("history_put_aside", file=str(aside), error=self.problem)
        self._use(connection)
        self._log.info("history_on_disk", path=str(self.path))
        return True

    def _write_back(self, connection: sqlite3.Connection) -> None:
        if self._connection is None or self._marks is None:
            return
        try:
            fallback.write_back(self._connection, self._marks, connection)
        except BaseException:
            connection.close()
            raise

    def _say(self, event: str, error: Exception) -> None:
        """Say it once until the history is on disk again."""
        if event not in self._said:
            self._said.add(event)
            self._log.warning(event, path=str(self.path), error=str(error))

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None
