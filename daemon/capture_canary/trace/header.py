"""From the header of a trace file to facts about the traced process; anybody may have written it."""

import re
import zlib
from typing import Final, Literal

import msgspec

from capture_canary.trace.layout import (
    BYTE_ORDER,
    COMMUNICATORS,
    LAYOUTS,
    LIBRARIES,
    MAGIC,
    PREFIX,
    FileFlag,
    Layout,
)

ModeState = Literal["hccl_not_started", "unset", "set", "too_long"]

MODE_STATES: Final[tuple[ModeState, ...]] = ("hccl_not_started", "unset", "set", "too_long")
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


def _text(field: bytes) -> str:
    """Return a field's text up to its first NUL; what is not printable ASCII becomes a question mark."""
    return UNPRINTABLE.sub("?", field.split(b"\0", 1)[0].decode("ascii", "replace"))
