"""Where the parts of an environment are, and the variables that a process in it needs."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from capture_canary import emulate
from capture_canary.native import emulated_cann_dir

_MARK = "capture-canary.json"


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

    def done(self) -> dict[str, str]:
        """Return what was marked as done, with the digest of what it was made from."""
        try:
            found = json.loads((self.folder / _MARK).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def mark(self, done: dict[str, str]) -> None:
        """Remember what is done."""
        (self.folder / _MARK).write_text(json.dumps(done), encoding="utf-8")

    def variables(self, settings: str = "") -> dict[str, str]:
        """Return what a process of the environment needs beside the environment it inherits.

        Args:
            settings: of the emulated CANN, as CAPTURE_CANARY_EMULATE takes them.
        """
        variables = emulate.environment(settings)
        # Behind the emulated CANN, so that a true function is found before one that stands in.
        variables["LD_LIBRARY_PATH"] += f"{os.pathsep}{self.standins}"
        return variables
