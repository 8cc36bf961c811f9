"""`capture-canary images`: one image for each CANN that a cluster may run: listed, built, verified, compared."""

import argparse
import importlib
import sys

from capture_canary.exits import UNKNOWN, USAGE
from capture_canary.images.cells import MatrixError
from capture_canary.images.engine import EngineError
from capture_canary.images.source import SourceError

SUBCOMMANDS = {
    "list": "the matrix: which images there are, on what they are built, which can't be",
    "build": "build selected cells, several at a time",
    "verify": "start images, and hold what is in them against the matrix and their labels",
    "size": "what images add to the ones that they are built on",
    "compare": "the same probe in each image on this node: what decides an upgrade",
    "standins": "make the bases of emulated cells: Debian with an emulated CANN",
    "bake": "print the matrix as a file for `docker buildx bake`",
    "sbom": "what is in an image of ours, as CycloneDX",
    "export": "images as files, with a list and checksums, for registries that can't be reached",
}
"""Each is a module of `capture_canary.images.commands` with `configure` and `run`, as those of `capture-canary` are."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, summary in SUBCOMMANDS.items():
        module = importlib.import_module(f"capture_canary.images.commands.{name}")
        command = commands.add_parser(
            name, help=summary, description=f"capture-canary images {name}: {summary}."
        )
        module.configure(command)
        command.set_defaults(action=module.run)


def run(args: argparse.Namespace) -> int:
    """Do what the subcommand says; return 0, 1 where a cell failed, 2 for wrong usage, 3 where none could be tried."""
    try:
        return int(args.action(args))
    except (MatrixError, SourceError) as error:
        sys.stderr.write(f"capture-canary images: {error}\n")
        return USAGE
    except EngineError as error:
        sys.stderr.write(f"capture-canary images: {error}\n")
        return UNKNOWN
