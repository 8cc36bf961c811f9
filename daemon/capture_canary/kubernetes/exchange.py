"""What the daemon and `capture-canary k8s` tell each other: four small files in a folder that only they share.

Each file has one writer and is replaced whole. What is read is believed only as far as it has the right form.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec

from capture_canary import foreign
from capture_canary.model import Report, VerdictName

FOLDER: Final = "kubernetes"
"""In the state folder."""
MAX_FILE = 64 << 10
BEAT = 15.0
"""Seconds between two signs of life of `k8s`."""

Feature = Literal["jobs", "node_condition", "events"]
Refusal = Literal["no_npus", "fleet_limit", "kubernetes"]
"""Why there was no probe: no NPUs in time, too many Jobs in the fleet, the API said no or nothing."""
Failure = Literal["timeout", "child"]
T = TypeVar("T", bound=msgspec.Struct)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a probe in a Job says when it ends, in the 4096 bytes of a termination message."""

    took: float
    """Seconds."""
    devices: int
    report: Report
    """Without its series."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """From the daemon: a probe is due."""

    id: str
    at: float
    """Unix time."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """To the daemon: what came of it; one of result, refusal and failure."""

    id: str
    """Of the request."""
    result: Result | None = None
    refusal: Refusal | None = None
    failure: Failure | None = None
    detail: str = ""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """From the daemon: what it says of the node now."""

    verdict: VerdictName
    reason: str
    emulated: bool
    probes: bool
    """Whether probes are planned here at all."""
    last_success: float | None
    """Unix time of the last probe that came to a verdict."""
    stale_after: float | None
    """Unix time from which that is too long ago: two more should have come to one; None where none is planned."""


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """To the daemon: `k8s` lives, and what it may not or cannot do."""

    at: float
    off: dict[Feature, str] = {}
    """Features that are off although asked for, and why."""
    failures: dict[Feature, int] = {}
    """Calls that failed, since its start."""


class Exchange:
    """The folder."""

    def __init__(self, folder: Path) -> None:
        """Use this folder; it is made by whoever writes first."""
        self._folder = folder

    def write(self, value: Request | Answer | Standing | Life) -> None:
        """Replace the file of this kind.

        Raises:
            OSError: the folder cannot be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(type(value))
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(msgspec.json.encode(value))
        fresh.replace(path)

    def read(self, kind: type[T]) -> T | None:
        """Return what the file of this kind says; None where there is none that makes sense."""
        try:
            fd = os.open(self._path(kind), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            data = os.read(fd, MAX_FILE + 1)
        except OSError:
            return None
        finally:
            os.close(fd)
        with suppress(ValueError):
            return foreign.decode(data, kind) if len(data) <= MAX_FILE else None
        return None

    def remove(self, kind: type[msgspec.Struct]) -> None:
        """Have no file of this kind."""
        with suppress(OSError):
            self._path(kind).unlink()

    def _path(self, kind: type[msgspec.Struct]) -> Path:
        return self._folder / f"{kind.__name__.lower()}.json"
