"""Asking a running probe to end, from another thread."""

import os
import threading
from typing import Final

CANCELLED: Final = "it was cancelled"


class Cancel:
    """A flag that a selector can wait for."""

    def __init__(self) -> None:
        """Open the pipe that carries the flag."""
        self.requested = False
        self.why = CANCELLED
        """What is said of an arm that it ended."""
        self._lock = threading.Lock()
        self._closed = False
        self._read, self._write = os.pipe()

    def request(self, why: str = CANCELLED) -> None:
        """Ask; more than once does no harm, the first counts, nor does asking too late."""
        with self._lock:  # once closed, the descriptor may be anybody's
            if not (self.requested or self._closed):
                self.requested, self.why = True, why
                os.write(self._write, b"x")

    def fileno(self) -> int:
        """Return the descriptor that is readable once the end was asked for."""
        return self._read

    def close(self) -> None:
        """Close the pipe."""
        with self._lock:
            self._closed = True
            os.close(self._read)
            os.close(self._write)
