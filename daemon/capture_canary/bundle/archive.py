"""Writes the archive: every file redacted and bounded, a manifest last, and never half of an archive."""

import gzip
import hashlib
import io
import os
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from capture_canary.bundle.redact import Redactor

MAX_FILE = 4 << 20
"""Bytes of one file; of a longer one its end is kept."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One file, as the manifest has it."""

    path: str
    bytes: int
    sha256: str
    cut: bool
    """Its begin is missing: it was too long."""


class Archive:
    """An archive under way."""

    def __init__(self, redactor: Redactor | None, *, most: int) -> None:
        """Args: what redacts (None: nothing does), the bytes that all files may have together."""
        self._redactor = redactor
        self._left = most
        self._files: dict[str, bytes] = {}
        self.entries: list[Entry] = []
        self.missing: dict[str, str] = {}
        """What could not be had, and why."""

    def add(self, path: str, text: str) -> None:
        """Add a text; where there is no room left it is missing, and said so."""
        if self._left <= 0:
            self.missing[path] = "the bundle is full"
            return
        if self._redactor:
            text = self._redactor.text(text)
        data = text.encode("utf-8", "replace")
        room = min(MAX_FILE, self._left)
        kept = data[-room:]
        self._left -= len(kept)
        self._files[path] = kept
        digest = hashlib.sha256(kept).hexdigest()
        entry = Entry(path=path, bytes=len(kept), sha256=digest, cut=len(kept) < len(data))
        self.entries.append(entry)

    def write(self, target: Path, **about: object) -> int:
        """Write it with its manifest; return its size.

        Raises:
            OSError: it cannot be written; then nothing is left.
        """
        redaction = self._redactor.report() if self._redactor else None
        manifest = {**about, "redaction": redaction, "files": self.entries, "missing": self.missing}
        self._files["manifest.json"] = msgspec.json.format(msgspec.json.encode(manifest))
        folder = target.stem.removesuffix(".tar")
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".bundle.")  # mode 0600
        try:
            with (
                open(handle, "wb") as raw,  # noqa: PTH123  # a descriptor
                gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as packed,
                tarfile.open(fileobj=packed, mode="w") as tar,
            ):
                for path, data in self._files.items():
                    info = tarfile.TarInfo(f"{folder}/{path}")
                    info.size, info.mode = len(data), 0o644
                    tar.addfile(info, io.BytesIO(data))
            Path(name).replace(target)
        except OSError:
            with suppress(OSError):
                os.unlink(name)  # noqa: PTH108  # what mkstemp named
            raise
        return target.stat().st_size
