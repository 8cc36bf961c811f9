"""`capture-canary images bake`: print the matrix as a file for `docker buildx bake`."""

import argparse
import json
import sys

from capture_canary.images import bake
from capture_canary.images.cells import REPOSITORY
from capture_canary.images.choice import add_choice, chosen


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_choice(parser)
    parser.add_argument(
        "--repository", metavar="NAME", default=REPOSITORY, help="to tag with (%(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Print it."""
    found = bake.bake(chosen(args), repository=args.repository)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return 0
