"""From bytes of a trace file to typed facts and records; every value is checked, since anybody may have written them."""

import re
import zlib
from typing import Final, Literal

import msgspec

from capture_canary.model import Capture
from capture_canary.trace.layout import (
    BYTE_ORDER,
    COLLECTIVES,
    COMMUNICATORS,
    LAYOUTS,
    LIBRARIES,
    MAGIC,
    PREFIX,
    FileFlag,
    Layout,
    RecordFlag,
    RecordKind,
)

ModeState = Literal["hccl_not_started", "unset", "set", "too_long"]

MODE_STATES: Final[tuple[ModeState, ...]] = ("hccl_not_started", "unset", "set", "too_long")
COUNT_LIMIT: Final = 1 << 48
"""No honest counter of copies, bytes or collectives reaches it."""
DEVICE_LIMIT: Final = 1 << 16
PID_LIMIT: Final = 1 << 22
BOOT_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
UNPRINTABLE: Final = re.compile(r"[^ -~]")


class TornError(ValueError):
    """The bytes are not whole: written half, cut, or of a version that is not known."""


class ForgedError(ValueError):
    """The bytes are whole and say what no tracer would."""


class Communicator(msgspec.Struct, frozen=True, kw_only=True):
    """A communicator that the process made; a server may have made more than the file has room for."""

    id: int
    """From 1 in the order in which they were made; addresses are used again, ids are not."""
    ranks: int | None
    rank: int | None
    mode: int
    """hcclOpExpansionMode of its configuration: 0 leaves it to the environment, 1 HOST, 2 AI_CPU, 3 AIV, …"""
    created_ns: int


class Library(msgspec.Struct, frozen=True, kw_only=True):
    """A library of CANN that the process called, and what its version file said."""

    package: str
    path: str
    version: str | None


class ProcessFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the header says of the traced process."""

    pid: int
    """As the process saw it itself, in its own PID namespace."""
    start_time: int
    """Clock ticks since boot."""
    pid_namespace: int
    boot_id: str
    mode_state: ModeState
    mode: str | None
    """HCCL_OP_EXPANSION_MODE when HCCL first started in it; None where it was not set."""
    hccl_started_ns: int | None
    inert: bool
    """The boot-loop breaker kept the tracer out: nothing is recorded."""
    timed: bool
    """Time in copies is measured."""
    second_cann: bool
    """A second copy of CANN is loaded, and is not watched."""
    communicators_made: int
    communicators: tuple[Communicator, ...]
    libraries: tuple[Library, ...]


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
    device: int | None
    thread: int
    eager: Eager
    lost: int
    capture: TracedCapture | None
    """Only in END."""


def header_layout(data: bytes) -> tuple[Layout, str]:
    """Return the layout of the file that starts with `data`, and its byte order."""
    for order, prefix in PREFIX.items():
        if len(data) < prefix.size:
            raise TornError(f"{len(data)} bytes are no header")
        magic, byte_order, version = prefix.unpack_from(data)
        if magic != MAGIC:
            raise TornError("it does not start as a trace file does")
        if byte_order == BYTE_ORDER:
            layout = LAYOUTS.get((version, order))
            if layout is None:
                raise TornError(f"trace file of version {version}, which is not known here")
            return layout, order
    raise TornError("neither byte order fits")


def decode_header(data: bytes, layout: Layout) -> ProcessFacts:
    """Check and decode a header."""
    if len(data) < layout.header_bytes:
        raise TornError(f"the header has {len(data)} of {layout.header_bytes} bytes")
    data = data[: layout.header_bytes]
    fields = layout.head.unpack_from(data)
    _, _, _, header_bytes, record_bytes, capacity, checksum, pid, flags, *rest = fields
    start_time, pid_namespace, boot_id, mode, mode_state, made, started_ns = rest
    blank = data[: layout.checksum_at] + bytes(4) + data[layout.checksum_at + 4 :]
    if zlib.crc32(blank) != checksum:
        raise TornError("the header's checksum does not fit")
    if (header_bytes, record_bytes, capacity) != (
        layout.header_bytes,
        layout.record.size,
        layout.record_capacity,
    ):
        raise ForgedError("the header's sizes are not this version's")
    boot = _text(boot_id)
    if not 0 < pid < PID_LIMIT or not BOOT_ID.fullmatch(boot) or mode_state >= len(MODE_STATES):
        raise ForgedError("the header names no process")
    state = MODE_STATES[mode_state]
    return ProcessFacts(
        pid=pid,
        start_time=start_time,
        pid_namespace=pid_namespace,
        boot_id=boot,
        mode_state=state,
        mode=_text(mode) if state in ("set", "too_long") else None,
        hccl_started_ns=started_ns or None,
        inert=bool(flags & FileFlag.INERT_BOOT_LOOP),
        timed=bool(flags & FileFlag.TIMED),
        second_cann=bool(flags & FileFlag.SECOND_CANN),
        communicators_made=made,
        communicators=_communicators(data, layout),
        libraries=_libraries(data, layout),
    )


def _communicators(data: bytes, layout: Layout) -> tuple[Communicator, ...]:
    found = []
    for index in range(COMMUNICATORS):
        at = layout.communicators_at + index * layout.communicator.size
        number, ranks, rank, mode, created_ns = layout.communicator.unpack_from(data, at)
        if number:
            found.append(
                Communicator(
                    id=number,
                    ranks=ranks or None,
                    rank=rank if ranks else None,
                    mode=mode,
                    created_ns=created_ns,
                )
            )
    return tuple(sorted(found, key=lambda communicator: communicator.id))


def _libraries(data: bytes, layout: Layout) -> tuple[Library, ...]:
    found = []
    for index in range(LIBRARIES):
        at = layout.libraries_at + index * layout.library.size
        package, version, path = map(_text, layout.library.unpack_from(data, at))
        if path:
            found.append(Library(package=package, path=path, version=version or None))
    return tuple(found)


def decode_record(data: bytes, layout: Layout, *, slot: int, timed: bool) -> Record | None:
    """Check and decode the record of a slot; None where nothing was ever written there.

    Raises:
        TornError: the record is not whole.
        ForgedError: the record is whole and contradicts itself.
    """
    if not any(data):
        return None
    if len(data) < layout.record.size:
        raise TornError(f"the record has {len(data)} of {layout.record.size} bytes")
    fields = layout.record.unpack(data)
    checksum, kind, flags, sequence, order, begin_ns, end_ns, copies, copy_bytes, copy_ns = fields[:10]
    device, thread, code, graphs_alive = fields[10:14]
    other, collectives, communicators = fields[14:22], fields[22:38], fields[38:46]
    eager_copies, (eager_bytes, eager_ns, eager_collectives, lost) = fields[46:54], fields[54:]
    if zlib.crc32(data[4:]) != checksum:
        raise TornError(f"the checksum of record {slot} does not fit")
    counts = (copies, copy_bytes, eager_bytes, eager_collectives, lost, *eager_copies)
    if (
        kind not in RecordKind.__members__.values()
        or flags >= 2 * RecordFlag.MORE_COMMUNICATORS
        or sequence == 0
        or (sequence - 1) % layout.record_capacity != slot
        or not -1 <= device < DEVICE_LIMIT
        or max(counts) >= COUNT_LIMIT
        or any(collectives[len(COLLECTIVES) :])
    ):
        raise ForgedError(f"record {slot} says what no tracer would")
    kind = RecordKind(kind)
    if kind == RecordKind.END and (end_ns < begin_ns or order == 0 or (copies == 0) != (copy_bytes == 0)):
        raise ForgedError(f"record {slot}: a capture that cannot have been")
    known_device = device if device >= 0 else None
    capture = None
    if kind == RecordKind.END:
        capture = TracedCapture(
            capture=Capture(
                order=order,
                round=0,
                shape=0,
                begin_ns=begin_ns,
                seconds=(end_ns - begin_ns) / 1e9,
                h2d_copies=copies,
                h2d_bytes=copy_bytes,
                copy_seconds=copy_ns / 1e9 if timed else None,
                collectives={k: n for k, n in zip(COLLECTIVES, collectives, strict=False) if n},
                outcome="ok" if code == 0 else "failed",
                ambiguous=bool(flags & RecordFlag.AMBIGUOUS),
            ),
            device=known_device,
            thread=thread,
            code=code,
            overlapped=bool(flags & RecordFlag.OVERLAPPED),
            other_copies=other,
            communicators={i: n for i, n in zip(communicators[::2], communicators[1::2], strict=True) if i},
            communicators_complete=not flags & RecordFlag.MORE_COMMUNICATORS,
            graphs_alive=graphs_alive,
        )
    return Record(
        kind=kind,
        sequence=sequence,
        order=order,
        begin_ns=begin_ns,
        device=known_device,
        thread=thread,
        eager=Eager(
            collectives=eager_collectives,
            h2d_copies=eager_copies[1],
            h2d_bytes=eager_bytes,
            copy_seconds=eager_ns / 1e9 if timed else None,
            copies=eager_copies,
        ),
        lost=lost,
        capture=capture,
    )


def _text(field: bytes) -> str:
    """Return a field's text up to its first NUL; what is not printable ASCII becomes a question mark."""
    return UNPRINTABLE.sub("?", field.split(b"\0", 1)[0].decode("ascii", "replace"))
