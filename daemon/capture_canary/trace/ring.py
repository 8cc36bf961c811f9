"""Which records of a ring were seen, are missing, or are lost."""

from collections.abc import Sequence
from typing import Final

from capture_canary.trace.record import Record

PATIENCE: Final = 32
"""Threads write side by side: so many records later, one that is missing is given up."""


class Ring:
    """A reader's place in a ring of numbered records."""

    def __init__(self, capacity: int) -> None:
        """Start before the first record."""
        self.capacity = capacity
        self.next = 1
        """The first record not seen."""
        self.lost = 0
        """Records overwritten, torn or never written."""
        self._ahead: set[int] = set()
        """Seen, though `next` is still missing: fewer than PATIENCE."""

    def gone_round(self, records: Sequence[Record]) -> bool:
        """Return whether the writer has overtaken us: where the next record belongs lies a later one."""
        return any(record.sequence >= self.next + self.capacity for record in records)

    def accept(self, records: Sequence[Record]) -> list[Record]:
        """Return those of the records that were not seen before, in order, and move on."""
        new = {
            r.sequence: r
            for r in records
            if r.sequence >= self.next and r.sequence not in self._ahead
        }
        self._ahead.update(new)
        self._move()
        while self._ahead and max(self._ahead) - self.next >= PATIENCE:
            first = min(self._ahead)
            self.lost += first - self.next
            self.next = first
            self._move()
        return [new[sequence] for sequence in sorted(new)]

    def _move(self) -> None:
        while self.next in self._ahead:
            self._ahead.remove(self.next)
            self.next += 1
