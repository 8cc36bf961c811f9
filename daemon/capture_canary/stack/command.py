"""Runs a short command of the system: bounded in time and output, and never waited for in vain."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import IO

from capture_canary import spawn

_REAP_SECONDS = 1.0


class CommandError(Exception):
    """The command gave no usable answer; the message says why."""


class Command:
    """One command that may be run again and again, but never twice at once.

    A process stuck inside the driver cannot even be killed. It is left behind, remembered, and
    nothing is started beside it, so that a node with a hung device doesn't fill with such ones.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        deadline: float = 10.0,
        limit: int = 1 << 20,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Args: the argument list, seconds it may take, bytes it may print, its environment."""
        self._argv = list(argv)
        self._deadline = deadline
        self._limit = limit
        self._env = {**(os.environ if env is None else env), "LC_ALL": "C"}
        self._stuck: subprocess.Popen[bytes] | None = None

    def run(self) -> tuple[int, bytes]:
        """Its exit code and what it printed, standard error included."""
        if self._stuck is not None and self._stuck.poll() is None:
            raise CommandError(f"{self._argv[0]}: pid {self._stuck.pid} of before is still stuck")
        self._stuck = None
        try:
            process = spawn.start(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self._env,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise CommandError(f"{self._argv[0]}: {error}") from error
        assert process.stdout is not None  # noqa: S101 - PIPE was asked for
        end = time.monotonic() + self._deadline
        try:
            with process.stdout as pipe:
                output = self._read(pipe, end)
            code = process.wait(max(0.0, end - time.monotonic()) + 0.01)
        except subprocess.TimeoutExpired as error:
            raise CommandError(f"{self._argv[0]}: not done in {self._deadline:g} s") from error
        finally:
            self._end(process)
        return code, output

    def _read(self, pipe: IO[bytes], end: float) -> bytes:
        os.set_blocking(pipe.fileno(), False)
        output = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            while (left := end - time.monotonic()) > 0:
                if not selector.select(left):
                    continue
                data = os.read(pipe.fileno(), 65536)
                if not data:
                    return bytes(output)
                output += data
                if len(output) > self._limit:
                    raise CommandError(f"{self._argv[0]}: printed over {self._limit} bytes")
        raise CommandError(f"{self._argv[0]}: not done in {self._deadline:g} s")

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Ends the whole group: what the command itself started goes with it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            process.wait(_REAP_SECONDS)
        except subprocess.TimeoutExpired:
            self._stuck = process
        if (
            process.returncode == -signal.SIGKILL
        ):  # what it had started came to us, where we are its subreaper
            spawn.reap_adopted()
