"""What the settings say of each key beside its type: why it exists, its bounds, its default as a file has it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec


def about(
    why: str,
    *,
    least: str | None = None,
    most: str | None = None,
    check: Callable[[str], None] | None = None,
    expects: str | None = None,
    restart: bool = False,
    **bounds: Any,
) -> msgspec.Meta:
    """Describe a key: `least` and `most` bound a duration or size, `bounds` are msgspec's own."""
    extra = {"least": least, "most": most, "check": check, "expects": expects, "restart": restart}
    return msgspec.Meta(description=why, extra=extra, **bounds)


def default(parse: Callable[[str], Any], text: str) -> Any:
    """Give a field a default, as text: the model shows it as a file would have it."""
    return msgspec.field(default_factory=partial(parse, text))
