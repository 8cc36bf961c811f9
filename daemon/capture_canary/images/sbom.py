"""What is in an image of ours, as a CycloneDX document: read out of the image, which is not started."""

# py-serializable's decorator, which all of CycloneDX's classes wear, says Union where it means Intersection:
# pyright: reportCallIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false

import email.parser
import io
import re
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from capture_canary import __version__
from capture_canary.images.local import Image, ImageError
from capture_canary.report.words import plain

FOLDERS = ("/opt/capture-canary", "/payload")
"""Where our packages are: in images on a CANN, and in the injector."""
_UNKNOWN = "unknown"
"""What our Dockerfiles' labels say where a build was not told."""
_METADATA = re.compile(r"(?:.*/)?[^/]+\.dist-info/METADATA")
_MAX_METADATA = 1 << 20
_MAX_PACKAGES = 1000
_MAX_BYTES = 1 << 30


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """An installed Python package."""

    name: str
    version: str
    licence: str | None


def packages(client: Any, image: Image) -> list[Package]:
    """Return the packages that we put into an image, by name.

    Raises:
        ImageError: there are none, or what is there cannot be read.
    """
    from docker import errors  # noqa: PLC0415  # an extra

    number = client.api.create_container(image.id, ["none"], network_disabled=True)["Id"]
    try:
        for folder in FOLDERS:
            with suppress(errors.NotFound):
                chunks, _ = client.api.get_archive(number, folder)
                return _read(chunks)
        raise ImageError(f"none of {' and '.join(FOLDERS)} is in it: it is not an image of ours")
    except (errors.DockerException, OSError, tarfile.TarError) as error:
        raise ImageError(plain(str(error))) from error
    finally:
        client.api.remove_container(number, v=True, force=True)


def document(image: Image, found: list[Package]) -> str:
    """Return the document as JSON, in CycloneDX 1.6, valid by its schema.

    Raises:
        ImageError: the library that makes it is not installed.
    """
    try:
        from cyclonedx.output.json import JsonV1Dot6  # noqa: PLC0415  # an extra
    except ImportError:
        raise ImageError(
            "cyclonedx-python-lib is not installed: pip install 'capture-canary[images]'"
        ) from None
    text: str = JsonV1Dot6(_bom(image, found)).output_as_string(indent=2)
    return text


def _bom(image: Image, found: list[Package]) -> Any:
    from cyclonedx.factory.license import LicenseFactory  # noqa: PLC0415  # an extra
    from cyclonedx.model.bom import Bom  # noqa: PLC0415  # the same
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415  # the same
    from packageurl import PackageURL  # noqa: PLC0415  # the same

    licences = LicenseFactory()
    bom = Bom()
    subject = Component(
        type=ComponentType.CONTAINER, name=image.name, version=image.id, bom_ref="image"
    )
    bom.metadata.component = subject
    bom.metadata.tools.components.add(
        Component(type=ComponentType.APPLICATION, name="capture-canary", version=__version__)
    )
    parts = []
    for one in found:
        purl = PackageURL("pypi", name=one.name.lower().replace("_", "-"), version=one.version)
        parts.append(
            Component(
                type=ComponentType.LIBRARY,
                name=one.name,
                version=one.version,
                purl=purl,
                bom_ref=str(purl),
                licenses=[licences.make_from_string(one.licence)] if one.licence else None,
            )
        )
    base = image.general.get("base.name", _UNKNOWN)
    if base != _UNKNOWN:
        digest = image.general.get("base.digest")
        parts.append(
            Component(type=ComponentType.CONTAINER, name=base, version=digest, bom_ref="base")
        )
    if cann := image.labels.get("cann"):
        parts.append(
            Component(type=ComponentType.PLATFORM, name="CANN", version=cann, bom_ref="cann")
        )
    for part in parts:
        bom.components.add(part)
    bom.register_dependency(subject, parts)
    return bom


def _read(chunks: Iterator[bytes]) -> list[Package]:
    found: dict[str, Package] = {}
    with tarfile.open(fileobj=_Stream(chunks), mode="r|") as tar:
        for member in tar:
            if not member.isfile() or not _METADATA.fullmatch(member.name):
                continue
            file = tar.extractfile(member)
            if file is None or member.size > _MAX_METADATA or len(found) >= _MAX_PACKAGES:
                raise ImageError(f"{plain(member.name)}: is no package's metadata")
            if package := _package(file.read().decode("utf-8", "replace")):
                found[package.name] = package
    if not found:
        raise ImageError("no Python package is in it")
    return [found[name] for name in sorted(found, key=str.lower)]


def _package(text: str) -> Package | None:
    head = email.parser.HeaderParser().parsestr(text)
    name, version = head.get("Name"), head.get("Version")
    if not name or not version:
        return None
    licence = head.get("License-Expression") or head.get("License")
    # Older packages put the whole text there.
    short = licence if licence and len(licence) <= 100 and "\n" not in licence else None  # noqa: PLR2004  # a name's length
    return Package(name=plain(name), version=plain(version), licence=short and plain(short))


class _Stream(io.RawIOBase):
    """The engine's chunks as a file that is read once, and not for ever."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = b""
        self._total = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._total += len(chunk)
            if self._total > _MAX_BYTES:
                raise ImageError(f"over {_MAX_BYTES >> 20} MB are where only ours should be")
            self._left = chunk
        part, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)
