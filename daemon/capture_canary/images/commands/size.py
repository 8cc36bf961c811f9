"""`capture-canary images size`: what images add to the ones that they are built on."""

import argparse
import sys

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from capture_canary import __version__
from capture_canary.images.cells import REPOSITORY
from capture_canary.images.choice import add_choice, chosen
from capture_canary.images.engine import EngineError, connect
from capture_canary.images.layers import Added, added

_MEGA = 1e6
"""Docker counts in these, too."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_choice(parser)
    parser.add_argument("--repository", metavar="NAME", default=REPOSITORY, help="(%(default)s)")
    parser.add_argument("--json", action="store_true", help="print an array of objects")


def run(args: argparse.Namespace) -> int:
    """Print the sizes of those that are here; return 0, or 1 where one can't be told."""
    cells, client = [cell for cell in chosen(args) if cell.base], connect()
    found: list[Added] = []
    failed = False
    for cell in cells:
        tag = cell.tag(__version__, args.repository)
        if not args.names and not client.api.images(name=tag):
            continue
        try:
            found.append(added(client, tag, cell.base or ""))
        except EngineError as error:
            sys.stderr.write(f"{cell.name}: {error}\n")
            failed = True
    if args.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    elif found:
        Console().print(_table(found))
    else:
        sys.stderr.write("none of these images is here\n")
    return int(failed or not found)


def _table(found: list[Added]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("image", overflow="fold")
    for heading in ("base", "added"):
        table.add_column(heading, justify="right")
    table.add_column("in layers", justify="right")
    for one in found:
        by = "\n".join(f"{size / _MEGA:.1f} MB" for size, _ in one.layers)
        table.add_row(
            one.image, f"{one.base_bytes / _MEGA:.1f} MB", f"{one.added_bytes / _MEGA:.1f} MB", by
        )
    return table
