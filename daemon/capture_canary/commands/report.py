"""`capture-canary report`: the history as one HTML file, or as a picture."""

import argparse
import socket
import sqlite3
import sys
import time
from pathlib import Path

import capture_canary
from capture_canary.commands import past
from capture_canary.exits import USAGE
from capture_canary.report.page import page
from capture_canary.report.past import Past, read

_ROWS = 2000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    past.options(parser)
    parser.add_argument(
        *("-o", "--output"),
        metavar="FILE",
        default="capture-canary-report.html",
        help="the HTML file; - writes to standard output (%(default)s)",
    )
    parser.add_argument("--png", type=Path, metavar="FILE", help="write a picture instead")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="the same, scalable")
    parser.add_argument(
        "--node", default=socket.gethostname(), help="name in the title (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Write the report; return an exit code."""
    return past.with_history(args.state_dir, lambda connection: _write(connection, args))


def _write(connection: sqlite3.Connection, args: argparse.Namespace) -> int:
    found = read(connection, since=args.since, limit=_ROWS)
    pictures = [path for path in (args.png, args.svg) if path]
    try:
        if pictures:
            return _pictures(found, pictures, args.node)
        text = page(found, node=args.node, now=time.time(), version=capture_canary.__version__)
        if args.output == "-":
            sys.stdout.write(text)
        else:
            Path(args.output).write_text(text, encoding="utf-8")
            _say(f"wrote {args.output}")
    except OSError as error:
        _say(f"can't write the report: {error}")
        return USAGE
    return 0


def _pictures(found: Past, paths: list[Path], node: str) -> int:
    try:
        from capture_canary.report import picture  # noqa: PLC0415 - needs the extra `report`
    except ImportError as error:
        _say(f"--png and --svg need matplotlib: pip install 'capture-canary[report]' ({error})")
        return USAGE
    for path in paths:
        if path.suffix not in {".png", ".svg"}:
            _say(f"{path} ends neither in .png nor in .svg")
            return USAGE
        picture.save(found, path, node=node, now=time.time())
        _say(f"wrote {path}")
    return 0


def _say(text: str) -> None:
    print(f"capture-canary report: {text}", file=sys.stderr)  # noqa: T201 - a command speaks
