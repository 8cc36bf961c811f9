"""The sources that images are built from: found, packed into a context, and hashed."""

import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PARTS: Final = ("LICENSE", "README.md", "pyproject.toml", "requirements", "daemon", "images")
"""What the Dockerfile copies; as .dockerignore has it."""
DOCKERFILE: Final = "images/Dockerfile"
_LEFT_OUT = frozenset({"__pycache__", "_native"})
_MTIME = 315532800
"""1980-01-01, the least that a wheel can hold: the same sources make the same context whenever they were fetched."""
_GIT_SECONDS = 10.0


class SourceError(Exception):
    """There are no sources to build from."""


def find_source(given: Path | None) -> Path:
    """Return the root of the sources: the folder given, else this one or the nearest above that holds them.

    Raises:
        SourceError: it holds none.
    """
    here = Path.cwd()
    for folder in [given] if given else [here, *here.parents]:
        if (folder / DOCKERFILE).is_file() and (folder / "pyproject.toml").is_file():
            return folder
    where = f"in {given}" if given else f"in {here} nor above"
    raise SourceError(
        f"no {DOCKERFILE} {where}: images are built from Capture Canary's sources (--source DIR)"
    )


def pack(source: Path, to: Path) -> str:
    """Write the context of a build, return the digest of what is in it."""
    digest = hashlib.sha256()
    with tarfile.open(to, "w") as archive:
        for path in _files(source):
            name = path.relative_to(source).as_posix()
            about = archive.gettarinfo(path, name)
            about.mtime, about.uid, about.gid, about.uname, about.gname = _MTIME, 0, 0, "", ""
            about.mode = 0o755 if about.mode & 0o100 else 0o644
            if not about.isreg():
                digest.update(f"{name} -> {about.linkname}\n".encode())
                archive.addfile(about)
                continue
            content = path.read_bytes()
            about.size = len(content)
            digest.update(f"{name} {about.mode:o} {len(content)}\n".encode() + content)
            archive.addfile(about, io.BytesIO(content))
    return digest.hexdigest()


def _files(source: Path) -> Iterator[Path]:
    for part in PARTS:
        top = source / part
        if top.is_file():
            yield top
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(set(folders) - _LEFT_OUT)
            yield from (Path(folder, name) for name in sorted(names))


def revision(source: Path) -> str:
    """Return the commit that the sources are at, `-dirty` where they differ from it; unknown without git."""
    try:
        commit = _git(source, "rev-parse", "HEAD")
        dirty = _git(source, "status", "--porcelain", "--", *PARTS)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return f"{commit}-dirty" if dirty else commit


def _git(source: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(source), *words],  # noqa: S607  # the user's own git
        capture_output=True,
        text=True,
        check=True,
        timeout=_GIT_SECONDS,
    )
    return done.stdout.strip()
