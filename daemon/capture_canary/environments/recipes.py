"""The environments that can be made: one `requirements/NAME.txt` each, every pin in it."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from capture_canary.native import native_dir

_PYTHON = re.compile(r"^# python: 3\.(\d+)-3\.(\d+)$", re.MULTILINE)
_DEVICE = re.compile(r"^# device: (\w+)$", re.MULTILINE)
_ENVIRON = re.compile(r"^# environ: (.+)$", re.MULTILINE)


class RecipeError(ValueError):
    """No such environment, or none that can be made here."""


@dataclass(frozen=True)
class Recipe:
    """How one environment is made."""

    name: str
    summary: str
    pythons: range
    """Minor versions of Python 3 that its wheels exist for."""
    wheels: Path
    """Requirements that are installed as wheels, without resolving dependencies."""
    sources: Path | None
    """Requirements that are built afterwards, with what the wheels brought."""
    build_environ: dict[str, str]
    device: str | None
    """The family of SoC that vllm-ascend is to be built for; None: as its wheel is."""

    def digest(self) -> str:
        """Return what changes when the requirements do."""
        files = [self.wheels, *([self.sources] if self.sources else [])]
        return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]

    def python(self) -> str:
        """Return an interpreter that the environment's wheels exist for: this one, if it can be.

        Raises:
            RecipeError: none is on PATH.
        """
        if _minor_here() in self.pythons:
            return sys.executable
        for minor in reversed(self.pythons):
            found = shutil.which(f"python3.{minor}")
            if found and _minor(found) == minor:
                return found
        span = f"3.{self.pythons[0]} to 3.{self.pythons[-1]}"
        raise RecipeError(
            f"{self.name} exists for Python {span}; this is 3.{_minor_here()} and none of those "
            "is on PATH: install one or give --python"
        )


def _minor_here() -> int:
    return sys.version_info.minor


def _minor(python: str) -> int | None:
    """Return the minor version an interpreter has; None where it does not start (pyenv's shims)."""
    code = "import sys; print(sys.version_info[1])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else None


def recipes_dir() -> Path:
    """Return the folder of the requirements files that the package brought."""
    return native_dir() / "requirements"


def names() -> list[str]:
    """Return the names of the environments that can be made."""
    files = recipes_dir().glob("*.txt")
    return sorted(file.stem for file in files if not file.name.endswith(".build.txt"))


def recipe(name: str) -> Recipe:
    """Return the recipe of one environment.

    Raises:
        RecipeError: there is none of that name.
    """
    if name not in names():
        raise RecipeError(f"no environment is called {name!r}; there are {', '.join(names())}")
    wheels = recipes_dir() / f"{name}.txt"
    sources = recipes_dir() / f"{name}.build.txt"
    text = wheels.read_text(encoding="utf-8")
    pythons = _PYTHON.search(text)
    if pythons is None:
        raise RecipeError(f"{wheels}: no line '# python: 3.x-3.y'")
    building = sources.read_text(encoding="utf-8") if sources.exists() else ""
    environ: dict[str, str] = {}
    if line := _ENVIRON.search(building):
        environ = dict(pair.split("=", 1) for pair in line[1].split())
    device = _DEVICE.search(building)
    return Recipe(
        name=name,
        summary=text.splitlines()[0].removeprefix("# "),
        pythons=range(int(pythons[1]), int(pythons[2]) + 1),
        wheels=wheels,
        sources=sources if sources.exists() else None,
        build_environ=environ,
        device=device[1] if device else None,
    )


def default_dir() -> Path:
    """Return where environments are kept: CAPTURE_CANARY_ENVS, else the XDG data folder."""
    if chosen := os.environ.get("CAPTURE_CANARY_ENVS"):
        return Path(chosen)
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "capture-canary" / "environments"
