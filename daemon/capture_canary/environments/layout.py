"""Where the parts of an environment are, and the variables that a process in it needs."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from capture_canary import emulate

_MARK = "made-from"


@dataclass(frozen=True)
class Environment:
    """One environment on disk, made or half made."""

    name: str
    folder: Path

    @property
    def python(self) -> Path:
        """Return its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def standins(self) -> Path:
        """Return the folder of the libraries that were made for it."""
        return self.folder / "emulated" / "lib64"

    @property
    def log(self) -> Path:
        """Return the output of the last step of making it; beside it, since a venv is cleared."""
        return self.folder.parent / f"{self.name}.log"

    def site_packages(self) -> Path:
        """Return the folder its packages are in."""
        return next((self.folder / "lib").glob("python3.*/site-packages"))

    def made(self) -> str:
        """Return the digest of the requirements that it was made from; empty where it is not ready."""
        try:
            return (self.folder / _MARK).read_text(encoding="utf-8")
        except OSError:
            return ""

    def mark(self, digest: str) -> None:
        """Remember that it is ready."""
        (self.folder / _MARK).write_text(digest, encoding="utf-8")

    def variables(self, settings: emulate.Settings, environ: Mapping[str, str]) -> dict[str, str]:
        """Return what a process of the environment needs on the emulated CANN, beside what it inherits."""
        # Behind the emulated CANN, so that a true function is found before one that stands in, and before whatever
        # CANN the machine may have.
        return emulate.environment(
            settings,
            {
                **environ,
                "LD_LIBRARY_PATH": _before(self.standins, environ.get("LD_LIBRARY_PATH")),
                "PATH": _before(self.python.parent, environ.get("PATH")),
            },
        )


def _before(first: Path, rest: str | None) -> str:
    return f"{first}{os.pathsep}{rest}" if rest else str(first)
