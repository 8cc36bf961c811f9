"""`capture-canary doctor`: what this node runs, for whom it gets slower, and what could not be seen."""

import argparse
import os
import sys
from pathlib import Path

import msgspec

from capture_canary.commands.config import add_settings, settings_of
from capture_canary.config import ConfigError
from capture_canary.doctor.findings import Findings, find
from capture_canary.doctor.screen import screen
from capture_canary.emulate import EmulationError
from capture_canary.exits import UNKNOWN, USAGE
from capture_canary.probe.base import base_environment
from capture_canary.stack.node import Places
from capture_canary.trend.texts import LANGUAGES


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_settings(parser)
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.add_argument(
        "--language", choices=LANGUAGES, default="en", help="of the advice (%(default)s)"
    )
    parser.add_argument(
        "--assumptions",
        action="store_true",
        help="check what is believed about CANN and could not be tried without an NPU (docs/assumptions.md)",
    )
    parser.add_argument("--root", type=Path, default=Path("/"), help=argparse.SUPPRESS)
    parser.add_argument("--proc", type=Path, default=Path("/proc"), help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Look, and say what was found; return 0, 1 where a server will degrade, 3 where nothing is known."""
    try:
        config = settings_of(args).config
        base = base_environment(os.environ, config.emulate)
    except (ConfigError, EmulationError) as error:
        sys.stderr.write(f"{error}\n")
        return USAGE
    if args.assumptions:
        from capture_canary.doctor import assumptions  # noqa: PLC0415  # needs much more

        return assumptions.run(config, base, as_json=args.json)
    found = find(config, base, places=Places(root=args.root, proc=args.proc))
    if args.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    else:
        sys.stdout.write(screen(found, args.language))
    return exit_code(found)


def exit_code(found: Findings) -> int:
    """Return 1 where a server will degrade, 0 where all are known not to, else what our own stack says."""
    outlooks = {one.outlook for one in found.expected}
    if "will degrade" in outlooks:
        return 1
    if outlooks:
        return UNKNOWN if "unknown" in outlooks else 0
    return UNKNOWN if found.node.exposed is None else int(found.node.exposed)
