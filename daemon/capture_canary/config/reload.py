"""The configuration file over months: noticed when it changes, and kept as it was when it turns bad."""

import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from capture_canary.config.document import File, read_file
from capture_canary.config.keys import build, keys, value_of
from capture_canary.config.load import Effective, combine
from capture_canary.config.problems import ConfigError


class Reload(NamedTuple):
    """What a reload came to."""

    changed: tuple[str, ...]
    """Keys that took a new value."""
    restart: tuple[str, ...]
    """Keys whose new value waits for a restart."""
    error: ConfigError | None
    """Why everything stays as it was."""


class ConfigFile:
    """Holds the settings in force. `poll` belongs to one thread; `request` may come from any, or a signal handler."""

    def __init__(
        self, path: Path | None, environ: Mapping[str, str], flags: Mapping[str, str]
    ) -> None:
        """Read the settings for the first time.

        Raises:
            ConfigError: they cannot be used.
        """
        self._path, self._environ, self._flags = path, dict(environ), dict(flags)
        file = read_file(path) if path else None
        self.current: Effective = combine(file, self._environ, self._flags)
        self.pending: Mapping[str, str] = {}
        """New values, as text, that wait for a restart, by key."""
        self.successes = 0
        self.failures = 0
        self.last_ok = True
        self._requested = threading.Event()
        self._loaded = self._seen = _digest(file)

    def request(self) -> None:
        """Have the next `poll` reload, whether or not the file changed."""
        self._requested.set()

    def poll(self) -> Reload | None:
        """Reload if that was requested or the file's content changed; None: neither.

        The content is compared, not the time of change: a ConfigMap's update swaps a symlink above the file, and two
        writes may share a time. A change counts once two polls in a row see the same content, so that a file that an
        editor is still writing is not taken.
        """
        requested = self._requested.is_set()
        self._requested.clear()
        if self._path is None and not requested:
            return None
        found = self._read()
        digest = _digest(found)
        settled, self._seen = digest == self._seen, digest
        if not requested and (digest == self._loaded or not settled):
            return None
        self._loaded = digest
        return self._apply(found)

    def _read(self) -> File | ConfigError | None:
        try:
            return read_file(self._path) if self._path else None
        except ConfigError as error:
            return error

    def _apply(self, found: File | ConfigError | None) -> Reload:
        try:
            if isinstance(found, ConfigError):
                raise found
            new = combine(found, self._environ, self._flags)
        except ConfigError as error:
            self.failures += 1
            self.last_ok = False
            return Reload((), (), error)
        self.successes += 1
        self.last_ok = True
        return self._take(new)

    def _take(self, new: Effective) -> Reload:
        old = self.current
        differs = [
            key
            for key in keys().values()
            if value_of(new.config, key.name) != value_of(old.config, key.name)
        ]
        waits = {
            key.name: key.text(value_of(new.config, key.name)) for key in differs if key.restart
        }
        values = {
            name: value_of(old.config if name in waits else new.config, name) for name in keys()
        }
        sources = {name: (old if name in waits else new).sources[name] for name in keys()}
        self.current, self.pending = Effective(build(values), sources), waits
        return Reload(tuple(key.name for key in differs if not key.restart), tuple(waits), None)


def _digest(found: File | ConfigError | None) -> str:
    if isinstance(found, File):
        return hashlib.sha256(found.data).hexdigest()
    return str(found)
