"""`capture-canary images list`: the matrix."""

import argparse
import sys

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from capture_canary import __version__
from capture_canary.images.cells import Cell
from capture_canary.images.choice import add_choice, chosen


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_choice(parser)
    parser.add_argument("--all", action="store_true", help="also those that can't be, with why")
    parser.add_argument("--json", action="store_true", help="print an array of objects")


def run(args: argparse.Namespace) -> int:
    """Print the cells."""
    cells = [cell for cell in chosen(args) if cell.buildable or args.all or args.names]
    if args.json:
        sys.stdout.buffer.write(
            msgspec.json.format(msgspec.json.encode([as_json(cell) for cell in cells])) + b"\n"
        )
        return 0
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("cell", "status", "gets slower", "base image, or why not"):
        table.add_column(heading, overflow="fold")
    for cell in cells:
        table.add_row(cell.name, cell.status, expected(cell), cell.base or cell.reason)
    Console().print(table)
    return 0


def as_json(cell: Cell) -> dict[str, object]:
    """Return a cell with what follows from it."""
    return {
        **msgspec.structs.asdict(cell),
        "name": cell.name,
        "tag": cell.tag(__version__),
        "exposed": cell.exposure.exposed,
        "exposure": cell.exposure.reason,
    }


def expected(cell: Cell) -> str:
    """Return in a word whether a server in it gets slower in the SoC's default mode."""
    exposed = cell.exposure.exposed
    return "not known" if exposed is None else "yes" if exposed else "no"
