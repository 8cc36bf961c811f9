"""The trace file's layout by version: daemon/tracer/trace_format.h again (tests/trace checks that they agree)."""

from enum import IntEnum, IntFlag
from struct import Struct
from typing import Final

import msgspec

MAGIC: Final = b"CCTRACE\n"
BYTE_ORDER: Final = 0x01020304
FILE_BYTES: Final = 1 << 20
FOLDER_FILES: Final = 256
COMMUNICATORS: Final = 32
LIBRARIES: Final = 3

COLLECTIVES: Final = (
    "AllReduce",
    "AllGather",
    "AllGatherV",
    "ReduceScatter",
    "ReduceScatterV",
    "Broadcast",
    "Scatter",
    "Reduce",
    "AlltoAll",
    "AlltoAllV",
    "AlltoAllVC",
    "Send",
    "Recv",
    "BatchSendRecv",
)
"""Kinds of collectives in the order of the records' counters, as HCCL names them."""


class RecordKind(IntEnum):
    """What a record tells of."""

    BEGIN = 1
    END = 2
    EAGER = 3
    EXIT = 4


class RecordFlag(IntFlag):
    """What is special about a capture."""

    BEGIN_FAILED = 1
    OVERLAPPED = 2
    AMBIGUOUS = 4
    MORE_COMMUNICATORS = 8


class FileFlag(IntFlag):
    """What is special about a traced process."""

    INERT_BOOT_LOOP = 1
    TIMED = 2
    SECOND_CANN = 4


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Where things lie in a file of one version and byte order."""

    head: Struct
    communicators_at: int
    communicator: Struct
    libraries_at: int
    library: Struct
    header_bytes: int
    checksum_at: int
    record: Struct
    record_capacity: int


def _version_1(order: str) -> Layout:
    record = Struct(order + "IHH7QiIiI8I16I8I8Q4Q")
    return Layout(
        head=Struct(order + "8sIIIIIIIIQQ40s40sIIQ"),
        communicators_at=256,
        communicator=Struct(order + "IIIIQ"),
        libraries_at=1024,
        library=Struct(order + "32s64s416s"),
        header_bytes=4096,
        checksum_at=28,
        record=record,
        record_capacity=(FILE_BYTES - 4096) // record.size,
    )


PREFIX: Final = {order: Struct(order + "8sII") for order in "<>"}
"""Magic, byte order and version: what every version starts with."""

LAYOUTS: Final = {(1, order): _version_1(order) for order in "<>"}
"""By version and byte order; a version that is not here is not read."""
