"""`capture-canary images standins`: the bases of emulated cells, for machines without an NPU."""

import argparse
import sys

from capture_canary import environments
from capture_canary.images import standins
from capture_canary.images.choice import add_choice, add_places, chosen
from capture_canary.images.debian import DebianError
from capture_canary.images.engine import EngineError, connect
from capture_canary.images.source import find_source


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_choice(parser)
    add_places(parser)


def run(args: argparse.Namespace) -> int:
    """Make them, one after the other; return 0, or 1 where one failed."""
    args.kind, args.flavour = ["emulated"], args.flavour or ["core"]
    cells, source, client = chosen(args), find_source(args.source), connect()
    failed = False
    for cell in cells:
        try:
            standins.make(client, cell, args.cache, source, _say)
        except (
            DebianError,
            EngineError,
            environments.RecipeError,
            environments.CreateError,
        ) as error:
            _say(f"{cell.name}: {error}")
            failed = True
        else:
            sys.stdout.write(f"{cell.base}\n")
    return int(failed)


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")
