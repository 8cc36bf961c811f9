"""Writes trace files as the tracer does, and as it would never."""

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from capture_canary.trace.identity import ProcessIdentity, own_identity
from capture_canary.trace.layout import BYTE_ORDER, LAYOUTS, MAGIC, RecordKind

LAYOUT = LAYOUTS[1, "<"]


def header(
    process: ProcessIdentity, *, libraries: Sequence[tuple[str, str]] = (), **changes: Any
) -> bytes:
    """The header of a process that called these libraries of CANN (package and version)."""
    fields = {
        "magic": MAGIC,
        "byte_order": BYTE_ORDER,
        "version": 1,
        "header_bytes": LAYOUT.header_bytes,
        "record_bytes": LAYOUT.record.size,
        "capacity": LAYOUT.record_capacity,
        "checksum": 0,
        "pid": process.pid,
        "flags": 2,
        "start_time": process.start_time,
        "pid_namespace": process.pid_namespace,
        "boot_id": process.boot_id.encode(),
        "mode": b"AI_CPU",
        "mode_state": 2,
        "communicators_made": 0,
        "hccl_started_ns": 5,
    }
    blank = LAYOUT.head.pack(*(fields | changes).values()).ljust(LAYOUT.header_bytes, b"\0")
    called = b"".join(
        LAYOUT.library.pack(name.encode(), version.encode(), f"/cann/lib{name}.so".encode())
        for name, version in libraries
    )
    at = LAYOUT.libraries_at
    blank = blank[:at] + called + blank[at + len(called) :]
    checksum = zlib.crc32(blank).to_bytes(4, "little")
    at = LAYOUT.checksum_at
    return blank[:at] + checksum + blank[at + 4 :]


def record(number: int, **changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "kind": RecordKind.END,
        "flags": 0,
        "sequence": number,
        "order": number,
        "begin_ns": 1000,
        "end_ns": 3000,
        "copies": 3,
        "copy_bytes": 300,
        "copy_ns": 500,
        "device": 0,
        "thread": 1,
        "code": 0,
        "graphs_alive": 1,
        "other_copies": (0,) * 8,
        "collectives": (1,) + (0,) * 15,
        "communicators": (1, 1) + (0,) * 6,
        "eager_copies": (0, 7) + (0,) * 6,
        "eager_bytes": 70,
        "eager_copy_ns": 9,
        "eager_collectives": 1,
        "lost": 0,
    }
    flat: list[Any] = []
    for value in (fields | changes).values():
        flat += value if isinstance(value, tuple) else [value]
    body = LAYOUT.record.pack(0, *flat)[4:]
    return zlib.crc32(body).to_bytes(4, "little") + body


def slot_at(sequence: int) -> int:
    """Where the record of this sequence number lies."""
    return LAYOUT.header_bytes + (sequence - 1) % LAYOUT.record_capacity * LAYOUT.record.size


def place(data: bytearray, sequence: int, content: bytes) -> None:
    """Put a record where one of this sequence number lies."""
    at = slot_at(sequence)
    data.extend(bytes(max(0, at + len(content) - len(data))))
    data[at : at + len(content)] = content


def whole(sequences: range, process: ProcessIdentity | None = None) -> bytearray:
    """A file with one END record for each sequence number."""
    data = bytearray(header(process or own_identity()))
    for sequence in sequences:
        place(data, sequence, record(sequence))
    return data


def write(folder: Path, data: bytes | bytearray, process: ProcessIdentity | None = None) -> Path:
    path = folder / (process or own_identity()).file_name
    path.write_bytes(data)
    return path
