"""What the tracer has seen of this very process: a rank reads its own trace, as the daemon reads a server's."""

import os
from pathlib import Path

from capture_canary.model import Capture
from capture_canary.trace import TraceFile, own_trace, tracer_loaded


class OwnTrace:
    """This process's trace, opened once there is one."""

    def __init__(self) -> None:
        """Note whether the tracer is in this process at all; without it nothing is known, which is not zero."""
        self._loaded = tracer_loaded()
        self._folder = Path(os.environ.get("CAPTURE_CANARY_TRACE_DIR", os.devnull))
        self._file: TraceFile | None = None
        self._new: list[Capture] = []

    def eager_copies(self) -> int | None:
        """Return the H2D copies made outside captures so far; None where nobody counts."""
        if not self._loaded:
            return None
        file = self._poll()
        return file.eager.h2d_copies if file and file.eager else 0

    def captures(self) -> list[Capture]:
        """Return the captures that ended since this was last asked, those that the trace still holds."""
        self._new = []
        self._poll()
        return self._new

    def last_capture(self) -> Capture | None:
        """Return the capture that has just ended; None where it was not traced."""
        return next(reversed(self.captures()), None)

    def mode(self) -> str | None:
        """Return the expansion mode as HCCL read it; None where it is unset or not known."""
        file = self._poll()
        return file.facts.mode if file and file.facts else None

    def _poll(self) -> TraceFile | None:
        if self._file is None and self._loaded:
            self._file = own_trace(self._folder)
        if self._file:
            self._new += [traced.capture for traced in self._file.poll()]
        return self._file
