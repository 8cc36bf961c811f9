"""Our own log: one line an event on standard error, JSON for machines, columns for people."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Literal

# structlog loads rich for tracebacks in colour where rich is there, as it is for `probe`: 5 MB that a daemon keeps for
# months. Told that it is not there, structlog does without.
_HIDDEN = "rich"
_hide = _HIDDEN not in sys.modules
if _hide:
    sys.modules[_HIDDEN] = None  # type: ignore[assignment]
import structlog  # noqa: E402  # after the line above, for its sake

if _hide:
    del sys.modules[_HIDDEN]

get_logger = structlog.get_logger
"""Everything that logs takes it from here, so that structlog is loaded as above."""
Format = Literal["auto", "json", "console"]


def configure_logging(form: Format) -> None:
    """Set structlog up; `auto` is console where standard error is a terminal."""
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    # JSON escapes by itself whatever is not ASCII.
    renderers: list[structlog.types.Processor] = (
        [_visible, structlog.dev.ConsoleRenderer()]
        if console
        else [structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )


def _visible(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Leave of foreign texts what can be seen, on one line; a traceback keeps its lines, none of them at the margin."""
    for name, value in event.items():
        if name == "exception":
            event[name] = "\n".join(f"  {_shown(line)}" for line in str(value).splitlines())
        elif isinstance(value, str):
            event[name] = _shown(value)
    return event


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
