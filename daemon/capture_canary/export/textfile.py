"""The metrics in a file for node_exporter's textfile collector, replaced whole after each change."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from capture_canary.export.exposition import Exposition
from capture_canary.logging import get_logger

_MODE = 0o644
"""node_exporter runs as another user."""


class TextFile:
    """Writes the file when its content changed; a folder that cannot be written is said once."""

    def __init__(self, exposition: Exposition, path: Callable[[], Path | None]) -> None:
        """Write what `exposition` has to where the settings say by then; None: nowhere."""
        self._exposition = exposition
        self._path = path
        self._written: tuple[Path, bytes] | None = None
        self._said: str | None = None
        self._log: Any = get_logger("textfile")

    def poll(self) -> None:
        """Bring the file up to date."""
        path = self._path()
        if path is None:
            self._written = None
            return
        body, _ = self._exposition.scrape()
        if self._written == (path, body):
            return
        try:
            _replace(path, body)
        except OSError as error:
            if self._said != str(error):
                self._said = str(error)
                self._log.error("textfile_not_written", path=str(path), why=str(error))
        else:
            self._written, self._said = (path, body), None


def _replace(path: Path, body: bytes) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)  # of a daemon that died: in a container all of them are pid 1
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), _MODE)
            file.write(body)
        fresh.replace(path)
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()
