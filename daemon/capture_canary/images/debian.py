"""The Debian that stand-ins are made on: a tree by debootstrap, made once and kept under what it is made of."""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from capture_canary.images.engine import EngineError, explain

SUITE: Final = "bookworm"
PACKAGES: Final = ("bash", "ca-certificates", "gcc", "libc6-dev", "python3", "python3-pip")
"""What Ascend's images have, too: a Python with pip, a C compiler."""
_SHARED: Final = tuple(f"usr/share/{name}" for name in ("doc", "man", "locale"))
_LEFT_OUT: Final = ("var/cache/apt", "var/lib/apt/lists", *_SHARED)
_CERTIFICATES: Final = "etc/ssl/certs/ca-certificates.crt"
"""This machine's: where its network has a certificate authority of its own, pip in a build meets it, too."""
_SECONDS: Final = 1800.0
_RECIPE: Final = 1
"""Changes with what this module does."""

Say = Callable[[str], None]


class DebianError(Exception):
    """The tree could not be made; the message says why."""


def image(client: Any, name: str, cache: Path, say: Say) -> str:
    """Return the id of the image `name`, made from the tree in `cache` unless it is there already.

    Raises:
        DebianError: the tree could not be made.
        EngineError: the Engine did not take it.
    """
    digest = _digest()
    packed = cache / f"debian-{digest}.tar"
    label = f"io.capture-canary.made-from={digest}"
    there = client.api.images(name=name, filters={"label": label})
    if there:
        return str(there[0]["Id"])
    if not packed.is_file():
        say(f"debootstrap {SUITE}")
        _make(packed)
    say(f"importing {name}")
    repository, _, tag = name.rpartition(":")
    try:
        with packed.open("rb") as data:
            client.api.import_image_from_data(
                data, repository=repository, tag=tag, changes=[f"LABEL {label}"]
            )
        return str(client.api.inspect_image(name)["Id"])
    except Exception as error:  # the SDK lets some of requests' through
        raise EngineError(explain(error)) from error


def _digest() -> str:
    """Return what the tree is made of, in 16 digits."""
    about = f"{_RECIPE} {SUITE} {PACKAGES} {_LEFT_OUT}".encode()
    certificates = Path("/", _CERTIFICATES)
    about += certificates.read_bytes() if certificates.is_file() else b""
    return hashlib.sha256(about).hexdigest()[:16]


def _make(packed: Path) -> None:
    command = shutil.which("debootstrap") or shutil.which("debootstrap", path="/usr/sbin:/sbin")
    if command is None:
        raise DebianError("debootstrap is missing: apt install debootstrap")
    if os.geteuid() != 0:
        raise DebianError("debootstrap needs root")
    packed.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".debian-", dir=packed.parent))
    try:
        tree, log = aside / "tree", packed.with_suffix(".log")
        _debootstrap(command, tree, log)
        _trim(tree)
        with tarfile.open(aside / "tar", "w") as archive:
            archive.add(tree, ".")
        (aside / "tar").rename(packed)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _debootstrap(command: str, tree: Path, log: Path) -> None:
    words = [command, "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(tree)]
    with log.open("wb") as output:
        try:
            done = subprocess.run(
                words, stdout=output, stderr=output, check=False, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise DebianError(f"debootstrap was not done in {_SECONDS:g} s, see {log}") from None
    if done.returncode != 0:
        last = log.read_text("utf-8", "replace").strip().rpartition("\n")[2]
        raise DebianError(f"debootstrap failed ({last[:200]}), see {log}")


def _trim(tree: Path) -> None:
    for name in _LEFT_OUT:
        shutil.rmtree(tree / name, ignore_errors=True)
    for cache in [*tree.rglob("__pycache__")]:
        shutil.rmtree(cache)
    certificates = Path("/", _CERTIFICATES)
    if certificates.is_file():
        shutil.copyfile(certificates, tree / _CERTIFICATES)
    for device in (tree / "dev").iterdir():  # an image's /dev is the engine's
        if not device.is_dir() or device.is_symlink():
            device.unlink()
