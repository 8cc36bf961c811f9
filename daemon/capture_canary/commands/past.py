"""What the commands that look back share: where the history is, since when, and words for what is wrong with it."""

import argparse
import os
import re
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

from capture_canary.config.load import find_config, load
from capture_canary.config.problems import ConfigError
from capture_canary.exits import USAGE
from capture_canary.store import files, schema

_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all of them have."""
    parser.add_argument(
        "--state-dir",
        type=Path,
        metavar="DIR",
        help="where the daemon keeps its history (as the configuration says)",
    )
    parser.add_argument(
        "--since",
        type=since,
        default=since("90d"),
        metavar="TIME",
        help="how far back, such as 36h, 7d or 2026-11-29 (90d)",
    )


def since(text: str) -> float:
    """Return the moment that a span before now, or a date, says."""
    if match := re.fullmatch(r"([0-9]{1,6})([mhdw])", text, re.ASCII):
        return max(time.time() - int(match[1]) * _UNITS[match[2]], 0.0)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a span (90m, 36h, 7d, 2w) nor a date (2026-11-29)"
        ) from None
    return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp()


def positive(text: str) -> int:
    """Return a number of rows."""
    if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 999999")
    return int(text)


def with_history(folder: Path | None, work: Callable[[sqlite3.Connection], int]) -> int:
    """Do the work on the history in `folder` (None: the configured one), or say why it can't be read."""
    try:
        path = (folder or _configured()) / files.NAME
    except ConfigError as error:
        return refuse(f"{error}\nname the folder with --state-dir")
    try:
        connection = files.open_for_reading(path)
    except FileNotFoundError:
        return refuse(f"{path}: there is no history; has the daemon run with this --state-dir?")
    except schema.NewerError as error:
        return refuse(f"{path}: a newer release wrote it ({error})")
    except (*schema.SQLITE_ERRORS, OSError) as error:
        return refuse(f"{path}: it can't be read: {error}")
    with closing(connection):
        try:
            return work(connection)
        except schema.SQLITE_ERRORS as error:
            return refuse(f"{path}: it can't be read: {error}")


def _configured() -> Path:
    return load(find_config(None, os.environ), os.environ, {}).config.state_dir


def refuse(why: str) -> int:
    """Say what is wrong; return the exit code of wrong usage."""
    print(f"capture-canary: {why}", file=sys.stderr)  # noqa: T201 - a command speaks
    return USAGE
