"""Reads one child of a probe while it runs: its records, its last words, and the bounds that it may not break."""

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Callable
from typing import IO, cast

import msgspec

from capture_canary.probe.cancel import CANCELLED, Cancel
from capture_canary.probe.messages import MAX_LINE, Ended, Record, Spec, decode_record, encode

MAX_OUTPUT = 8 << 20
"""Bytes of records or of stderr after which a child counts as flooding: a long probe writes under 1 MiB."""
_RECORD = 1024
"""Bytes of a capture's record, twice what one has: a reproduction of thousands over many ranks may have as many."""
CANCEL_GRACE = 1.0
"""Seconds that a cancelled child has to end in good order; the daemon promises its own end within 2 s."""
LEADER_LEAD = 2.0
"""Seconds by which the leader gives up before its runner: it can say which rank did not answer, and in which step."""
TIMED_OUT = "it did not end within its deadline"
_STDERR_TAIL = 2000
_READ = 65536
_POLL = 0.2

OnRecord = Callable[[Record], bool]
"""Called with each record as it arrives; False asks the child to stop."""


class Watch:
    """Reads one child until it closes its records, or until it breaks a bound."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        records: int,
        on_record: OnRecord,
        deadline: float,
        cancel: Cancel | None,
    ) -> None:
        """Watch `child`, whose records come from the descriptor `records`, until `deadline` (monotonic, s)."""
        self.records: list[Record] = []
        self.failure: str | None = None
        self.ended_itself = False
        self.stderr = b""
        self._child = child
        self._stdin = cast("IO[bytes]", child.stdin)
        self._stderr = cast("IO[bytes]", child.stderr)
        self._pipe = records
        self._on_record = on_record
        self._deadline = deadline
        self._cancel = cancel
        self._rest = b""
        self._bytes = {"records": 0, "stderr": 0}
        self._most = {"records": MAX_OUTPUT, "stderr": MAX_OUTPUT}
        self._stopped = False
        self.cancelled = False

    def start(self, spec: Spec) -> None:
        """Tell the child what to do."""
        captures = len(spec.kinds) * len(spec.devices) * spec.rounds * len(spec.shapes)
        self._most["records"] = max(MAX_OUTPUT, captures * _RECORD)
        with contextlib.suppress(BrokenPipeError):  # its death is noticed by its records
            own = max(spec.deadline_seconds - LEADER_LEAD, spec.deadline_seconds * 3 / 4)
            self._stdin.write(encode(msgspec.structs.replace(spec, deadline_seconds=own)))
            self._stdin.flush()

    def read(self) -> None:
        """Read until the child has closed both pipes, failed, or run out of time."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ, "records")
            selector.register(self._stderr, selectors.EVENT_READ, "stderr")
            if self._cancel:
                selector.register(self._cancel, selectors.EVENT_READ, "cancel")
            while self.failure is None and {"records", "stderr"} & _names(selector):
                left = self._deadline - time.monotonic()
                # Asked before its pipes are, which then hold all that it wrote. Nor are they waited for: after a pause
                # of ours longer than that, select() would come back without what is there.
                ended = self._child.poll() is not None
                ready = selector.select(0 if ended else max(0.0, min(left, _POLL)))
                if left <= 0 and not ended:
                    self.failure = CANCELLED if self.cancelled else TIMED_OUT
                if ended and not ready:
                    break  # a stray holds the pipes open
                for key, _ in ready:
                    self._read_one(selector, key)
        self.ended_itself = self.failure is None
        if self.cancelled and self._cancel:
            self.failure = self._cancel.why

    def _read_one(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        if key.data == "cancel":
            selector.unregister(key.fileobj)
            self.cancelled = True
            self._deadline = min(self._deadline, time.monotonic() + CANCEL_GRACE)
            self.stop()
        elif data := os.read(key.fd, _READ):
            if self.failure is None:
                self._take(str(key.data), data)
        else:
            selector.unregister(key.fileobj)

    def _take(self, pipe: str, data: bytes) -> None:
        self._bytes[pipe] += len(data)
        if self._bytes[pipe] > self._most[pipe]:
            most = self._most[pipe] >> 20
            self.failure = f"its child flooded its {pipe} with more than {most} MiB"
        elif pipe == "stderr":
            self.stderr = (self.stderr + data)[-_STDERR_TAIL:]
        else:
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._record(line)
            if len(self._rest) > MAX_LINE:
                self.failure = f"its child wrote a line of more than {MAX_LINE} bytes"

    def _record(self, line: bytes) -> None:
        if self.failure is not None:
            return
        try:
            record = decode_record(line)
        except ValueError as error:
            self.failure = f"its child wrote what is no record ({error}): {line[:80]!r}"
            return
        self.records.append(record)
        if not self._on_record(record) and not self._stopped:
            self._stopped = True
            self.stop()

    @property
    def good(self) -> bool:
        """Whether the leader ended all its ranks in good order."""
        return any(isinstance(record, Ended) for record in self.records)

    def stop(self) -> None:
        """Ask the child to end in good order: the end of its input says so."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()

    def close(self) -> None:
        """Close our ends of its pipes."""
        self.stop()
        self._stderr.close()


def _names(selector: selectors.BaseSelector) -> set[str]:
    return {str(key.data) for key in selector.get_map().values()}
