"""Asking a running probe to end, from another thread or a signal handler."""

import os


class Cancel:
    """A flag that a selector can wait for."""

    def __init__(self) -> None:
        """Open the pipe that carries the flag."""
        self.requested = False
        self._read, self._write = os.pipe()

    def request(self) -> None:
        """Ask; safe in a signal handler, and more than once."""
        if not self.requested:
            self.requested = True
            os.write(self._write, b"x")

    def fileno(self) -> int:
        """Return the descriptor that is readable once the end was asked for."""
        return self._read

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._read)
        os.close(self._write)
