"""What the gate before a server remembers on a node: a verdict for each image, driver and mode.

Other containers can write the folder: what is read is believed as far as it has the right form, and for a week.
"""

import hashlib
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from capture_canary import foreign
from capture_canary.model import Cause, VerdictName

FOLDER: Final = "CAPTURE_CANARY_GATE_CACHE"
IMAGE: Final = "CAPTURE_CANARY_IMAGE"
OLDEST: Final = 7 * 86_400.0
MAX_FILE = 16 << 10
MAX_FILES = 256
_DIGEST = re.compile(r"@(sha256:[0-9a-f]{64})$", re.ASCII)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered."""

    verdict: VerdictName
    cause: Cause | None
    reason: str


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    at: float
    found: Verdict


def key(environ: Mapping[str, str], *, driver: str | None) -> tuple[str | None, str]:
    """Return the name of what is remembered: image digest x node x driver x mode; or None, and what is missing."""
    digest = _DIGEST.search(environ.get(IMAGE, ""))
    if digest is None:
        return None, f"{IMAGE} names no digest, and a tag may move"
    if not environ.get("NODE_NAME"):
        return None, "NODE_NAME is not set"
    if driver is None:
        return None, "the driver's version is not known"
    mode = environ.get("HCCL_OP_EXPANSION_MODE", "")
    parts = "\n".join((digest[1], environ["NODE_NAME"], driver, mode))
    return hashlib.sha256(parts.encode(errors="replace")).hexdigest()[:32], ""


class Remembered:
    """The folder."""

    def __init__(self, folder: Path) -> None:
        """Use this folder."""
        self._folder = folder

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Remembered | None":
        """Return the folder that the environment names; None where it names none."""
        folder = environ.get(FOLDER)
        return cls(Path(folder)) if folder else None

    def get(self, name: str) -> Verdict | None:
        """Return what is remembered, unless it is too old, or nonsense."""
        try:
            fd = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            entry = foreign.decode(os.read(fd, MAX_FILE), _Entry)
        except (OSError, ValueError):
            return None
        finally:
            os.close(fd)
        fresh = 0 <= time.time() - entry.at <= OLDEST
        return entry.found if fresh and entry.found.verdict != "unknown" else None

    def put(self, name: str, found: Verdict) -> None:
        """Remember; where that fails, the next start probes again."""
        fresh = self._folder / f".{name}.{os.getpid()}"
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._prune()
            fresh.write_bytes(msgspec.json.encode(_Entry(at=time.time(), found=found)))
            fresh.replace(self._folder / name)

    def _prune(self) -> None:
        files = sorted(self._folder.iterdir(), key=lambda path: path.lstat().st_mtime)
        for path in files[: max(0, len(files) - MAX_FILES + 1)]:
            path.unlink()
