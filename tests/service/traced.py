"""A node whose trace files are written by the test, and the daemon's watchers on it."""

from pathlib import Path

import msgspec
from tests.trace.writing import header, place, record, write

from capture_canary.export.metrics import StateCollector
from capture_canary.export.state import State
from capture_canary.model import Fact
from capture_canary.service.board import Board, View
from capture_canary.service.stacks import StackWatch
from capture_canary.service.traces import TraceWatch
from capture_canary.stack.identity import stack_id
from capture_canary.store import Store
from capture_canary.trace.folder import TraceFolder
from capture_canary.trace.identity import own_identity

OWN = {"hcomm": Fact(value="9.1.0", source="x"), "soc": Fact(value="a3", source="x")}


def name(hcomm: str) -> str:
    return stack_id({"hcomm": Fact(value=hcomm, source="x"), "soc": OWN["soc"]})


class Node:
    """A node whose traces are written by the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = Store(folder / "state")
        self.board = Board(
            View(state=State(version="0", emulated=False, stack=OWN, evidence=("trace",)))
        )
        self.traces = TraceFolder(folder)
        self.watch = TraceWatch(self.traces, self.board, self.store)
        self.stacks = StackWatch(self.board, self.store)

    def trace(
        self,
        hcomm: str,
        *,
        copies: int,
        number: int = 1,
        mode: bytes = b"AI_CPU",
        captures: int = 4,
    ) -> Path:
        """Write the trace of an ended server whose captures make ever more copies."""
        process = msgspec.structs.replace(own_identity(), start_time=number)
        data = bytearray(header(process, libraries=[("hcomm", hcomm)], mode=mode))
        for n in range(1, captures + 1):
            one = record(n, order=n, copies=9 + n * copies, begin_ns=n * 1000, end_ns=n * 1000 + 9)
            place(data, n, one)
        return write(self.folder, data, process)

    def look(self) -> State:
        self.watch._next = 0.0  # noqa: SLF001  # not in two seconds, but now
        self.watch.poll()
        self.stacks.poll()
        return self.board.view.state

    def exported(self, metric: str) -> dict[str, list[str]]:
        """Which verdicts hold, by stack."""
        found: dict[str, list[str]] = {}
        for family in StateCollector(lambda: self.board.view.state).collect():
            for sample in family.samples:
                if sample.name == f"capture_canary_{metric}" and sample.value:
                    found.setdefault(sample.labels["stack"], []).append(
                        sample.labels.get("verdict", "")
                    )
        return found
