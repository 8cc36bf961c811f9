"""The child of a probe, `python -m capture_canary.probe.worker RECORDS_FD`: leads one process per rank through a spec.

It reads the spec from standard input as one line; the end of that stream, when the runner closes it or dies, means
stop. It touches no NPU itself, so that it can always end the ranks that do.
"""

import contextlib
import ctypes
import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import NoReturn

import msgspec

from capture_canary.probe import rank as ranks
from capture_canary.probe.messages import (
    Ended,
    Failed,
    Spec,
    decode_spec,
    encode,
)
from capture_canary.probe.plan import plan
from capture_canary.probe.workloads import load_workload

MAX_SPEC = 65536
_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
_STOP_GRACE = 5.0
"""Seconds that a rank has to finish its step once the runner wants the probe to stop."""
_DEATH_SECONDS = 0.5
"""For a rank's end to be seen here, once a peer has noticed it."""


class RanksLostError(Exception):
    """A rank failed, died, or did not answer in time: a record says which."""


class Leader:
    """Runs a spec: every step is ordered of all ranks and waited for."""

    def __init__(self, spec: Spec, records: int, stdin: int) -> None:
        """Fork the ranks. `records` is the pipe to the runner."""
        self._spec = spec
        self._records = records
        self._stdin = stdin
        self._deadline = time.monotonic() + spec.deadline_seconds
        self._stopping = False
        self._channels: list[socket.socket] = []
        self._living: dict[socket.socket, int] = {}
        """Channels of the ranks that were not told to close."""
        self._pids: dict[int, int] = {}
        self._workload = load_workload(spec.workload)
        gc.freeze()  # the ranks share what the leader has imported
        for number in range(len(spec.devices)):
            self._fork(number)

    def _fork(self, number: int) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            for channel in [ours, *self._channels]:
                channel.close()
            os.dup2(os.open(os.devnull, os.O_RDONLY), self._stdin)
            os._exit(_rank_main(self._spec, number, self._workload, theirs, self._records))
        theirs.close()
        self._channels.append(ours)
        self._living[ours] = number
        self._pids[number] = pid

    def run(self) -> None:
        """Lead the ranks through control and series.

        Raises:
            RanksLostError: a rank was lost.
        """
        self._all(ranks.Open())
        self._all(ranks.RunControl(self._root()))
        for number, kind in enumerate(self._spec.kinds):
            if self._wants_stop():
                break
            self._all(ranks.BeginSeries(number, self._root()))
            for order, round_, shape in plan(
                kind.graphs,
                rounds=self._spec.rounds,
                shapes=self._spec.shapes,
                seed=self._spec.seed,
            ):
                if self._wants_stop():
                    break
                self._all(ranks.MakeCapture(order, round_, shape))
            self._all(ranks.EndSeries())
        self._all(ranks.Close())

    def _root(self) -> bytes:
        root = self._all(ranks.MakeRoot(), numbers=[0])[0].root
        if root is None:
            raise RanksLostError
        return root

    def _all(self, order: ranks.Order, numbers: Sequence[int] = ()) -> dict[int, ranks.Done]:
        """Order a step of the ranks (all of them by default) and wait for each one's reply."""
        numbers = numbers or range(len(self._channels))
        data = msgspec.msgpack.encode(order)
        for number in numbers:
            with contextlib.suppress(OSError):  # a dead rank is noticed by its missing reply
                self._channels[number].send(data)
        # All are watched, also who is not asked or has answered: a death is not to be found at the deadline only.
        replies: dict[int, ranks.Done] = {}
        while waiting := {*numbers} - {*replies}:
            watched: list[socket.socket | int] = (
                [*self._living] if self._stopping else [*self._living, self._stdin]
            )
            ready, _, _ = select.select(watched, [], [], self._remaining())
            if not ready:
                self._lose(sorted(waiting), order, "it did not answer in time", silent=True)
            if self._stdin in ready:
                self._note_stop()
            for channel in ready:
                if isinstance(channel, socket.socket):
                    number = self._living[channel]
                    replies[number] = self._read_reply(number, order)
                    if isinstance(order, ranks.Close):
                        del self._living[channel]  # its end is in order
        return replies

    def _read_reply(self, number: int, order: ranks.Order) -> ranks.Done:
        done = msgspec.msgpack.decode(self._receive(number, order), type=ranks.Done)
        if done.failed:
            self._look_for_deaths(number, order)
            raise RanksLostError
        return done

    def _look_for_deaths(self, failed: int, order: ranks.Order) -> None:
        """Record who died: his peers only say that they could not reach him."""
        others = {channel: number for channel, number in self._living.items() if number != failed}
        end = time.monotonic() + _DEATH_SECONDS
        while others:
            ready, _, _ = select.select([*others], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return
            for channel in ready:
                with contextlib.suppress(RanksLostError):
                    self._receive(others.pop(channel), order)

    def _receive(self, number: int, order: ranks.Order) -> bytes:
        data = b""
        with contextlib.suppress(OSError):  # reset by a dead rank: the same as its end
            data = self._channels[number].recv(ranks.ORDER_BYTES)
        if not data:
            status = self._reap(number)
            how = f"signal {-status}" if status < 0 else f"status {status}"
            self._lose([number], order, f"its process died ({how})", died=True)
        return data

    def _lose(
        self,
        numbers: list[int],
        order: ranks.Order,
        reason: str,
        *,
        silent: bool = False,
        died: bool = False,
    ) -> NoReturn:
        for number in numbers:
            step = type(order).__name__
            failed = Failed(rank=number, step=step, reason=reason, silent=silent, died=died)
            os.write(self._records, encode(failed))
        raise RanksLostError

    def _reap(self, number: int) -> int:
        """Kill a rank, wait for it and return how it ended: a signal it died of comes first, as a negative."""
        pid = self._pids.pop(number)
        os.kill(pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def _remaining(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def _note_stop(self) -> None:
        self._stopping = True
        self._deadline = min(self._deadline, time.monotonic() + _STOP_GRACE)

    def _wants_stop(self) -> bool:
        if not self._stopping and select.select([self._stdin], [], [], 0)[0]:
            self._note_stop()
        return self._stopping

    def end(self, *, orderly: bool) -> None:
        """Reap the ranks, by force unless they were told to close."""
        for number, pid in [*self._pids.items()]:
            if orderly:
                os.waitpid(pid, 0)
            else:
                self._reap(number)


def _rank_main(
    spec: Spec,
    number: int,
    make: Callable[[Spec, int], ranks.Workload],
    channel: socket.socket,
    records: int,
) -> int:
    """Run in the forked process of a rank."""
    # A rank must not outlive its leader, whatever kills that.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ["RANK"] = str(number)
    return ranks.serve(ranks.Rank(number, spec, make(spec, number), records), number, channel)


def main(argv: list[str]) -> int:
    """Read the spec, run it; 0 when every rank closed in good order."""
    records = int(argv[1])
    stdin = sys.stdin.fileno()
    line = b""
    while not line.endswith(b"\n") and len(line) < MAX_SPEC:
        data = os.read(stdin, MAX_SPEC - len(line))
        if not data:
            return 1
        line += data
    spec = decode_spec(line)
    if spec.workload == "vllm":
        from capture_canary.probe.vllm.leader import VllmLeader  # noqa: PLC0415  # starts its ranks itself

        return VllmLeader(spec, records, stdin).run()
    leader = Leader(spec, records, stdin)
    orderly = False
    try:
        with contextlib.suppress(RanksLostError):
            leader.run()
            orderly = True
    finally:
        leader.end(orderly=orderly)
    if orderly:
        os.write(records, encode(Ended()))
    return 0 if orderly else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
