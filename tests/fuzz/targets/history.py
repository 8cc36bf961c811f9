"""What another release, or another hand, wrote into the state folder: the history, and the small files beside it."""

import functools
import sqlite3
import zlib
from contextlib import closing

import msgspec

from capture_canary import foreign, lock
from capture_canary.gate.latch import LatchFile
from capture_canary.gate.remembered import Remembered
from capture_canary.kubernetes.exchange import Answer, Exchange, Life, Request, Standing
from capture_canary.model import Report, VerdictName
from capture_canary.report import page, past, story
from capture_canary.reproduction.journal import NAME, JournalError, open_journal
from capture_canary.store import Store, files, packing, schema
from tests.builders import make_report, make_stack
from tests.fuzz.target import Target, put, scratch
from tests.fuzz.targets.pages import harmless
from tests.reproduction.journaling import header, written

NOW = 1_790_000_000.0


@functools.cache
def _database() -> bytes:
    """A history with a little of everything."""
    folder = scratch("making")
    store = Store(folder)
    verdicts: tuple[VerdictName, ...] = ("degraded", "unknown", "healthy", "mitigated")
    for at, verdict in enumerate(verdicts):
        store.add_probe(
            make_report(verdict, captures=2, ranks=1), at=NOW - 1000 + at, stack="abc", took=2.0
        )
    store.add_skip("npu_busy", at=NOW - 9, detail="pid 7")
    store.add_event("start", at=NOW - 8)
    store.note_stacks({"abc": make_stack()}, at=NOW - 7)
    store.save("latch", {"why": "x"})
    store.close()
    return (folder / files.NAME).read_bytes()


def database(data: bytes) -> None:
    """A file of these bytes as the history: no method of a store raises, and what is written is there."""
    folder = scratch("history")
    for old in folder.iterdir():
        old.unlink()
    put(folder / files.NAME, data)
    with closing(Store(folder)) as store:
        store.add_probe(make_report("degraded", captures=2, ranks=1), at=NOW, stack="fuzz")
        found = store.open_verdict("fuzz")
        assert store.problem or found is not None
        store.probes(whole=True)
        store.stacks()
        store.events()
        store.load("latch", dict)


@functools.cache
def _empty() -> sqlite3.Connection:
    connection = files.connect(None)
    schema.migrate(connection)
    return connection


def rows(data: bytes) -> None:
    """Rows of any content, as the report and the story read them."""
    tables = foreign.decode(data, dict[str, list[dict[str, object]]])
    connection = _empty()
    for table, columns in schema.COLUMNS.items():
        connection.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
        marks = ", ".join("?" * len(columns))
        for row in tables.get(table, [])[:8]:
            values = [_kept(row.get(name)) for name in columns]
            insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - our own names
            try:
                connection.execute(insert, values)
            except (sqlite3.Error, OverflowError, UnicodeEncodeError):
                continue  # nobody can have written it
    found = past.read(connection, since=0.0, limit=50)
    harmless(page.page(found, node="n", now=NOW, version="0.1.0"))
    assert len(story.tell(found, node="n", now=NOW)) <= story.MAX_LINES
    bad = [row for row in tables.get("changes", []) if row.get("verdict") == "degraded"]
    assert not [one for one in found.present if one.verdict == "degraded"] or bad


def _kept(value: object) -> object:
    return value if isinstance(value, (int, float, str, type(None))) else msgspec.json.encode(value)


def _rows() -> bytes:
    """The rows of that history as JSON."""
    path = put(scratch("reading") / files.NAME, _database())
    with closing(files.connect_for_reading(path)) as connection:
        found = {
            table: [
                dict(zip(columns, row, strict=True))
                for row in connection.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608 - our own names
            ]
            for table, columns in schema.COLUMNS.items()
        }
    for row in found["probes"]:
        row["report"] = None
    return msgspec.json.encode(found)


def reports(data: bytes) -> None:
    """A kept report, as it is and compressed anew."""
    found = packing.unpack(data)
    assert found is None or isinstance(found, Report)
    assert packing.unpack(zlib.compress(data, 1)) is None or data
    assert packing.decode(data, dict) is None or data


def journal(data: bytes) -> None:
    folder = scratch("journal")
    path = put(folder / NAME, data)
    with closing(open_journal(folder, header())) as first:
        attempts = list(first.attempts)
    size = path.stat().st_size
    # What was believed once is believed again, and nothing is lost by looking.
    with closing(open_journal(folder, header())) as second:
        assert second.attempts == attempts
        second.begin("aiv", None)
    assert path.stat().st_size > size
    with closing(open_journal(folder, header())) as third:
        assert len(third.attempts) == len(attempts) + 1


def _journal() -> bytes:
    folder = scratch("a journal")
    if not (folder / NAME).exists():
        written(folder).close()
    return (folder / NAME).read_bytes()


def small(data: bytes) -> None:
    """The small files of a state folder: each says something of its kind, or nothing."""
    folder = scratch("state")
    latch = LatchFile(put(folder / "probe-latch.json", data)).load()
    # What cannot be understood latches.
    assert latch.latched is not None or data.strip()[:1] == b"{"
    holder = lock.holder_pid(put(folder / "daemon.lock", data))
    assert holder is None or holder > 0
    found = Remembered(put(folder / "remembered", data).parent).get("remembered")
    assert found is None or found.verdict != "unknown"
    exchange = Exchange(folder)
    for kind in (Request, Answer, Standing, Life):
        put(folder / f"{kind.__name__.lower()}.json", data)
        assert isinstance(exchange.read(kind), (kind, type(None)))


LATCH = b'{"latched":"NPU 3 was not released","at":1790000000.0,"device_errors":2}'
TARGETS = (
    Target("history-file", "history.db", database, lambda: [_database(), _database()[:8192], b"", b"SQLite format 3\0" + bytes(84)], mutants=20, longest=1 << 17),
    Target(
        "history-rows", "rows of the history, and the report and story made of them", rows, json=True, raises=(ValueError,), longest=8192,
        seeds=lambda: [_rows()],
        tokens=(b'"degraded"', b'"suspect"', b"1e308", b"253402300799", b'"<script>"'),
    ),
    Target("history-report", "kept reports", reports, longest=4096, seeds=lambda: [packing.pack(make_report(captures=2, ranks=1)), msgspec.json.encode(make_report(captures=2, ranks=1)), b"{}", b"[1]"]),
    Target("journal", "the journal of a reproduction", journal, lambda: [_journal()[:3000], _journal()[:1200], b""], raises=(JournalError,), longest=4096, tokens=(b"\n", b'{"type":"begun"', b'{"type":"ended"', b'"arm":"aiv"', b"\0" * 16)),
    Target("state-files", "latch, lock, remembered verdicts, exchange with k8s", small, json=True, longest=1024,
        seeds=lambda: [LATCH, b"{}", b'{"id":"1","at":1.0}', b'{"pid":1,"pid_namespace":1,"started":1,"since":1e9,"host":"h","boot":"b"}', b'{"at":1790000000.0,"found":{"verdict":"healthy","cause":null,"reason":"x"}}']),
)  # fmt: skip
