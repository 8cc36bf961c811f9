"""Writing the history: functions of a connection, each one transaction of its caller."""

import sqlite3
from collections.abc import Collection

from capture_canary.model import Evidence, Report, Stack
from capture_canary.store import packing, queries, schema

MAX_TEXT = 2000
"""Characters kept of a reason or a detail."""


def text(raw: str) -> str:
    """Return text as it can be kept: bounded, and without the halves of characters in paths."""
    return raw[:MAX_TEXT].encode(errors="replace").decode()


def _insert(connection: sqlite3.Connection, table: str, values: tuple[object, ...]) -> None:
    names = schema.COLUMNS[table]
    marks = ", ".join("?" * len(names))
    connection.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", values)  # noqa: S608 - our own names


def probe(
    connection: sqlite3.Connection,
    report: Report,
    *,
    at: float,
    took: float,
    stack: str,
    evidence: Evidence,
) -> None:
    """Keep a report, and a verdict change when it says something new."""
    stack = text(stack)
    copies, seconds = report.growth.copies, report.growth.seconds
    _insert(
        connection,
        "probes",
        (
            *(at, took, stack, evidence, report.emulated, report.verdict, report.cause),
            *(text(report.reason), report.mode),
            *((copies.estimate, copies.lower, copies.upper) if copies else (None,) * 3),
            *((seconds.estimate, seconds.lower, seconds.upper) if seconds else (None,) * 3),
            report.impact.seconds_per_load if report.impact else None,
            packing.pack(report),
        ),
    )
    _change(connection, report, at=at, stack=stack, evidence=evidence)


def _change(
    connection: sqlite3.Connection, report: Report, *, at: float, stack: str, evidence: Evidence
) -> None:
    last = connection.execute(
        "SELECT verdict, cause, emulated, retired, since FROM changes "
        "WHERE stack = ? AND evidence = ? ORDER BY id DESC LIMIT 1",
        (stack, evidence),
    ).fetchone()
    if last and last[:4] == (report.verdict, report.cause, int(report.emulated), 0):
        return
    since = at
    if last and not last[3]:
        if last[0] == report.verdict:
            since = last[4]
        elif report.verdict == "degraded" and last[0] == "unknown":
            since = _degraded_before(connection, stack, evidence) or at
    _insert(
        connection,
        "changes",
        (
            *(at, stack, evidence, report.verdict, report.cause, text(report.reason)),
            *(report.emulated, 0, since),
        ),
    )


def _degraded_before(
    connection: sqlite3.Connection, stack: str, evidence: Evidence
) -> float | None:
    """Since when a degradation holds that `unknown` only interrupted."""
    last = connection.execute(
        "SELECT verdict, since FROM changes WHERE stack = ? AND evidence = ? "
        "AND (verdict != 'unknown' OR retired) ORDER BY id DESC LIMIT 1",
        (stack, evidence),
    ).fetchone()
    return float(last[1]) if last and last[0] == "degraded" else None


def retire(
    connection: sqlite3.Connection,
    *,
    evidence: Evidence,
    keep: Collection[str],
    emulated: bool,
    at: float,
    reason: str,
) -> None:
    """Close what one kind of evidence has in force for stacks other than those to keep: they left the node."""
    kept = {text(stack) for stack in keep}
    for last in queries.present(connection):
        if (last.evidence, last.emulated) == (evidence, emulated) and last.stack not in kept:
            _insert(
                connection,
                "changes",
                (
                    *(at, last.stack, last.evidence, "unknown", None, text(reason)),
                    *(last.emulated, 1, at),
                ),
            )


def skip(connection: sqlite3.Connection, reason: str, *, at: float, detail: str) -> None:
    """Count a probe not made; skips for one reason in a row share a row."""
    last = connection.execute(
        "SELECT id, reason, last FROM skips ORDER BY id DESC LIMIT 1"
    ).fetchone()
    probed = connection.execute("SELECT at FROM probes ORDER BY id DESC LIMIT 1").fetchone()
    if last and last[1] == reason and (probed is None or probed[0] <= last[2]):
        connection.execute(
            "UPDATE skips SET last = ?, detail = ?, count = count + 1 WHERE id = ?",
            (at, text(detail), last[0]),
        )
    else:
        _insert(connection, "skips", (at, at, text(reason), text(detail), 1))


def stacks(connection: sqlite3.Connection, found: dict[str, Stack], *, at: float) -> None:
    """Keep what runs on the node when other stacks do than before; a name stands for all versions of one."""
    last = connection.execute("SELECT stacks FROM stacks ORDER BY id DESC LIMIT 1").fetchone()
    before = packing.decode(last[0], dict[str, object]) if last else None
    if before is None or before.keys() != found.keys():
        _insert(connection, "stacks", (at, packing.encode(found).decode()))


def event(connection: sqlite3.Connection, kind: str, *, at: float, detail: str) -> None:
    """Keep something that happened to the daemon."""
    _insert(connection, "events", (at, text(kind), text(detail)))


def save(connection: sqlite3.Connection, key: str, value: object) -> None:
    """Keep a small value under a key."""
    connection.execute(
        "INSERT OR REPLACE INTO state (key, value) VALUES (?, ?)",
        (text(key), packing.encode(value)),
    )
