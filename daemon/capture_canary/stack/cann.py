"""Which CANN is installed: versions from the files of an ASCEND_HOME_PATH tree, in its old and its new layout."""

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from capture_canary.model import Fact, Stack

PACKAGES = ("hcomm", "hccl", "runtime")
"""Parts of CANN with a version of their own: hcomm can be newer or older than the toolkit."""
ARCHITECTURES = ("aarch64", "x86_64")
DRIVER = Path("/usr/local/Ascend/driver/version.info")
MAX_BYTES = 65536
"""Read of a version file: real ones have a few hundred bytes."""

_VERSION_LINE = re.compile(r"^[ \t]*version[ \t]*=[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_VERSION_TEXT = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+-]{0,63}", re.ASCII)


def read_stack(home: Path, *, driver: Path = DRIVER) -> Stack:
    """Return the versions of CANN, its packages and the driver, each with the file that said so.

    Args:
        home: ASCEND_HOME_PATH, e.g. `/usr/local/Ascend/cann` or `/usr/local/Ascend/ascend-toolkit/latest`.
        driver: the driver's version file, where none lies beside the toolkit.
    """
    info = "ascend_toolkit_install.info"
    # Up to 8.3 the toolkit's folder is two levels below the driver's neighbour, from 8.5 on one.
    drivers = [above / "driver" / "version.info" for above in (home.parent, home.parent.parent)]
    return {
        "cann": _first(home / f"{machine}-linux" / info for machine in ARCHITECTURES),
        **{name: _first(_package_files(home, name)) for name in PACKAGES},
        "driver": _first(dict.fromkeys([*drivers, driver])),
    }


def read_version(path: Path) -> str | None:
    """Return the version in a file; None where it has none. The file may be anything, of any size.

    Raises:
        OSError: the file cannot be read, or is not a regular one.
    """
    # A FIFO in the file's place must not hold us.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is not a regular file")
        text = os.read(descriptor, MAX_BYTES).decode(errors="replace")
    finally:
        os.close(descriptor)
    line = _VERSION_LINE.search(text)
    if line is None:
        return None
    value = line.group(1).strip().strip('"')
    return value if _VERSION_TEXT.fullmatch(value) else None


def _package_files(home: Path, name: str) -> list[Path]:
    return [home / "share" / "info" / name / "version.info", home / name / "version.info"]


def _first(paths: Iterable[Path]) -> Fact:
    """The first version found, else what kept each file from giving one."""
    flaws: list[str] = []
    for path in paths:
        version, flaw = _try(path)
        if version is not None:
            return Fact(value=version, source=str(path))
        flaws.append(f"{path}: {flaw}")
    return Fact(value=None, source="; ".join(flaws))


def _try(path: Path) -> tuple[str | None, str]:
    try:
        return read_version(path), "no version in it"
    except OSError as error:
        return None, error.strerror or "not a regular file"
