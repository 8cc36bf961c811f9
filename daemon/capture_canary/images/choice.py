"""The options that choose cells of the matrix, the same for every subcommand."""

import argparse
import os
from pathlib import Path

from capture_canary.images import matrix
from capture_canary.images.cells import FLAVOURS, KINDS, Cell, select


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the filters; each may be repeated, and together they narrow."""
    parser.add_argument("names", nargs="*", metavar="CELL", help="by name, as `images list` shows")
    parser.add_argument("--cann", action="append", default=[], metavar="VERSION")
    parser.add_argument("--soc", action="append", default=[], help="910b, a3, 310p or 950")
    parser.add_argument("--os", action="append", default=[], dest="systems")
    parser.add_argument("--flavour", action="append", default=[], choices=FLAVOURS)
    parser.add_argument("--kind", action="append", default=[], choices=KINDS)
    parser.add_argument(
        "--matrix", type=Path, metavar="FILE", help="another, e.g. with your registry's names"
    )


def chosen(args: argparse.Namespace) -> tuple[Cell, ...]:
    """Return the cells that the options take.

    Raises:
        MatrixError: there are none, or no such value.
    """
    return select(
        matrix.load(args.matrix.read_text("utf-8") if args.matrix else None),
        names=args.names,
        kinds=args.kind,
        canns=args.cann,
        socs=args.soc,
        systems=args.systems,
        flavours=args.flavour,
    )


def add_places(parser: argparse.ArgumentParser) -> None:
    """Add the options of where sources are and where things are kept."""
    parser.add_argument(
        "--source", type=Path, metavar="DIR", help="Capture Canary's sources (here, or above)"
    )
    parser.add_argument(
        "--cache", type=Path, metavar="DIR", default=default_cache(), help="(%(default)s)"
    )


def default_cache() -> Path:
    """Return the folder in which trees, logs and locks are kept."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "capture-canary" / "images"
