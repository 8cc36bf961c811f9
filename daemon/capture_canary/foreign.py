"""JSON that somebody else wrote: a value of the kind that is wanted, or a ValueError that says why there is none."""

from typing import TypeVar

import msgspec

T = TypeVar("T")


def decode(data: bytes | str, kind: "type[T] | msgspec.json.Decoder[T]") -> T:
    """Return the value; what is only skipped is bounded in depth, too.

    Args:
        data: the JSON.
        kind: its type, or a decoder of it for who decodes often.

    Raises:
        ValueError: it is none.
    """
    decoder = kind if isinstance(kind, msgspec.json.Decoder) else msgspec.json.Decoder(kind)
    try:
        return decoder.decode(
            data
        )  # msgspec's errors are ValueErrors, as is that of what is no UTF-8
    except RecursionError:
        raise ValueError("it is nested too deep") from None
