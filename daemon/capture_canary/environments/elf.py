"""What a shared library offers and what it asks of others, as readelf tells it."""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
_SYMBOL = re.compile(
    r"\s*\d+: \S+\s+\S+ (?P<kind>\S+)\s+(?P<bind>\S+)\s+\S+\s+(?P<where>\S+) (?P<name>[^\s@]+)"
    r"(?:@@?(?P<version>\S+))?"
)
_VERSIONS_OF = re.compile(r"Version: 1\s+File: (\S+)\s+Cnt:")
_VERSION = re.compile(r"Name: (\S+)\s+Flags:")
_CALLABLE = {"FUNC", "IFUNC", "NOTYPE"}


class ToolMissingError(RuntimeError):
    """A command that building for an environment takes is not on PATH."""


@dataclass
class Library:
    """The dynamic symbols of one shared library."""

    needed: set[str] = field(default_factory=set)
    """Names of the libraries that it links."""
    defined: set[str] = field(default_factory=set)
    asked: dict[str, str | None] = field(default_factory=dict)
    """Functions it cannot load without, each with the version it asks for."""
    home: dict[str, str] = field(default_factory=dict)
    """The library that each version asked for belongs to."""


def _readelf() -> str:
    found = shutil.which("readelf") or shutil.which("llvm-readelf")
    if found is None:
        raise ToolMissingError("readelf is not on PATH: install binutils (or llvm)")
    return found


def read(path: Path) -> Library:
    """Return the dynamic symbols of a shared library; of a file that is none, nothing."""
    command = [_readelf(), "--wide", "--dynamic", "--dyn-syms", "--version-info", str(path)]
    # Names are ASCII but for what a foreign file may hold.
    text = subprocess.run(
        command, capture_output=True, text=True, errors="replace", env={"LC_ALL": "C"}, check=False
    ).stdout
    library = Library()
    home = None
    for line in text.splitlines():
        if found := _SYMBOL.match(line):
            _add_symbol(library, found)
        elif found := _NEEDED.search(line):
            library.needed.add(found[1])
        elif found := _VERSIONS_OF.search(line):
            home = found[1]
        elif home and (found := _VERSION.search(line)):
            library.home[found[1]] = home
    return library


def _add_symbol(library: Library, found: re.Match[str]) -> None:
    if found["where"] != "UND":
        library.defined.add(found["name"])
    elif found["bind"] == "GLOBAL" and found["kind"] in _CALLABLE:
        library.asked[found["name"]] = found["version"]
