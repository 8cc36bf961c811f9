"""Our own log: one line an event on standard error, JSON for machines, columns for people."""

import logging
import sys
from typing import Literal

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
    renderer: structlog.types.Processor = (
        structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
