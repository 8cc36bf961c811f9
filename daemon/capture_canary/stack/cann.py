"""Which CANN is installed: versions from the files of an ASCEND_HOME_PATH tree, in its old and its new layout."""

import re
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path, PurePath, PurePosixPath

from capture_canary.model import Fact, Stack
from capture_canary.stack.inside import Root

PACKAGES = ("hcomm", "hccl", "runtime")
"""Parts of CANN with a version of their own: hcomm can be newer or older than the toolkit."""
ARCHITECTURES = ("aarch64", "x86_64")
ASCEND = PurePosixPath("/usr/local/Ascend")
DRIVER = ASCEND / "driver" / "version.info"
HOMES = (ASCEND / "cann", ASCEND / "ascend-toolkit" / "latest")
"""Where CANN lies unless told otherwise: from 8.5 on, and before."""

_VERSION_LINE = re.compile(r"^[ \t]*version[ \t]*=[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_VERSION_TEXT = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+-]{0,63}", re.ASCII)


def read_stack(home: PurePath, *, driver: PurePath = DRIVER, root: Root | None = None) -> Stack:
    """Return the versions of CANN, its packages, driver and firmware, each with the file that said so.

    Args:
        home: ASCEND_HOME_PATH, e.g. `/usr/local/Ascend/cann` or `/usr/local/Ascend/ascend-toolkit/latest`.
        driver: the driver's version file, where none lies beside the toolkit.
        root: where the paths begin, for another container's; else our own root.
    """
    if root is None:
        with closing(Root()) as own:
            return read_stack(home, driver=driver, root=own)
    info = "ascend_toolkit_install.info"
    # Up to 8.3 the toolkit's folder is two levels below the driver's neighbour, from 8.5 on one.
    beside = [home.parent, home.parent.parent]
    firmware = driver.parent.parent / "firmware" / "version.info"
    return {
        "cann": _first(root, (home / f"{machine}-linux" / info for machine in ARCHITECTURES)),
        **{name: _first(root, _package_files(home, name)) for name in PACKAGES},
        "driver": _first(root, [*(one / "driver" / "version.info" for one in beside), driver]),
        "firmware": _first(
            root, [*(one / "firmware" / "version.info" for one in beside), firmware]
        ),
    }


def find_home(root: Root, said: Iterable[str | None] = ()) -> PurePosixPath | None:
    """Return the first folder that holds a CANN: of those that somebody named, then of the usual ones."""
    named = [PurePosixPath(text) for text in said if text and text.startswith("/")]
    for home in dict.fromkeys([*named, *HOMES]):
        stack = read_stack(home, root=root)
        if any(stack[name].value for name in ("cann", *PACKAGES)):
            return home
    return None


def contradictions(stack: Stack) -> list[str]:
    """Return what does not go together in a CANN, for a person to read. It is hcomm's version that decides."""
    cann, hcomm = (stack[name].value if name in stack else None for name in ("cann", "hcomm"))
    found = [f"{name}: {fact.source}" for name, fact in stack.items() if _DISAGREES in fact.source]
    if cann and hcomm and cann != hcomm:
        found.append(f"the toolkit is {cann} but hcomm is {hcomm}: hcomm decides")
    return found


_DISAGREES = ", but "


def read_version(path: Path) -> str | None:
    """Return the version in a file; None where it has none. The file may be anything, of any size.

    Raises:
        OSError: the file cannot be read, or is not a regular one.
    """
    with closing(Root()) as root:
        return _read_version(root, path)


def _read_version(root: Root, path: PurePath) -> str | None:
    line = _VERSION_LINE.search(root.read(path).decode(errors="replace"))
    if line is None:
        return None
    value = line.group(1).strip().strip('"')
    return value if _VERSION_TEXT.fullmatch(value) else None


def _package_files(home: PurePath, name: str) -> list[PurePath]:
    return [home / "share" / "info" / name / "version.info", home / name / "version.info"]


def _first(root: Root, paths: Iterable[PurePath]) -> Fact:
    """The first version found, with what others say otherwise; else what kept each file from giving one."""
    flaws: list[str] = []
    said: list[tuple[str, PurePath]] = []
    for path in dict.fromkeys(paths):
        try:
            version = _read_version(root, path)
        except OSError as error:
            flaws.append(f"{path}: {error.strerror or 'not a regular file'}")
            continue
        if version is None:
            flaws.append(f"{path}: no version in it")
        else:
            said.append((version, path))
    if not said:
        return Fact(value=None, source="; ".join(flaws))
    value, source = said[0]
    others = [f"{_DISAGREES}{path} says {other}" for other, path in said if other != value]
    return Fact(value=value, source=f"{source}{''.join(others)}")
