"""Versions of the Python packages that serve, by the names of their metadata folders: nothing is imported."""

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from capture_canary.model import Fact, Stack
from capture_canary.stack.inside import Root

PACKAGES = ("torch_npu", "vllm", "vllm_ascend")

_METADATA = re.compile(
    rf"({'|'.join(PACKAGES)})-([0-9][0-9A-Za-z.+!_]{{0,63}})\.(?:dist|egg)-info", re.ASCII
)
_PYTHON = re.compile(r"python3(\.[0-9]{1,2})?", re.ASCII)
_OF_IMAGES = re.compile(r"python3\.[0-9.]{1,8}", re.ASCII)
"""Ascend's images install Python into /usr/local/python3.11.13 and the like."""


def read_packages(root: Root, prefixes: Iterable[str | None] = ()) -> Stack:
    """Return the packages found; a package that is nowhere is left out.

    Args:
        root: where the paths begin.
        prefixes: of Pythons that run, e.g. `/opt/venv`; they come before the usual places.
    """
    found: Stack = {}
    for folder in _folders(root, prefixes):
        for name in _names(root, folder):
            match = _METADATA.fullmatch(name)
            if match and match[1] not in found:
                found[match[1]] = Fact(value=match[2], source=str(folder / name))
    return {name: found[name] for name in PACKAGES if name in found}


def prefix_of(program: str | None) -> str | None:
    """Return the prefix that a Python's path tells, `/opt/venv` of `/opt/venv/bin/python3`."""
    if not program or not program.startswith("/"):
        return None
    path = PurePosixPath(program)
    return str(path.parent.parent) if path.parent.name == "bin" else None


def _folders(root: Root, prefixes: Iterable[str | None]) -> Iterator[PurePosixPath]:
    usual = [f"/usr/local/{name}" for name in _names(root, "/usr/local") if _OF_IMAGES.match(name)]
    for prefix in dict.fromkeys([*filter(None, prefixes), *usual, "/usr/local", "/usr"]):
        lib = PurePosixPath(prefix) / "lib"
        for name in _names(root, lib):
            if _PYTHON.fullmatch(name):
                yield lib / name / "site-packages"
                yield lib / name / "dist-packages"


def _names(root: Root, folder: PurePosixPath | str) -> list[str]:
    try:
        return root.list(folder)
    except OSError:
        return []
