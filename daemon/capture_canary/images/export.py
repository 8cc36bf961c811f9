"""Images as files, for registries that cannot be reached: an archive for each, a list, and their checksums."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from capture_canary import foreign
from capture_canary.images.local import Image, ImageError
from capture_canary.report.words import plain

LIST = "images.json"
SUMS = "SHA256SUMS"
_CHUNK = 1 << 20


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """An image and its archive."""

    image: str
    id: str
    digests: list[str]
    """What to mirror from a registry instead of moving files; none of an image that no registry has."""
    file: str
    """Archive beside the list, for `docker load`."""
    bytes: int
    sha256: str


def listed(folder: Path) -> list[Exported]:
    """Return what a folder's list says is there; nothing where there is no list, or another's."""
    try:
        return foreign.decode((folder / LIST).read_bytes(), list[Exported])
    except (OSError, ValueError):
        return []


def export(client: Any, image: Image, folder: Path) -> tuple[Exported, bool]:
    """Write an image's archive, unless the same is there already; say whether it was written.

    It is written aside and renamed: a file with the right name is whole.

    Raises:
        ImageError: the engine or the disk does not let it.
    """
    from docker import errors  # noqa: PLC0415  # an extra

    name = re.sub(r"[^A-Za-z0-9._-]+", "_", image.name).lstrip("._") + ".tar"
    before = next((one for one in listed(folder) if (one.file, one.id) == (name, image.id)), None)
    try:
        if before and (folder / name).is_file() and digest(folder / name) == before.sha256:
            return before, False
        size, sha256 = _write(client.api.get_image(image.name), folder / name)
    except (errors.DockerException, OSError) as error:
        free = shutil.disk_usage(folder).free >> 20 if folder.is_dir() else 0
        raise ImageError(f"{plain(str(error))} ({free:,} MB are free in {folder})") from error
    return Exported(
        image=image.name, id=image.id, digests=image.digests, file=name, bytes=size, sha256=sha256
    ), True


def write_list(folder: Path, exported: list[Exported]) -> None:
    """Write the list and the checksums: of these, and of earlier ones whose files are still there."""
    now = {one.file for one in exported}
    kept = [one for one in listed(folder) if one.file not in now and (folder / one.file).is_file()]
    every = sorted([*kept, *exported], key=lambda one: one.file)
    sums = "".join(f"{one.sha256}  {one.file}\n" for one in every)
    _write(iter([msgspec.json.format(msgspec.json.encode(every)) + b"\n"]), folder / LIST)
    _write(iter([sums.encode()]), folder / SUMS)


def digest(path: Path) -> str:
    """Return a file's SHA-256."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _write(chunks: Iterator[bytes], path: Path) -> tuple[int, str]:
    """Size and SHA-256 of what was written, whole or not at all."""
    aside = path.with_name(f".{path.name}.part")
    found, size = hashlib.sha256(), 0
    try:
        with aside.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
                found.update(chunk)
                size += len(chunk)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return size, found.hexdigest()
