"""`capture-canary story`: this node, or another by what Prometheus knows of it, in at most twenty lines."""

import argparse
import socket
import sqlite3
import time

from capture_canary.commands import past
from capture_canary.exits import exit_code
from capture_canary.model import VerdictName
from capture_canary.report import prometheus
from capture_canary.report.past import Past, read
from capture_canary.report.story import tell


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    past.options(parser)
    parser.add_argument(
        "node",
        nargs="?",
        metavar="NODE",
        help="a node, or the instance of a daemon; with --prometheus",
    )
    parser.add_argument(
        "--prometheus",
        type=prometheus.address,
        metavar="URL",
        help="tell it from this Prometheus, such as http://prometheus:9090, not from the history here",
    )
    parser.add_argument(
        "--node",
        dest="title",
        default=socket.gethostname(),
        help="name in the title (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Tell the story; return the exit code of the worst verdict in force."""
    if args.prometheus or args.node:
        return _afar(args)
    return past.with_history(args.state_dir, lambda connection: _tell(connection, args))


def _tell(connection: sqlite3.Connection, args: argparse.Namespace) -> int:
    found = read(connection, since=args.since, limit=200)
    return _say(found, args.title)


def _afar(args: argparse.Namespace) -> int:
    if not (args.prometheus and args.node):
        return past.refuse("NODE and --prometheus URL go together")
    try:
        found = prometheus.read(args.prometheus, args.node, since=args.since, now=time.time())
    except prometheus.UnreadableError as error:
        return past.refuse(str(error))
    return _say(found, args.node)


def _say(found: Past, node: str) -> int:
    for line in tell(found, node=node, now=time.time()):
        print(line)  # noqa: T201 - a command speaks
    return exit_code(_worst(found))


def _worst(found: Past) -> VerdictName:
    if found.open:
        return "degraded"
    verdicts = {one.verdict for one in found.present} or {"unknown"}
    return "unknown" if "unknown" in verdicts else "healthy"
