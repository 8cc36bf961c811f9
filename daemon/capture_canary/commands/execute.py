"""`capture-canary exec -- CMD`: run a command with the tracer put in front of what LD_PRELOAD holds."""

import argparse

from capture_canary import execute


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD …")


def run(args: argparse.Namespace) -> int:
    """Become the command."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    return execute.run(command)
