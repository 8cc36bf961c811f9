"""What every step of a release uses: commands run and shown, our own command, the Docker client's answers."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class StepError(Exception):
    """A step cannot be done; the message says why."""


def run(*words: "str | Path", **settings: Any) -> str:
    """Run a command, shown first; return what it printed."""
    sys.stderr.write(f"+ {' '.join(map(str, words))}\n")
    argv = [str(word) for word in words]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True, **settings)
    return str(done.stdout).strip()


def canary(*words: "str | Path") -> str:
    """Run a command of ours; return what it printed."""
    return run(sys.executable, "-m", "capture_canary.cli", *words)


def inspect(image: str) -> dict[str, Any]:
    """Return what the Docker Engine knows of an image that is here."""
    (about,) = json.loads(run("docker", "image", "inspect", image))
    return dict(about)


def repository_of(image: str) -> str:
    """Return an image's name without its tag; a registry's port is none."""
    name, _, tag = image.rpartition(":")
    if not name or "/" in tag:
        raise StepError(f"{image}: names no tag")
    return name
