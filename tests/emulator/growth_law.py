"""The growth law: the counts that hcomm's own sources made, and the closed forms that they meet."""

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.emulator.hccl_growth import FIXED, GROWS, PR2405

COUNTS = Path(__file__).parents[1] / "data" / "hcomm-growth" / "h2d-copies.csv"
HCOMM = {
    "8.5": ("8.5.0", GROWS),
    "9.0": ("9.0.0", GROWS),
    "9.1-pre (!2405 only)": ("9.1.0-pr2405", PR2405),
    "9.1 (!2405 + !2502)": ("9.1.0", FIXED),
}


def emulate(
    hcomm: str, growth: int, peers: int, *, scratch: bool, roce: bool = False
) -> dict[str, Any]:
    names = {"hcomm": hcomm, "growth": growth, "soc": A3, "peers": peers}
    return names | {"scratch": int(scratch), "roce": int(roce)}


A2, A3, A950 = range(3)
LOCAL, REMOTE, RELATION, LOCK, NOTIFY, ROCE_NOTIFIES = 304, 11_984, 64, 4, 32, 96 + 48


def measured() -> Iterator[tuple[tuple[str, ...], list[tuple[int, int]]]]:
    """Each run of the file: its parameters; copies and bytes of the eager operation and of captures 1 to 12."""
    runs: defaultdict[tuple[str, ...], dict[int, tuple[int, int]]] = defaultdict(dict)
    with COUNTS.open() as file:
        for hcomm, op, k, peers, destroyed, capture, copies, size in list(csv.reader(file))[1:]:
            runs[hcomm, op, k, peers, destroyed][int(capture)] = (int(copies), int(size))
    for key, points in runs.items():
        yield key, [points[n] for n in range(13)]


@dataclass(frozen=True)
class Law:
    """The closed forms of one collective on one communicator."""

    context: int
    k: int
    peers: int
    scratch: int
    roce: int
    listed: int

    def tag(self, first: int, last: int) -> tuple[int, int]:
        """Copies and bytes of the tags first to last where whole lists are copied: tag t finds t nodes in each."""
        tags = last - first + 1
        nodes = (first + last) * tags // 2
        copies = tags * (4 + self.peers + 2 * self.peers * self.roce) + nodes * (
            self.peers + self.scratch
        )
        size = tags * (
            3 * LOCK + self.context + RELATION * self.peers + ROCE_NOTIFIES * self.peers * self.roce
        )
        return copies, size + nodes * (REMOTE * self.peers + LOCAL * self.scratch)

    def growing(self, n: int) -> tuple[int, int]:
        done = self.listed + (n - 1) * self.k
        copies, size = self.tag(done + 1, done + self.k)
        return copies + (n == 1), size + NOTIFY * (n == 1)

    def bounded(self, n: int) -> tuple[int, int]:
        """Two nodes of a list, whatever its length."""
        copies = 4 + 3 * self.peers + 2 * self.scratch + 2 * self.peers * self.roce
        size = (
            3 * LOCK
            + self.context
            + (RELATION + 2 * REMOTE + ROCE_NOTIFIES * self.roce) * self.peers
        )
        size += 2 * LOCAL * self.scratch
        return self.k * copies + (n == 1), self.k * size + NOTIFY * (n == 1)


def limited(k: int, peers: int, n: int) -> int:
    """As many captures as copy at most 20,000 list nodes: an example must not take seconds."""
    while n > 1 and (peers + 1) * k * k * n * n // 2 > 20_000:
        n -= 1
    return n
