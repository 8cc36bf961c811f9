"""Where the compiled parts are: the tracer and the emulated CANN, built by CMake into `_native`."""

from pathlib import Path

import capture_canary


class NativeMissingError(RuntimeError):
    """The package was installed without its compiled parts."""


def native_dir() -> Path:
    """Return the folder of the compiled parts.

    An editable install keeps them apart from the sources, so every folder of the package is asked.

    Raises:
        NativeMissingError: no folder of the package holds them.
    """
    folders = [Path(folder) / "_native" for folder in capture_canary.__path__]
    for folder in folders:
        if folder.is_dir():
            return folder
    raise NativeMissingError(
        f"the compiled parts are missing (looked in {', '.join(map(str, folders))}); "
        "install the package with pip, which builds them"
    )


def tracer_path() -> Path:
    """Return the path of `libcapturetrace.so`, to be preloaded."""
    return native_dir() / "libcapturetrace.so"


def emulated_cann_dir() -> Path:
    """Return the folder of the emulated CANN's libraries and commands."""
    return native_dir() / "emulated"
