"""Images that are on this machine: which are ours, and what each says of itself."""

from collections.abc import Sequence
from typing import Any

import msgspec

from capture_canary import __version__
from capture_canary.images import matrix
from capture_canary.report.words import plain
from capture_canary.stack import versions

LABELS = "io.capture-canary."
"""What the labels begin with that an image of ours says of itself by."""


class ImageError(Exception):
    """An image cannot be used; the message says why."""


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image that is here."""

    name: str
    id: str
    """Digest of its configuration, `sha256:…`: of its content, wherever it came from."""
    digests: list[str]
    """Names by digest, as registries know it; none before it was pushed or pulled."""
    labels: dict[str, str]
    """What it says of itself, without `io.capture-canary.`."""
    general: dict[str, str]
    """The same of `org.opencontainers.image.`, without that."""


def named(client: Any, names: Sequence[str]) -> list[str]:
    """Return images by what a person called them: a reference, or a cell of the matrix; without a name all of ours."""
    tags = {cell.name: cell.tag(__version__) for cell in matrix.load()}
    return list(dict.fromkeys(tags.get(name, name) for name in names)) or _ours(client)


def _ours(client: Any) -> list[str]:
    """Tags of the images of ours that are here, by CANN, the oldest first."""
    tags: list[tuple[versions.Version | None, str]] = []
    for one in client.api.images(filters={"label": f"{LABELS}flavour"}):
        number = versions.parse((one.get("Labels") or {}).get(f"{LABELS}cann"))
        tags += [(number, tag) for tag in one.get("RepoTags") or [] if tag != "<none>:<none>"]
    return [tag for _, tag in sorted(tags, key=lambda pair: (pair[0] or (), pair[1]))]


def inspect(client: Any, name: str) -> Image:
    """Return what is known of an image.

    Raises:
        ImageError: it is not here, or the engine does not tell.
    """
    from docker import errors  # noqa: PLC0415  # an extra

    try:
        about = client.api.inspect_image(name)
    except errors.ImageNotFound:
        raise ImageError("there is no such image here: pull or build it") from None
    except (errors.DockerException, OSError) as error:
        raise ImageError(plain(str(error))) from error
    labels = (about.get("Config") or {}).get("Labels") or {}
    return Image(
        name=name,
        id=str(about["Id"]),
        digests=[str(one) for one in about.get("RepoDigests") or []],
        labels=_under(labels, LABELS),
        general=_under(labels, "org.opencontainers.image."),
    )


def _under(labels: dict[str, Any], prefix: str) -> dict[str, str]:
    return {
        name.removeprefix(prefix): plain(str(value))
        for name, value in labels.items()
        if name.startswith(prefix)
    }
