"""`capture-canary images export`: images as files, for registries that cannot be reached."""

import argparse
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from capture_canary.commands import measuring
from capture_canary.exits import USAGE
from capture_canary.images import engine, export, local
from capture_canary.report.words import plain


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "images",
        nargs="*",
        metavar="IMAGE",
        help="local images, or cells of the matrix (every image of ours that is here)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="folder to write to")


def run(args: argparse.Namespace) -> int:
    """Write archives, list and checksums; return 1 where one failed. Run again, it goes on where it was."""
    errors = Console(stderr=True)
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        errors.print(f"--out: {error}", markup=False)
        return USAGE
    client = engine.connect()
    measuring.end_in_good_order()
    done: list[export.Exported] = []
    failed = 0
    try:
        for name in local.named(client, args.images):
            try:
                with errors.status(escape(plain(name))):
                    one, fresh = export.export(client, local.inspect(client, name), args.out)
            except local.ImageError as error:
                errors.print(f"{plain(name)}: {error}", markup=False)
                failed += 1
                continue
            done.append(one)
            export.write_list(args.out, done)  # at once: what was done is not done again
            what = "written" if fresh else "is there"
            errors.print(
                f"{plain(name)}: {one.file} {what}, {one.bytes / 1e6:,.0f} MB", markup=False
            )
    finally:
        client.close()
    if not done and not failed:
        errors.print("export: there is no image of ours here; `images build` makes them")
    return 1 if failed or not done else 0
