"""Follow one trace file: what is new since the last look, in bounded memory, whatever the file holds."""

import os
import stat
from pathlib import Path
from typing import Final, Literal

from capture_canary.trace.header import (
    ForgedError,
    ProcessFacts,
    TornError,
    decode_header,
    header_layout,
)
from capture_canary.trace.identity import ProcessIdentity, known_dead, parse_name
from capture_canary.trace.layout import FILE_BYTES, Layout, RecordKind
from capture_canary.trace.record import Eager, Record, TracedCapture, decode_record
from capture_canary.trace.ring import Ring

TraceState = Literal["live", "finished", "torn", "forged"]

BATCH: Final = 64
"""Records read at once while following."""
OPEN_CAPTURES: Final = 16
"""As many as the tracer follows at once."""

NO_EAGER: Final = Eager(collectives=0, h2d_copies=0, h2d_bytes=0, copy_seconds=0.0, copies=(0,) * 8)


class TraceFile:
    """One process's trace. Nothing in the file makes a method raise: `state` and `problem` tell."""

    def __init__(self, path: Path) -> None:
        """Open the file; raises OSError where there is none that can be read."""
        self.path = path
        self.facts: ProcessFacts | None = None
        self.eager: Eager | None = None
        """The process's totals outside captures, as last recorded; None before the first look."""
        self.open_captures: dict[int, Record] = {}
        """Captures that have begun and not ended, by order."""
        self.lost_captures = 0
        """Captures that the tracer itself could not follow."""
        self.problem: str | None = None
        self._forged = False
        self._exited = False
        self._ring: Ring | None = None
        self._modified_ns = -1
        self._identity: ProcessIdentity | None = parse_name(path.name)
        self._file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(self._file)
        self._inode = (status.st_dev, status.st_ino)

    def close(self) -> None:
        """Close the file; to be called once."""
        os.close(self._file)

    @property
    def lost(self) -> int:
        """Records that were overwritten, torn or never written before they could be read."""
        return self._ring.lost if self._ring else 0

    @property
    def state(self) -> TraceState:
        """What the file is: of a process that may still write, of one that ended, not whole, or not honest."""
        if self._forged:
            return "forged"
        if self.facts is None or self._identity is None:
            return "torn"
        ended = self._exited or self._made_way() or known_dead(self._identity)
        return "finished" if ended else "live"

    def _made_way(self) -> bool:
        """Return whether the file was removed, or another one stands in its place: nobody writes to it any more."""
        try:
            now = self.path.stat(follow_symlinks=False)
        except OSError:
            return True
        return (now.st_dev, now.st_ino) != self._inode

    def poll(self) -> list[TracedCapture]:
        """Return the captures that ended since the last call, in order."""
        if self._forged:
            return []
        self.problem = None
        try:
            status = os.fstat(self._file)
            layout = self._read_header(status)
            touched = status.st_mtime_ns != self._modified_ns
            self._ring = self._ring or Ring(layout.record_capacity)
            records = self._read_records(layout, self._ring, touched=touched)
            self._modified_ns = status.st_mtime_ns
        except TornError as error:
            self.problem = str(error)
            return []
        except ForgedError as error:
            self.problem = str(error)
            self._forged = True
            return []
        except OSError as error:
            self.problem = f"it cannot be read: {error.strerror}"
            return []
        return [capture for record in records if (capture := self._take(record)) is not None]

    def _read_header(self, status: os.stat_result) -> Layout:
        if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_BYTES:
            raise ForgedError("it is no regular file of at most 1 MiB")
        if self._identity is None:
            raise ForgedError("its name is no trace file's")
        layout, _ = header_layout(os.pread(self._file, 64, 0))
        try:
            facts = decode_header(os.pread(self._file, layout.header_bytes, 0), layout)
        except TornError:  # it may be being written this moment
            facts = decode_header(os.pread(self._file, layout.header_bytes, 0), layout)
        claimed = ProcessIdentity(facts.boot_id, facts.pid_namespace, facts.pid, facts.start_time)
        if claimed != self._identity:
            raise ForgedError("its header names another process than its name does")
        self.facts = facts
        self.eager = self.eager or NO_EAGER
        return layout

    def _read_records(self, layout: Layout, ring: Ring, *, touched: bool) -> list[Record]:
        """Return the records not seen before, in order."""
        found: list[Record] = []
        everything = touched
        for _ in range(ring.capacity // BATCH + 2):
            start = ring.next
            near = self._read_slots(layout, (start - 1) % ring.capacity, BATCH)
            if ring.gone_round(near):
                everything = True
                break
            found += ring.accept(near)
            everything &= not found
            if ring.next == start:
                break
        if everything:
            found += ring.accept(self._read_slots(layout, 0, ring.capacity))
        return found

    def _read_slots(self, layout: Layout, first: int, count: int) -> list[Record]:
        """Return the records of some slots; torn ones are left out, since they may be being written."""
        size = layout.record.size
        count = min(count, layout.record_capacity - first)
        data = os.pread(self._file, count * size, layout.header_bytes + first * size)
        slots = range(first, first + -(-len(data) // size))
        pieces = (data[(slot - first) * size :][:size] for slot in slots)
        records = (
            self._decode(piece, layout, slot) for slot, piece in zip(slots, pieces, strict=True)
        )
        return [record for record in records if record is not None]

    def _decode(self, data: bytes, layout: Layout, slot: int) -> Record | None:
        try:
            return decode_record(
                data, layout, slot=slot, timed=bool(self.facts and self.facts.timed)
            )
        except TornError as error:
            self.problem = str(error)
            return None

    def _take(self, record: Record) -> TracedCapture | None:
        self.eager = record.eager
        self.lost_captures = record.lost
        if record.kind == RecordKind.BEGIN:
            if len(self.open_captures) >= OPEN_CAPTURES:
                self.open_captures.pop(next(iter(self.open_captures)))
            self.open_captures[record.order] = record
        elif record.kind == RecordKind.END:
            self.open_captures.pop(record.order, None)
        self._exited = record.kind == RecordKind.EXIT
        return record.capture
