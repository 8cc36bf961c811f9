"""What an image adds to the one that it is built on: its layers above those of its base."""

from collections.abc import Iterator
from typing import Any

import msgspec

from capture_canary.images.engine import EngineError, explain


class Added(msgspec.Struct, frozen=True, kw_only=True):
    """What is added."""

    image: str
    base: str
    base_bytes: int
    added_bytes: int
    layers: tuple[tuple[int, str], ...]
    """Bytes, and what made them, of each layer that is added."""


def added(client: Any, image: str, base: str) -> Added:
    """Compare an image with its base, on disk.

    Raises:
        EngineError: one of them is not here, or the image is not built on that base.
    """
    upper, lower = inspect(client, image), inspect(client, base)
    above = upper["RootFS"].get("Layers") or []
    below = lower["RootFS"].get("Layers") or []
    if above[: len(below)] != below:
        raise EngineError(f"{image} is not built on the {base} that is here")
    size = int(upper["Size"]) - int(lower["Size"])
    return Added(
        image=image,
        base=base,
        base_bytes=int(lower["Size"]),
        added_bytes=size,
        layers=tuple(_of(client.api.history(image), size)),
    )


def _of(history: list[dict[str, Any]], size: int) -> Iterator[tuple[int, str]]:
    """Yield the newest layers that make up a size; those that hold nothing are left out."""
    for one in history:
        if size <= 0:
            return
        if one["Size"]:
            size -= int(one["Size"])
            yield int(one["Size"]), " ".join(str(one["CreatedBy"]).split())[:200]


def inspect(client: Any, image: str) -> dict[str, Any]:
    """Return what the Engine knows of a local image.

    Raises:
        EngineError: there is none of this name.
    """
    from docker import errors  # noqa: PLC0415  # an extra

    try:
        found: dict[str, Any] = client.api.inspect_image(image)
    except errors.ImageNotFound:
        raise EngineError(f"there is no image {image} here: build or pull it") from None
    except Exception as error:  # the SDK lets some of requests' through
        raise EngineError(explain(error)) from error
    return found
