"""What is wrong with a configuration: every problem with its place, key and what would be right."""

import difflib
from collections.abc import Iterable
from typing import NamedTuple

from capture_canary.config.keys import keys, sections, shown

_MAX_PROBLEMS = 20


class Problem(NamedTuple):
    """One thing to put right."""

    where: str
    """`FILE:LINE`, a variable or a flag."""
    what: str


class ConfigError(ValueError):
    """The configuration cannot be used."""

    def __init__(self, problems: list[Problem]) -> None:
        """Keep the problems; the message has one a line."""
        super().__init__("\n".join(f"{where}: {what}" for where, what in problems))
        self.problems = problems


class Problems:
    """Collects problems, so that one look shows them all; gives up when there are too many."""

    def __init__(self) -> None:
        """Start without any."""
        self._found: list[Problem] = []

    def add(self, where: str, what: str) -> None:
        """Note one.

        Raises:
            ConfigError: there are enough.
        """
        self._found.append(Problem(where, what))
        if len(self._found) >= _MAX_PROBLEMS:
            raise ConfigError(self._found)

    def settle(self) -> None:
        """Raise what was noted.

        Raises:
            ConfigError: there is any.
        """
        if self._found:
            raise ConfigError(self._found)


def unknown(name: str, section: str = "") -> str:
    """Say that a key is unknown, and which one may be meant."""
    known = [*keys(), *sections()]
    prefix = f"{section}." if section else ""
    siblings = {full.removeprefix(prefix): full for full in known if full.startswith(prefix)}
    leaves = {full.rpartition(".")[2]: full for full in known}
    text = f"unknown key {shown(prefix + name)}"
    for names in (siblings, leaves):
        near = _nearest(name, names)
        if near:
            return f"{text}; did you mean {names[near]}?"
    return text


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the hint that names the nearest of some names, or nothing."""
    near = _nearest(name, names)
    return f"; did you mean {near}?" if near else ""


def _nearest(name: str, names: Iterable[str]) -> str | None:
    found = difflib.get_close_matches(name[:64].replace("-", "_"), list(names), n=1, cutoff=0.7)
    return found[0] if found else None
