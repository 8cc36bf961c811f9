"""From a record of a trace file to a capture and the totals beside it; anybody may have written it."""

import zlib
from typing import Final, NamedTuple

import msgspec

from capture_canary.model import Capture
from capture_canary.trace.header import ForgedError, TornError
from capture_canary.trace.layout import COLLECTIVES, Layout, RecordFlag, RecordKind

KINDS: Final = frozenset(RecordKind)
COUNT_LIMIT: Final = 1 << 48
"""No honest counter of copies, bytes or collectives reaches it."""
DEVICE_LIMIT: Final = 1 << 16


class Eager(msgspec.Struct, frozen=True, kw_only=True):
    """What the process did outside captures so far: the positive control of the copies."""

    collectives: int
    h2d_copies: int
    h2d_bytes: int
    copy_seconds: float | None
    copies: tuple[int, ...]
    """Synchronous copies by aclrtMemcpyKind; index 1 is H2D."""


class TracedCapture(msgspec.Struct, frozen=True, kw_only=True):
    """A capture as the tracer saw it. Its `capture.shape` is 0: a tracer does not know sizes."""

    capture: Capture
    device: int | None
    thread: int
    code: int
    """What CaptureEnd returned, or CaptureBegin where that failed."""
    overlapped: bool
    other_copies: tuple[int, ...]
    """Synchronous copies of the other kinds by aclrtMemcpyKind."""
    communicators: dict[int, int]
    """Collectives by communicator id: each communicator has lists, and a k, of its own."""
    communicators_complete: bool
    graphs_alive: int
    """Graphs captured and not destroyed, this one included."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One record of the ring."""

    kind: RecordKind
    sequence: int
    order: int
    begin_ns: int
    eager: Eager
    lost: int
    capture: TracedCapture | None
    """Only in END."""


def decode_record(data: bytes, layout: Layout, *, slot: int, timed: bool) -> Record | None:
    """Check and decode the record of a slot; None where nothing was ever written there.

    Raises:
        TornError: the record is not whole.
        ForgedError: the record is whole and contradicts itself.
    """
    if not any(data):
        return None
    if len(data) < layout.record.size:
        raise TornError(f"record {slot} has {len(data)} of {layout.record.size} bytes")
    fields = layout.record.unpack(data)
    if zlib.crc32(data[4:]) != fields[0]:
        raise TornError(f"the checksum of record {slot} does not fit")
    groups = (fields[14:22], fields[22:38], fields[38:46], fields[46:54])
    raw = _Raw._make((*fields[1:14], *groups, *fields[54:]))
    if not _plausible(raw) or (raw.sequence - 1) % layout.record_capacity != slot:
        raise ForgedError(f"record {slot} says what no tracer would")
    return Record(
        kind=RecordKind(raw.kind),
        sequence=raw.sequence,
        order=raw.order,
        begin_ns=raw.begin_ns,
        eager=Eager(
            collectives=raw.eager_collectives,
            h2d_copies=raw.eager_copies[1],
            h2d_bytes=raw.eager_bytes,
            copy_seconds=raw.eager_copy_ns / 1e9 if timed else None,
            copies=raw.eager_copies,
        ),
        lost=raw.lost,
        capture=_capture(raw, timed=timed) if raw.kind == RecordKind.END else None,
    )


class _Raw(NamedTuple):
    """The fields of a record behind its checksum, as they lie there."""

    kind: int
    flags: int
    sequence: int
    order: int
    begin_ns: int
    end_ns: int
    copies: int
    copy_bytes: int
    copy_ns: int
    device: int
    thread: int
    code: int
    graphs_alive: int
    other_copies: tuple[int, ...]
    collectives: tuple[int, ...]
    communicators: tuple[int, ...]
    eager_copies: tuple[int, ...]
    eager_bytes: int
    eager_copy_ns: int
    eager_collectives: int
    lost: int


def _plausible(raw: _Raw) -> bool:
    counts = (raw.copies, raw.copy_bytes, raw.eager_bytes, raw.eager_collectives, raw.lost)
    possible = (
        raw.kind in KINDS
        and raw.flags < 2 * RecordFlag.MORE_COMMUNICATORS
        and raw.sequence > 0
        and -1 <= raw.device < DEVICE_LIMIT
        and max(*counts, *raw.eager_copies) < COUNT_LIMIT
        and not any(raw.collectives[len(COLLECTIVES) :])
    )
    if raw.kind != RecordKind.END:
        return possible
    return (
        possible
        and raw.order > 0
        and raw.begin_ns <= raw.end_ns
        and bool(raw.copies) == bool(raw.copy_bytes)
    )


def _capture(raw: _Raw, *, timed: bool) -> TracedCapture:
    kinds = zip(COLLECTIVES, raw.collectives, strict=False)
    communicators = zip(raw.communicators[::2], raw.communicators[1::2], strict=True)
    return TracedCapture(
        capture=Capture(
            order=raw.order,
            round=0,
            shape=0,
            begin_ns=raw.begin_ns,
            seconds=(raw.end_ns - raw.begin_ns) / 1e9,
            h2d_copies=raw.copies,
            h2d_bytes=raw.copy_bytes,
            copy_seconds=raw.copy_ns / 1e9 if timed else None,
            collectives={kind: count for kind, count in kinds if count},
            outcome="ok" if raw.code == 0 else "failed",
            ambiguous=bool(raw.flags & RecordFlag.AMBIGUOUS),
        ),
        device=raw.device if raw.device >= 0 else None,
        thread=raw.thread,
        code=raw.code,
        overlapped=bool(raw.flags & RecordFlag.OVERLAPPED),
        other_copies=raw.other_copies,
        communicators={number: count for number, count in communicators if number},
        communicators_complete=not raw.flags & RecordFlag.MORE_COMMUNICATORS,
        graphs_alive=raw.graphs_alive,
    )
