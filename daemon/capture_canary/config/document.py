"""Read a YAML file into a bounded tree of nodes, each of which knows its line.

Nothing is constructed from YAML's own types: `no`, `1_000` or `2020-01-01` stay text, and the model says what they are.
Aliases, anchors and tags are refused: a settings file needs none, and they are what YAML bombs are made of.
"""

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

import yaml

from capture_canary.config.problems import ConfigError, Problem

MAX_BYTES = 64 * 1024
MAX_DEPTH = 8
_UNSPEAKABLE = re.compile("[\0\ud800-\udfff]")
"""What no path and no log can hold; an escape such as "\\ud800" writes it."""


class File(NamedTuple):
    """A configuration file's content."""

    name: str
    data: bytes


def read_file(path: Path) -> File:
    """Read a configuration file; a fifo, device or endless file does not hold us.

    Raises:
        ConfigError: it cannot be read, is no regular file, or is too large.
    """
    try:
        # Symlinks are followed: a ConfigMap's files are symlinks.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - Path.open takes no descriptor
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _error(str(path), "is no regular file")
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise _error(str(path), getattr(error, "strerror", None) or str(error)) from None
    return File(str(path), data)


def parse(file: File) -> yaml.Node | None:
    """Return the root of the file's one document; None: it is empty.

    Raises:
        ConfigError: it is no YAML that we take; names the line.
    """
    if len(file.data) > MAX_BYTES:
        raise _error(file.name, f"is larger than {MAX_BYTES // 1024} KiB")
    try:
        return _Loader(file.data.decode("utf-8-sig")).get_single_node()
    except UnicodeDecodeError as error:
        line = file.data.count(b"\n", 0, error.start) + 1
        raise _error(f"{file.name}:{line}", "is not UTF-8") from None
    except _RefusedError as error:
        what, number = error.args
        raise _error(f"{file.name}:{number}", what) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file.name}:{mark.line + 1}" if mark else file.name
        raise _error(where, error.problem or error.context or "is no YAML") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML's scanner lets chr() complain of "\UFFFFFFFF".
        raise _error(file.name, " ".join(str(error).split())) from None


def line(node: yaml.Node) -> int:
    """Return the line of a node, from 1."""
    return int(node.start_mark.line) + 1


def _error(where: str, what: str) -> ConfigError:
    return ConfigError([Problem(where, what)])


class _RefusedError(Exception):
    """Good YAML that we do not take: what, and in which line."""


class _Loader(yaml.SafeLoader):
    """Composes nodes only, and refuses what a settings file has no use for."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        number = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _RefusedError("aliases and anchors are refused", number)
        if event.tag is not None:
            raise _RefusedError("tags are refused", number)
        if self.depth >= MAX_DEPTH:
            raise _RefusedError(f"is nested deeper than {MAX_DEPTH}", number)
        if isinstance(event, yaml.ScalarEvent) and _UNSPEAKABLE.search(event.value):
            raise _RefusedError("NUL and halves of characters are refused", number)
        self.depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node
