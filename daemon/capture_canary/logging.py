"""Our own log: one line an event on standard error, JSON for machines, columns for people."""

import logging
import sys
from typing import Literal

import structlog

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
