"""`capture-canary story`: this node in at most twenty lines."""

import argparse
import socket
import sqlite3
import time

from capture_canary.commands import past
from capture_canary.exits import exit_code
from capture_canary.model import VerdictName
from capture_canary.report.past import Past, read
from capture_canary.report.story import tell


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    past.options(parser)
    parser.add_argument(
        "--node", default=socket.gethostname(), help="name in the title (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Tell the story; return the exit code of the worst verdict in force."""
    return past.with_history(args.state_dir, lambda connection: _tell(connection, args))


def _tell(connection: sqlite3.Connection, args: argparse.Namespace) -> int:
    found = read(connection, since=args.since, limit=200)
    for line in tell(found, node=args.node, now=time.time()):
        print(line)  # noqa: T201 - a command speaks
    return exit_code(_worst(found))


def _worst(found: Past) -> VerdictName:
    if found.open:
        return "degraded"
    verdicts = {one.verdict for one in found.present} or {"unknown"}
    return "unknown" if "unknown" in verdicts else "healthy"
