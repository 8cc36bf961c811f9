"""Trace files: whole ones, and headers and records whose checksums are made right, as whoever forges one would."""

import struct
import zlib
from contextlib import closing
from typing import Any

import msgspec

from capture_canary.export.exposition import Exposition
from capture_canary.service.board import Board, View
from capture_canary.service.traces import TraceWatch
from capture_canary.trace import TraceFile
from capture_canary.trace.folder import TraceFolder
from capture_canary.trace.header import ForgedError, TornError, decode_header
from capture_canary.trace.identity import own_identity
from capture_canary.trace.layout import FILE_BYTES, RecordKind
from capture_canary.trace.record import Record, decode_record
from tests.export.test_metrics import START
from tests.fuzz.target import Target, put, scratch
from tests.trace.writing import LAYOUT, header, place, record, whole

OWN = own_identity()
"""Asked once; the files are this process's own, so that they count as live."""
BRIEF = struct.Struct("<HBBBBBB")
"""Copies, time, kind, k, communicator, code, flags of a record, for inputs of which each byte matters."""
GROWS = b"".join(BRIEF.pack(256 * n, n, 2, 16, 1, 0, 0) for n in range(1, 7))
FLAT = BRIEF.pack(3, 1, 2, 16, 1, 0, 0) * 6
OTHERS = (
    BRIEF.pack(9, 1, 1, 4, 2, 0, 4) + BRIEF.pack(9, 1, 2, 4, 2, 5, 2) + BRIEF.pack(0, 0, 4, 0, 0, 0, 0)
)  # fmt: skip


def file(data: bytes) -> None:
    path = put(scratch("trace") / OWN.file_name, data[: FILE_BYTES + 1])
    with closing(TraceFile(path)) as trace:
        seen = trace.poll() + trace.poll()
        assert trace.state in {"live", "finished", "torn", "forged"}
        assert bool(trace.problem) or trace.facts is not None
        assert trace.state not in {"torn", "forged"} or trace.problem
        assert all(_possible(one) for one in seen)
        assert len(msgspec.json.encode([trace.facts, seen])) < 1 << 22


def _possible(traced: Any) -> bool:
    one = traced.capture
    return bool(one.order > 0 and one.seconds >= 0 and one.h2d_copies >= 0 and one.h2d_bytes >= 0)


def headers(data: bytes) -> None:
    content = data.ljust(LAYOUT.header_bytes, b"\0")[: LAYOUT.header_bytes]
    at = LAYOUT.checksum_at
    blank = content[:at] + bytes(4) + content[at + 4 :]
    facts = decode_header(
        blank[:at] + zlib.crc32(blank).to_bytes(4, "little") + blank[at + 4 :], LAYOUT
    )
    texts = [
        facts.mode or "",
        *(f"{one.package}{one.path}{one.version}" for one in facts.libraries),
    ]
    assert all(text.isprintable() for text in texts)
    assert facts.pid > 0
    msgspec.json.encode(facts)


def records(data: bytes) -> None:
    content = data.ljust(LAYOUT.record.size, b"\0")[: LAYOUT.record.size]
    whole_record = zlib.crc32(content[4:]).to_bytes(4, "little") + content[4:]
    found = decode_record(whole_record, LAYOUT, slot=0, timed=bool(data[:1] > b"\x7f"))
    assert isinstance(found, Record)
    assert (found.capture is not None) == (found.kind == RecordKind.END)
    assert found.capture is None or _possible(found.capture)
    msgspec.json.encode(found)


class _Forgetful:
    """A history that keeps nothing: a trace is judged, not remembered."""

    def add_probe(self, *_: object, **__: object) -> None:
        pass

    retire = add_probe


def judged(data: bytes) -> None:
    """From a folder to metrics, as the daemon goes."""
    mode, size = data[:1], BRIEF.size
    content = bytearray(header(OWN, mode=mode * (1 + len(mode)), libraries=[("hcomm", "8.5.0")]))
    for number, at in enumerate(range(1, len(data) - size + 1, size), 1):
        copies, seconds, kind, k, communicator, code, flags = BRIEF.unpack_from(data, at)
        place(content, number, record(
            number, kind=kind, flags=flags, end_ns=1000 + (seconds << 20), copies=copies, copy_bytes=copies * 99,
            copy_ns=copies * 99, code=code, collectives=(k, k % 3, *[0] * 14), communicators=(communicator, k, *[0] * 6),
            graphs_alive=k % 2, eager_copies=(0, copies % 5, *[0] * 6),
        ))  # fmt: skip
    folder = scratch("judged")
    put(folder / OWN.file_name, bytes(content))
    board, traces = Board(View(state=START)), TraceFolder(folder)
    watch = TraceWatch(traces, board, _Forgetful())  # type: ignore[arg-type]  # all of it that a watch calls
    try:
        watch.poll()
        reports = [report for _, report in board.view.state.judged]
        ended = [one.capture for process in traces.processes.values() for one in process.captures]
    finally:
        traces.close()
    text = Exposition(lambda: board.view).scrape()[0].decode()
    for report in reports:
        # What nobody counted to the end never looks good.
        assert report.verdict not in {"healthy", "mitigated"} or len(ended) > 2
        counted = {one.h2d_copies for one in ended[1:]}
        assert (
            report.verdict != "degraded"
            or len(counted) > 1
            or report.cause in {"other", "time_only"}
        )
        assert f'verdict="{report.verdict}"}} 1.0' in text
        assert report.reason.isprintable()


SHORT = bytes(whole(range(1, 6), OWN))
TARGETS = (
    Target(
        "trace-file", "trace files", file, longest=8192,
        seeds=lambda: [SHORT, SHORT[:5000], header(OWN), b"", bytes(whole(range(1, 3), OWN)).ljust(8192, b"\0")],
        tokens=(b"CCTRACE\n", bytes(304), record(1), record(2)),
    ),
    Target(
        "trace-header", "their headers, the checksum made right", headers, longest=LAYOUT.header_bytes,
        seeds=lambda: [header(OWN), header(OWN, libraries=[("hcomm", "8.5.0"), ("runtime", "")]), header(OWN, mode_state=1)],
        raises=(TornError, ForgedError),
    ),
    Target(
        "trace-record", "their records, the checksum made right", records, longest=LAYOUT.record.size,
        seeds=lambda: [record(1), record(1, kind=RecordKind.BEGIN), b"\x80" + record(1, kind=RecordKind.EXIT)[1:], record(1, flags=15)],
        raises=(TornError, ForgedError),
    ),
    Target(
        "trace-judged", "the verdict and metrics of a folder of them", judged, mutants=60, longest=1 + 40 * BRIEF.size,
        seeds=lambda: [b"A" + GROWS, b"\0" + FLAT, b"", b"A" + GROWS + OTHERS, b"A" + FLAT + GROWS],
    ),
)  # fmt: skip
