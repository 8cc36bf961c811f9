"""One rank of a probe: makes the steps that the leader orders, and records what each capture cost.

What is captured is the workload's business; what was copied meanwhile is read off this process's own trace file.
"""

import os
import socket
from collections.abc import Callable
from typing import Protocol

import msgspec

from capture_canary.model import Capture
from capture_canary.probe.messages import (
    MAX_NOTE,
    Captured,
    Control,
    Failed,
    Kind,
    Noted,
    Record,
    Spec,
    Started,
    encode,
)
from capture_canary.probe.tracing import OwnTrace

ORDER_BYTES = 16384
"""An order with its root info (4,108 bytes) fits."""


class Open(msgspec.Struct, frozen=True, tag="open"):
    """Take the NPU."""


class MakeRoot(msgspec.Struct, frozen=True, tag="root"):
    """Make root info and reply it."""


class RunControl(msgspec.Struct, frozen=True, tag="control"):
    """Make the eager positive control on a communicator of its own."""

    root: bytes


class BeginSeries(msgspec.Struct, frozen=True, tag="begin"):
    """Make the communicator of series `series`."""

    series: int
    root: bytes


class MakeCapture(msgspec.Struct, frozen=True, tag="capture"):
    """Capture one graph."""

    order: int
    round: int
    shape: int


class EndSeries(msgspec.Struct, frozen=True, tag="end"):
    """Destroy the series' graphs and communicator."""


class Close(msgspec.Struct, frozen=True, tag="close"):
    """Give everything back and end."""


Order = Open | MakeRoot | RunControl | BeginSeries | MakeCapture | EndSeries | Close


class Done(msgspec.Struct, frozen=True):
    """A step is made. `root` is set in reply to `MakeRoot`; `failed` ends the rank."""

    root: bytes | None = None
    failed: bool = False


class Workload(Protocol):
    """What a rank captures."""

    def open(self) -> tuple[str, dict[str, str]]:
        """Take the NPU; return the SoC's name and the versions that the loaded CANN tells."""
        ...

    def root_info(self) -> bytes:
        """Return what the other ranks need to join."""
        ...

    def eager(self, root: bytes) -> Callable[[], None]:
        """Make a communicator in AI_CPU mode; return what runs one eager collective on it and destroys it."""
        ...

    def begin(self, kind: Kind, root: bytes) -> None:
        """Make the communicator of a series."""

    def control(self) -> float | None:
        """Capture a graph of as many nodes without a collective; return its duration (s), None where there is none."""

    def capture(self, shape: int) -> tuple[int, float]:
        """Capture a graph; return its begin (monotonic ns) and its duration (s)."""
        ...

    def end(self) -> None:
        """Destroy the series' graphs and communicator."""

    def close(self) -> str | None:
        """Give the NPU back; return what is to be known of how it was measured."""


class Rank:
    """A rank's state between orders."""

    def __init__(self, rank: int, spec: Spec, workload: Workload, records: int) -> None:
        """Bind the rank to its workload and to the pipe (`records`) that it shares with the others."""
        self._rank = rank
        self._spec = spec
        self._workload = workload
        self._records = records
        self._trace = OwnTrace()
        self._series = 0

    def record(self, record: Record) -> None:
        """Write a record in one piece."""
        os.write(self._records, encode(record))

    def step(self, order: Order) -> Done:
        """Make one step."""
        match order:
            case Open():
                soc, versions = self._workload.open()
                device = self._spec.devices[self._rank]
                self.record(
                    Started(
                        rank=self._rank, pid=os.getpid(), device=device, soc=soc, versions=versions
                    )
                )
            case MakeRoot():
                return Done(root=self._workload.root_info())
            case RunControl():
                self._control(order.root)
            case BeginSeries():
                self._series = order.series
                self._workload.begin(self._spec.kinds[order.series], order.root)
            case MakeCapture():
                self._capture(order)
            case EndSeries():
                self._workload.end()
            case Close():
                if note := self._workload.close():
                    self.record(Noted(text=note[:MAX_NOTE]))
        return Done()

    def _control(self, root: bytes) -> None:
        run = self._workload.eager(root)
        before = self._trace.eager_copies()
        run()
        after = self._trace.eager_copies()
        copies = None if before is None or after is None else after - before
        self.record(Control(rank=self._rank, copies=copies))

    def _capture(self, order: MakeCapture) -> None:
        control = self._workload.control()
        begin_ns, seconds = self._workload.capture(order.shape)
        seen = self._trace.last_capture()
        capture = Capture(
            order=order.order,
            round=order.round,
            shape=order.shape,
            begin_ns=begin_ns,
            seconds=seconds,
            h2d_copies=seen.h2d_copies if seen else None,
            h2d_bytes=seen.h2d_bytes if seen else None,
            copy_seconds=seen.copy_seconds if seen else None,
            collectives=seen.collectives if seen else {},
            ambiguous=seen.ambiguous if seen else False,
            control_seconds=control,
        )
        self.record(
            Captured(
                rank=self._rank,
                series=self._series,
                mode=self._trace.mode(),
                peers=None,
                capture=capture,
            )
        )


def serve(rank: Rank, number: int, channel: socket.socket) -> int:
    """Make the leader's orders until `Close`, a failure, or the leader's end. Returns the exit code."""
    orders = msgspec.msgpack.Decoder(Order)
    while data := channel.recv(ORDER_BYTES):
        order = orders.decode(data)
        step = type(order).__name__
        try:
            done = rank.step(order)
        except Exception as error:  # noqa: BLE001  # whatever a workload's libraries raise, the runner is to hear it
            code = getattr(error, "code", None)
            reason = f"{error}"[:1000] or type(error).__name__
            rank.record(Failed(rank=number, step=step, reason=reason, code=code))
            channel.send(msgspec.msgpack.encode(Done(failed=True)))
            return 1
        channel.send(msgspec.msgpack.encode(done))
        if isinstance(order, Close):
            return 0
    return 1
