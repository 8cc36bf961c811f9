"""`capture-canary images compare`: the same probe in one image after another on this node."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any, get_args

import msgspec
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from capture_canary import __version__, terminal
from capture_canary.commands import measuring
from capture_canary.commands.config import add_settings, settings_of
from capture_canary.config import Config, ConfigError
from capture_canary.emulate import EmulationError
from capture_canary.exits import UNKNOWN, USAGE, exit_code
from capture_canary.images import engine, local, page
from capture_canary.images.compare import Ask, Compared, Comparison, compare, missing
from capture_canary.images.turn import this_node
from capture_canary.lock import LockBusyError, LockUnusableError
from capture_canary.model import ArmName
from capture_canary.probe.base import base_environment
from capture_canary.report import words

DEFAULTS = Ask()


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "images",
        nargs="*",
        metavar="IMAGE",
        help="local images, or cells of the matrix (every image of ours that is here)",
    )
    parser.add_argument(
        "--arm",
        action="append",
        choices=get_args(ArmName),
        help="measure this arm, may be repeated (as_configured and aiv)",
    )
    parser.add_argument(
        "--budget",
        type=measuring.seconds,
        default=DEFAULTS.budget,
        metavar="SECONDS",
        help="of each image's probe (%(default)g)",
    )
    parser.add_argument(
        "--package",
        type=Path,
        metavar="DIR",
        help="a folder that the injector filled: images then need nothing of ours (docs/injector.md)",
    )
    parser.add_argument("--json", action="store_true", help="print it all as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report")
    add_settings(parser)


def run(args: argparse.Namespace) -> int:
    """Compare; return 3 where an image was not measured or is not what it says, else 1 where one degrades, else 0."""
    errors = Console(stderr=True)
    try:
        config = settings_of(args).config
        base = base_environment(os.environ, config.emulate)
        _check(args)
    except (ConfigError, EmulationError, measuring.UsageError) as error:
        errors.print(str(error), markup=False)
        return USAGE
    client = engine.connect()
    try:
        measuring.end_in_good_order()
        with this_node(config, base, npus=config.probe.ranks) as node:
            found = _all(client, node, config, args, errors)
    except (LockBusyError, LockUnusableError) as error:
        errors.print(f"compare: {error}", markup=False)
        return UNKNOWN
    finally:
        client.close()
    return _show(found, args, errors)


def _check(args: argparse.Namespace) -> None:
    if args.package and not (args.package / "bin" / "capture-canary").is_file():
        raise measuring.UsageError(f"--package: {args.package} has no bin/capture-canary")


def _all(
    client: Any, node: Any, config: Config, args: argparse.Namespace, errors: Console
) -> Comparison:
    images = local.named(client, args.images)
    ask = Ask(
        arms=tuple(dict.fromkeys(args.arm or DEFAULTS.arms)),
        budget=args.budget,
        package=str(args.package.resolve()) if args.package else None,
    )
    done: list[Compared] = []
    for number, image in enumerate(images, 1):
        with errors.status(escape(f"{number} of {len(images)}: {words.plain(image)}")):
            done.append(compare(client, node, image, ask))
        _tell(done[-1], ask, errors)
    emulated = config.emulate is not None or any(one.report and one.report.emulated for one in done)
    return Comparison(emulated=emulated, images=done)


def _tell(one: Compared, ask: Ask, errors: Console) -> None:
    """What is wrong with an image, at once: the next one takes its time."""
    said = [*([one.problem] if one.problem else []), *one.contradictions]
    said += [f"no captures {terminal.ARMS[arm]}" for arm in missing(one, ask.arms)]
    for text in said:
        errors.print(f"{words.plain(one.image)}: {words.plain(text, 400)}", markup=False)


def _show(found: Comparison, args: argparse.Namespace, errors: Console) -> int:
    if args.json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    else:
        Console().print(_table(found))
    if args.html:
        try:
            args.html.write_text(
                page.page(found, now=time.time(), version=__version__), encoding="utf-8"
            )
        except OSError as error:
            errors.print(f"--html: {error}", markup=False)
            return USAGE
    if not found.images:
        errors.print("compare: there is no image of ours here; `images build` makes them")
    return exit_code(found.verdict)


def _table(found: Comparison) -> Table:
    title = "EMULATED: this says nothing of any real NPU." if found.emulated else None
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for heading in page.HEADINGS:
        right = heading in {"copies more", "ms more"}
        table.add_column(heading, overflow="fold", justify="right" if right else "left")
    for one in found.images:
        for row in one.rows:
            image, cann, mode, verdict, *rest = page.cells(one, row)
            table.add_row(image, cann, mode, Text(verdict, terminal.STYLES[row.verdict]), *rest)
        if not one.rows:
            cann = words.plain(one.cann or "unknown")
            said = words.plain(page.why(one))
            table.add_row(words.plain(one.image), cann, "", "unknown", "", "", said)
    return table
