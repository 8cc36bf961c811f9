"""`capture-canary images verify`: start images, and hold what is in them against the matrix and their labels."""

import argparse
import sys

import msgspec
from rich.console import Console
from rich.markup import escape

from capture_canary import __version__
from capture_canary.images.cells import REPOSITORY, MatrixError
from capture_canary.images.choice import add_choice, add_places, chosen
from capture_canary.images.engine import connect
from capture_canary.images.verify import Check, verify
from capture_canary.lock import LockBusyError, acquire


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one image."""

    cell: str
    image: str
    ok: bool
    checks: list[Check]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_choice(parser)
    add_places(parser)
    parser.add_argument("--repository", metavar="NAME", default=REPOSITORY, help="(%(default)s)")
    parser.add_argument("--json", action="store_true", help="print an array of objects")


def run(args: argparse.Namespace) -> int:
    """Verify those that are here, or all that are named; return 0, or 1 where one is not what it is to be."""
    cells, client, console = chosen(args), connect(), Console(stderr=args.json)
    path = args.cache / "verify.lock"
    try:
        lock = acquire(path, holder="another `images verify`")
    except LockBusyError as error:
        raise MatrixError(str(error)) from None
    found: list[Verified] = []
    try:
        for cell in cells:
            tag = cell.tag(__version__, args.repository)
            if not args.names and not client.api.images(name=tag):
                continue
            console.print(escape(tag), style="bold", highlight=False)
            checks = []
            for check in verify(client, cell, tag, lock=str(path)):
                checks.append(check)
                _show(console, check)
            ok = all(check.ok for check in checks)
            found.append(Verified(cell=cell.name, image=tag, ok=ok, checks=checks))
    finally:
        lock.release()
    if args.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    if not found:
        sys.stderr.write("none of these images is here\n")
    return int(not found or not all(one.ok for one in found))


def _show(console: Console, check: Check) -> None:
    mark, style = ("ok", "green") if check.ok else ("WRONG", "red")
    console.print(
        f"  {mark:<5} {check.name:<12} {check.said}",
        style=style,
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
